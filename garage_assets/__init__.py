"""The Dagster layer: every stage as an asset, a few lines each; the work is the library's."""
