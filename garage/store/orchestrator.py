"""Where the orchestrator keeps its runs and events on a server that is not Garage's own."""

from urllib.parse import urlsplit

import psycopg
from psycopg import sql

NAME = "dagster"
_SCHEMA_OPTIONS = f"options=-csearch_path%3D{NAME}"


def place(url: str) -> str:
    """The URL of the orchestrator's database or schema on the server of `url`, made where it is missing.

    A database of its own beside Garage's, where this role may make one or owns it; else a schema in Garage's own
    database. Whichever was made stays the place. A database of that name that belongs to somebody else is never used.
    """
    with psycopg.connect(url, autocommit=True) as conn:
        if conn.execute("select to_regnamespace(%s) is not null", (NAME,)).fetchone() == (True,):
            return _in_schema(url)
        owner = conn.execute(
            "select pg_get_userbyid(datdba) = current_user from pg_database where datname = %s", (NAME,)
        ).fetchone()
        if owner is None:
            try:
                conn.execute(sql.SQL("create database {}").format(sql.Identifier(NAME)))
            except psycopg.errors.InsufficientPrivilege:
                pass
            except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                owner = (True,)  # another process of this role was faster
            else:
                owner = (True,)
        if owner == (True,):
            return urlsplit(url)._replace(path=f"/{NAME}").geturl()
        conn.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(NAME)))
        return _in_schema(url)


def _in_schema(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(query="&".join(filter(None, [parts.query, _SCHEMA_OPTIONS]))).geturl()
