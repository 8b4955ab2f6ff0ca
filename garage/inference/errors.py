"""What can go wrong with a model, in words a person can act on."""

from __future__ import annotations

from collections.abc import Sequence

from garage.errors import GarageError


class UnknownModel(GarageError):
    """No model of that name in the catalogue or the configuration."""

    slug: str
    known: tuple[str, ...]

    def __init__(self, slug: str, known: Sequence[str]) -> None:
        from difflib import get_close_matches

        near = get_close_matches(slug, known, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Known models: {', '.join(known)}."
        super().__init__(f"There is no model called '{slug}'.", hint=hint, slug=slug, known=tuple(known))


class InvalidModelEntry(GarageError):
    """A model's description breaks a rule of the catalogue; `reasons` names each field and what is wrong with it."""

    slug: str
    reasons: tuple[str, ...]

    def __init__(self, slug: str, reasons: Sequence[str]) -> None:
        super().__init__(
            f"The model '{slug}' is not described correctly: {'; '.join(reasons)}.",
            hint="Correct its entry; `garage models list --json` shows complete ones.",
            slug=slug,
            reasons=tuple(reasons),
        )


class ModelUnavailable(GarageError):
    """A model's file could not be had; `tried` says what was tried, in order, and why each did not work."""

    slug: str
    tried: tuple[str, ...]

    def __init__(self, slug: str, tried: Sequence[str], hint: str) -> None:
        attempts = "".join(f"\n  - {attempt}" for attempt in tried)
        super().__init__(f"The model '{slug}' could not be obtained. Tried:{attempts}\n", hint=hint, slug=slug)
        self.tried = self.fields["tried"] = tuple(tried)


class ModelCorrupt(GarageError):
    """A file is not the one the catalogue names: it was changed, or it arrived damaged."""

    what: str
    expected: str
    got: str

    def __init__(self, what: str, expected: str, got: str) -> None:
        super().__init__(
            f"{what} is not the file that was asked for: its sha256 is {got}, expected {expected}.",
            hint="It was not used. Fetch it again, from another origin if this repeats.",
            what=what,
            expected=expected,
            got=got,
        )


class ModelStorageFailed(GarageError):
    """The models directory cannot take the file: full, read-only or unreachable."""

    slug: str
    directory: str
    reason: str

    def __init__(self, slug: str, directory: str, reason: str) -> None:
        super().__init__(
            f"The model '{slug}' could not be written to {directory}: {reason}.",
            hint="Free some space there, or name another one as `models_directory` in garage.yaml.",
            slug=slug,
            directory=directory,
            reason=reason,
        )


class UnsupportedModel(GarageError):
    """The upstream files describe an architecture that the converter does not know."""

    model: str
    reason: str

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(
            f"The model '{model}' cannot be converted to GGUF: {reason}.",
            hint="Give a ready GGUF file as `file` in the model's entry.",
            model=model,
            reason=reason,
        )


class ModelUnusable(GarageError):
    """The engine cannot run the file as its entry describes it."""

    slug: str
    path: str
    reason: str

    def __init__(self, slug: str, path: str, reason: str, hint: str = "") -> None:
        super().__init__(
            f"The model '{slug}' ({path}) cannot be used: {reason}.",
            hint=hint or "Check that the file is a complete GGUF embedding model.",
            slug=slug,
            path=path,
            reason=reason,
        )


class EngineMissing(GarageError):
    """llama-cpp-python is not installed, or its native library does not load here."""

    reason: str

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The engine that runs models in process did not load: {reason}.",
            hint="Install llama-cpp-python (`make setup` compiles it once).",
            reason=reason,
        )


class EgressRefused(GarageError):
    """A connection that the owner of the machine has not allowed; `code` is a `garage.inference.policy.Reason`."""

    origin: str
    reason: str
    code: str

    def __init__(self, origin: str, reason: str, *, code: str) -> None:
        super().__init__(
            f"No connection was made to {origin}: {reason}.",
            hint="Only loopback and the origins that `egress.origins` names exactly may be contacted.",
            origin=origin,
            reason=reason,
            code=code,
        )
