"""Loading llama.cpp: the environment it must find, and its messages through Python's logging."""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from types import ModuleType
from typing import Any

from garage.inference.errors import EngineMissing

_log = logging.getLogger("garage.inference.llama")
# The library's own convention: silent unless the application set up logging.
_log.addHandler(logging.NullHandler())

# ggml_log_level to Python's. llama.cpp narrates every load at "info" and warns about matters of taste, such as tokens
# that its converter would have marked otherwise.
_LEVELS = {1: logging.DEBUG, 2: logging.DEBUG, 3: logging.INFO, 4: logging.ERROR}

_CONTINUED = 5
_errors: list[str] = []
_loading = threading.Lock()
_library: ModuleType | None = None
_keep_alive: list[Any] = []


def library() -> ModuleType:
    """The `llama_cpp` module, imported at the first call. Raises `EngineMissing`."""
    global _library  # noqa: PLW0603 - loaded once a process, and only when a model is used
    with _loading:
        if _library is None:
            _library = _load()
    return _library


def first_error() -> str:
    """What llama.cpp said was wrong since `forget_errors`; what it says afterwards only follows from that."""
    return _errors[0] if _errors else "llama.cpp gave no reason"


def forget_errors() -> None:
    """Start a new account of errors, before an operation that may fail."""
    _errors.clear()


def _load() -> ModuleType:
    # OpenMP reads this once, when its library is loaded. Its default, spinning at barriers, costs most of the
    # throughput as soon as anything else runs on the machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # A failed assertion would otherwise start a debugger to print a stack.
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    try:
        import llama_cpp
    except (ImportError, OSError, RuntimeError) as error:
        raise EngineMissing(str(error)) from error
    callback = llama_cpp.llama_log_callback(_forward)
    _keep_alive.append(callback)
    llama_cpp.llama_log_set(callback, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    return llama_cpp


def _forward(level: int, text: bytes, _user_data: object) -> None:
    message = text.decode("utf-8", errors="replace").strip()
    if not message or level == _CONTINUED:
        return
    severity = _LEVELS.get(level, logging.DEBUG)
    if severity == logging.ERROR:
        _errors.append(message)
    _log.log(severity, "%s", message)
