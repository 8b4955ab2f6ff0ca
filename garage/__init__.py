"""Garage: a private knowledge pipeline over the files of a person or a team.

The library does all the work and never imports Dagster; `garage_assets`, `resources` and `sensors` declare the
same work as Dagster assets.
"""
