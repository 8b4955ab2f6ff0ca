"""Finding passages: hybrid retrieval over vectors and words."""
