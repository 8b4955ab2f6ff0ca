"""The words that options accept, repeated from the library so that `--help` need not load it; a test compares them."""

CLASSES = ("document", "code", "communication")
TRUSTS = ("authored", "received", "reference")
DIRECTIONS = ("sent", "received")
EGRESS = ("local_only", "lan", "remote")
KINDS = ("filesystem", "messages")
MODES = ("hybrid", "vector", "keyword")
POOLINGS = ("file", "mean", "cls", "last")
PURPOSES = ("embedding", "facts", "answers", "mcp", "rest")
