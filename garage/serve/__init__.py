"""What a person meets: the command line and the local services. Thin over the same functions that everything else uses.

Nothing here is imported before it is needed, so that a search from a cold shell pays for the search alone.
"""
