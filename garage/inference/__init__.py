"""Everything that talks to a model, in this process or over the network: the only package that may open a connection.

Nothing here is imported before it is used: `garage` starts without llama.cpp, numpy or an HTTP client.
"""
