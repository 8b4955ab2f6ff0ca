"""Garage in a process of its own that is killed at a named point."""

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


def run_once(driver: str, *arguments: str) -> int:
    """Runs one of the drivers beside this file; its code, which is -9 when it was killed. Any other failure is told."""
    finished = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(driver)), *arguments],
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.returncode in (0, -9), finished.stderr[-2000:]
    return finished.returncode


def kill_at(point: str, count: int) -> None:
    module_name, _, function = point.rpartition(".")
    module = importlib.import_module(module_name)
    original, calls = getattr(module, function), 0

    def killing(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        result = original(*arguments, **named)
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(module, function, killing)
