"""One module a group of commands: options, a call of the library, and what a person reads of the result."""
