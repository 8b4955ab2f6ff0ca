"""Stage 3: from the bytes of a file to its canonical mirror and metadata."""
