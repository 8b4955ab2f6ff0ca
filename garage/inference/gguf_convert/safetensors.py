"""Reading the safetensors format: a JSON header, then raw little-endian arrays (huggingface/safetensors, README)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
_LONGEST_HEADER = 100_000_000  # bytes; the reference implementation's own limit


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where one array lies in its file. Nothing is read before `read`."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    start: int

    def read(self) -> NDArray[np.float32]:
        """The array as float32, in a buffer of its own."""
        raw = np.fromfile(self.path, _DTYPES[self.dtype], offset=self.start, count=math.prod(self.shape))
        if self.dtype == "BF16":
            # bfloat16 is the upper half of a float32.
            return (raw.astype("<u4") << np.uint32(16)).view("<f4").reshape(self.shape)
        return raw.astype(np.float32, copy=False).reshape(self.shape)


def read_index(path: Path) -> dict[str, StoredTensor]:
    """The floating-point tensors of a file by name, in header order; integer ones (position ids) are left out.

    Raises `ValueError` for a header that does not describe the file.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= min(_LONGEST_HEADER, size - 8):
            raise ValueError(f"{path.name} is not a safetensors file: its header would be {length} bytes long")
        header = json.loads(file.read(length))
    index: dict[str, StoredTensor] = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] not in _DTYPES:
            continue
        begin, end = (8 + length + int(offset) for offset in entry["data_offsets"])
        tensor = StoredTensor(path, entry["dtype"], tuple(entry["shape"]), begin)
        wanted = math.prod(tensor.shape) * _DTYPES[tensor.dtype].itemsize
        if end > size or end - begin != wanted:
            raise ValueError(f"{path.name} is damaged: {name} should be {wanted} bytes inside the file")
        index[name] = tensor
    return index
