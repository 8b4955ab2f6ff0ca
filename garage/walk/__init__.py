"""The walk: stat the files of a source, prune on the way down, yield records; open no file, delete nothing."""
