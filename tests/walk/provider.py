"""A small cloud provider as a file system (FUSE, spoken directly to the kernel): `provider.py FOLDER`, plan on stdin.

The plan is JSON: {"name": {"text": ..., "way": ...}}. A file has its true size and no blocks until it was read to its
end. Ways: "deliver"; "hang" (a read is never answered); "hang on opening" (nor is that, and who waits for it cannot be
killed); "fail" (a read ends with EIO); "short" (half of it is delivered). Every opening is told on standard output, a
line each, after "mounted".
"""

import ctypes
import errno
import json
import os
import stat
import struct
import sys

ROOT = 1
ASYNC_READ = 1  # a read that waits can be killed, as on the file systems that libfuse serves
MTIME = 1_700_000_000


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Provider:
    """The files by node id, and the answers to the kernel's requests."""

    def __init__(self, plan: dict[str, dict[str, str]]) -> None:
        self.names = dict(enumerate(sorted(plan), ROOT + 1))
        self.texts = {number: plan[name]["text"].encode() for number, name in self.names.items()}
        self.ways = {number: plan[name]["way"] for number, name in self.names.items()}
        self.here: set[int] = set()

    def attributes(self, node: int) -> bytes:
        mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o644
        size = len(self.texts.get(node, b""))
        blocks = -(-size // 512) if node in self.here else 0
        times = (MTIME, MTIME, MTIME, 0, 0, 0)
        return struct.pack("<6Q10I", node, size, blocks, *times[:3], *times[3:], mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, opcode: int, node: int, body: bytes) -> bytes | int | None:
        """The payload of an answer, an error number, or None for no answer at all."""
        match opcode:
            case 26:  # INIT
                return struct.pack("<4I2H2I2H8I", 7, 31, 65536, ASYNC_READ, 12, 9, 65536, 1, 16, 0, *[0] * 8)
            case 1:  # LOOKUP
                return self.find(os.fsdecode(body.rstrip(b"\0")))
            case 3:  # GETATTR
                return struct.pack("<Q2I", 0, 0, 0) + self.attributes(node)
            case 14 | 27:  # OPEN, OPENDIR
                return self.open(node)
            case 28:  # READDIR
                return self.listing(struct.unpack_from("<Q", body, 8)[0])
            case 15:  # READ
                return self.read(node, *struct.unpack_from("<QI", body, 8))
            case 17:  # STATFS
                return struct.pack("<5Q4I6I", 1000, 1000, 1000, 100, 100, 4096, 255, 4096, 0, *[0] * 6)
            case 18 | 25 | 29:  # RELEASE, FLUSH, RELEASEDIR
                return b""
            case 2 | 36 | 42:  # FORGET, INTERRUPT, BATCH_FORGET
                return None
        return errno.ENOSYS

    def find(self, name: str) -> bytes | int:
        found = next((number for number, known in self.names.items() if known == name), None)
        return errno.ENOENT if found is None else struct.pack("<4Q2I", found, *[0] * 5) + self.attributes(found)

    def open(self, node: int) -> bytes | None:
        if node != ROOT:
            tell(self.names[node])
        return None if self.ways.get(node) == "hang on opening" else struct.pack("<Q2I", node, 0, 0)

    def listing(self, offset: int) -> bytes:
        entries = b""
        for place, (number, name) in enumerate(self.names.items(), 1):
            if place > offset:
                raw = os.fsencode(name)
                entry = struct.pack("<2Q2I", number, place, len(raw), stat.S_IFREG >> 12) + raw
                entries += entry + b"\0" * (-len(entry) % 8)
        return entries

    def read(self, node: int, offset: int, size: int) -> bytes | int | None:
        text = self.texts[node]
        match self.ways[node]:
            case "hang":
                return None
            case "fail":
                return errno.EIO
            case "short":
                text = text[: len(text) // 2]
        if offset + size >= len(text):
            self.here.add(node)
        return text[offset : offset + size]


def serve(device: int, provider: Provider) -> None:
    """Answer requests until the file system is unmounted."""
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.ENOENT):
                continue
            return
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        answer = provider.answer(opcode, node, request[40:])
        if answer is None:
            continue
        code, payload = (-answer, b"") if isinstance(answer, int) else (0, answer)
        try:
            os.write(device, struct.pack("<IiQ", 16 + len(payload), code, unique) + payload)
        except OSError:
            continue  # who asked is gone


def main() -> None:
    folder, plan = sys.argv[1], json.load(sys.stdin)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"provider", os.fsencode(folder), b"fuse.provider", 6, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    tell("mounted")
    serve(device, Provider(plan))


if __name__ == "__main__":
    main()
