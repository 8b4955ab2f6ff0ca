"""The base of every error a person can cause: what happened, to what, and what to do next."""


class GarageError(Exception):
    """A failure that a person can understand and act on.

    `message` says what happened and to what; `hint` says what to do next; further keyword arguments become
    attributes (`source`, `uri`, `stage`, `reason`, ...), so callers decide by class and field, never by text.
    """

    def __init__(self, message: str, *, hint: str = "", **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process borders (isolated workers); the default would drop the keyword arguments.
        return _rebuild, (type(self), self.message, self.hint, self.fields)


def _rebuild(kind: type[GarageError], message: str, hint: str, fields: dict[str, object]) -> GarageError:
    error = kind.__new__(kind)
    GarageError.__init__(error, message, hint=hint, **fields)
    return error
