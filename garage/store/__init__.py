"""All that Garage keeps, in Postgres: the only package that holds SQL."""
