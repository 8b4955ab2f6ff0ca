"""What machines write: a generator a kind, each from a seeded random source, in the shape that the real program has."""

import base64
import json
import random
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Noise = Callable[[random.Random], tuple[str, str]]
"""The kind of document and the text."""

WORDS = (
    *("account", "action", "agent", "async", "auth", "backend", "batch", "buffer", "cache"),
    *("channel", "client", "cluster", "commit", "config", "connection", "context", "control"),
    *("core", "cursor", "daemon", "data", "default", "device", "dispatch", "driver", "engine"),
    *("error", "event", "factory", "filter", "frame", "handler", "header", "helper", "index"),
    *("input", "instance", "kernel", "layer", "list", "loader", "manager", "memory"),
    *("message", "metric", "module", "monitor", "network", "node", "object", "observer"),
    *("option", "parser", "path", "pipeline", "plugin", "pool", "process", "proxy", "query"),
    *("queue", "reader", "record", "registry", "render", "request", "resource", "response"),
    *("result", "router", "runtime", "scheduler", "schema", "server", "service", "session"),
    *("socket", "source", "state", "status", "storage", "stream", "string", "sync", "system"),
    *("table", "target", "task", "thread", "timer", "token", "tracker", "update", "user"),
    *("utils", "value", "view", "watcher", "worker", "writer"),
)
EVENTS = (
    "Connection from {ip} port {n} accepted",
    "Failed to open {path}: No such file or directory",
    "{word} {word} started in {n} ms",
    "Reached target {word}",
    "session opened for user {user} by (uid={n})",
    "received signal {n}, shutting down {word} {word}",
    "GET {path} took {n} ms and returned {n} bytes",
    "unable to resolve host {word}.{word}.internal",
    "{word}: retrying request {hex} after {n} seconds",
    "cache miss for key {word}:{hex}",
    "Starting {word} {word} service...",
    "dropping packet from {ip}, unknown {word}",
)


def hexa(rng: random.Random, digits: int) -> str:
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def ip(rng: random.Random) -> str:
    return ".".join(str(rng.randrange(1, 255)) for _ in range(4))


def word(rng: random.Random) -> str:
    return rng.choice(WORDS)


def camel(rng: random.Random, words: int = 2) -> str:
    return "".join(word(rng).title() for _ in range(words))


def path(rng: random.Random) -> str:
    return "/" + "/".join(word(rng) for _ in range(rng.randrange(2, 6)))


def event(rng: random.Random) -> str:
    text = rng.choice(EVENTS)
    for name, make in {"ip": ip, "path": path, "word": word, "user": word}.items():
        while f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", make(rng), 1)
    while "{n}" in text:
        text = text.replace("{n}", str(rng.randrange(1, 99_999)), 1)
    return text.replace("{hex}", hexa(rng, 12))


def times(rng: random.Random) -> Callable[[], datetime]:
    now = datetime(2023, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(60_000_000))

    def tick() -> datetime:
        nonlocal now
        now += timedelta(seconds=rng.expovariate(0.2))
        return now

    return tick


def joined(rng: random.Random, line: Callable[[], str], least: int = 60, most: int = 1500) -> str:
    return "\n".join(line() for _ in range(rng.randrange(least, most))) + "\n"


def syslog(rng: random.Random) -> tuple[str, str]:
    tick, host = times(rng), word(rng)
    line = lambda: f"{tick():%b %e %H:%M:%S} {host} {word(rng)}[{rng.randrange(1, 65536)}]: {event(rng)}"  # noqa: E731 - one of many
    return "prose", joined(rng, line)


def journal(rng: random.Random) -> tuple[str, str]:
    tick, host = times(rng), word(rng)
    line = lambda: f"{tick():%Y-%m-%dT%H:%M:%S%z} {host} systemd[1]: {event(rng)}"  # noqa: E731 - one of many
    return "prose", joined(rng, line)


def access_log(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)

    def line() -> str:
        asked = f'"{rng.choice(["GET", "POST", "HEAD"])} {path(rng)} HTTP/1.1" {rng.choice([200, 304, 404, 500])}'
        agent = rng.choice(["Mozilla/5.0 (X11; Linux x86_64)", "curl/8.5.0", "Googlebot/2.1"])
        return f'{ip(rng)} - - [{tick():%d/%b/%Y:%H:%M:%S %z}] {asked} {rng.randrange(90_000)} "-" "{agent}"'

    return "prose", joined(rng, line)


def json_log(rng: random.Random) -> tuple[str, str]:
    tick, name = times(rng), rng.choice(["time", "ts", "timestamp", "@timestamp"])

    def line() -> str:
        fields = {name: tick().isoformat(), "level": rng.choice(["info", "warn", "debug"]), "msg": event(rng)}
        return json.dumps(fields | {"logger": f"{word(rng)}.{word(rng)}", "pid": rng.randrange(9999)})

    return rng.choice(["prose", "code:text"]), joined(rng, line)


def application_log(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)

    def line() -> str:
        level = rng.choice(["INFO", "DEBUG", "WARN", "ERROR"])
        first = f"{tick():%Y-%m-%d %H:%M:%S},{rng.randrange(1000):03} {level} [{word(rng)}-{rng.randrange(9)}] "
        first += f"com.{word(rng)}.{camel(rng)} - {event(rng)}"
        if level == "ERROR" and rng.random() < 0.3:
            frames = [f"\tat com.{word(rng)}.{camel(rng)}.{word(rng)}({camel(rng)}.java:{rng.randrange(900)})"]
            return "\n".join(
                [first, f"java.lang.{camel(rng, 1)}Exception: {event(rng)}", *frames * rng.randrange(3, 9)]
            )
        return first

    return "prose", joined(rng, line)


def kernel_log(rng: random.Random) -> tuple[str, str]:
    seconds = 0.0

    def line() -> str:
        nonlocal seconds
        seconds += rng.expovariate(3)
        device = f"{rng.choice(['pci', 'usb', 'ata', 'nvme'])} {hexa(rng, 4)}:{hexa(rng, 2)}:00.0"
        return f"[{seconds:12.6f}] {device}: {event(rng)}"

    return "prose", joined(rng, line)


def hexdump(rng: random.Random) -> tuple[str, str]:
    data = rng.randbytes(rng.randrange(1024, 30_000))
    style = rng.choice(["xxd", "canonical", "od", "words"])
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        shown = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        pairs = [row[i : i + 2].hex() for i in range(0, 16, 2)]
        single = " ".join(f"{b:02x}" for b in row)
        lines.append(
            {
                "xxd": f"{at:08x}: {' '.join(pairs):39}  {shown}",
                "canonical": f"{at:08x}  {single[:23]}  {single[24:]:23}  |{shown}|",
                "od": f"{at:07o} " + " ".join(f"{int(pair, 16):06o}" for pair in pairs if pair),
                "words": f"{at:07x} {' '.join(pairs)}",
            }[style]
        )
    return "prose", "\n".join(lines) + "\n"


def encoded(rng: random.Random) -> tuple[str, str]:
    text = base64.b64encode(rng.randbytes(rng.randrange(200, 60_000))).decode()
    return "prose", "\n".join(textwrap.wrap(text, rng.choice([64, 76]))) + "\n"


def certificates(rng: random.Random) -> tuple[str, str]:
    blocks = []
    for _ in range(rng.randrange(1, 30)):
        body = textwrap.wrap(base64.b64encode(rng.randbytes(rng.randrange(700, 1500))).decode(), 64)
        name = rng.choice(["CERTIFICATE", "RSA PRIVATE KEY", "PUBLIC KEY"])
        blocks.append("\n".join([f"-----BEGIN {name}-----", *body, f"-----END {name}-----"]))
    return "prose", "\n".join(blocks) + "\n"


def script_bundle(rng: random.Random) -> tuple[str, str]:
    def v() -> str:
        return rng.choice("abcdefghijklmnopqrstuvwxyz")

    def piece() -> str:
        forms = (
            f"function {v()}({v()},{v()}){{return {v()}.{word(rng)}({v()},{rng.randrange(99)})}}",
            f'var {v()}={v()}({rng.randrange(9999)}),{v()}="{word(rng)}-{word(rng)}";',
            f'if(!{v()}||{v()}.{word(rng)}!=={v()})throw new Error("{word(rng)} {word(rng)} is not a {word(rng)}");',
            f"{v()}.prototype.{word(rng)}=function({v()}){{this.{word(rng)}={v()},this._{word(rng)}=!0}},",
            (
                f"{v()}.exports={{{word(rng)}:{v()},{word(rng)}:()=>{v()}}}}},{rng.randrange(9999)}"
                f":({v()},{v()},{v()})=>{{"
            ),
            f"for(var {v()}=0;{v()}<{v()}.length;{v()}++)switch({v()}){{case {rng.randrange(9)}:return {v()}[{v()}]}}",
        )
        return rng.choice(forms)

    lines = ["".join(piece() for _ in range(rng.randrange(100, 900))) for _ in range(rng.choice([1, 1, 2, 5, 80]))]
    return "code:javascript", "/*! " + word(rng) + " v1.2.3 | MIT */\n" + "\n".join(lines) + "\n"


def style_bundle(rng: random.Random) -> tuple[str, str]:
    def rule() -> str:
        names = ",".join(f".{word(rng)}-{word(rng)}:hover" for _ in range(rng.randrange(1, 4)))
        values = ";".join(f"{word(rng)}-{word(rng)}:{rng.randrange(99)}px 0 #{hexa(rng, 6)}" for _ in range(4))
        return f"{names}{{{values}}}"

    return "code:css", "".join(rule() for _ in range(rng.randrange(200, 900))) + "\n"


def _version(rng: random.Random) -> str:
    return ".".join(str(rng.randrange(20)) for _ in range(3))


def _integrity(rng: random.Random) -> str:
    return "sha512-" + base64.b64encode(rng.randbytes(64)).decode()


def npm_lock(rng: random.Random) -> tuple[str, str]:
    packages: dict[str, object] = {}
    for _ in range(rng.randrange(20, 300)):
        name, version = f"{word(rng)}-{word(rng)}", _version(rng)
        entry: dict[str, object] = {"version": version}
        entry["resolved"] = f"https://registry.example.com/{name}/-/{name}-{version}.tgz"
        entry["integrity"] = _integrity(rng)
        if rng.random() < 0.5:
            entry["dev"] = True
        entry["license"] = "MIT"
        if rng.random() < 0.5:
            entry["dependencies"] = {
                f"{word(rng)}-{word(rng)}": f"^{_version(rng)}" for _ in range(rng.randrange(1, 6))
            }
        entry["engines"] = {"node": f">={rng.randrange(6, 20)}"}
        packages[f"node_modules/{name}"] = entry
    return "code:text", json.dumps({"name": word(rng), "lockfileVersion": 3, "packages": packages}, indent=2) + "\n"


def yarn_lock(rng: random.Random) -> tuple[str, str]:
    lines = ["# THIS IS AN AUTOGENERATED FILE. DO NOT EDIT THIS FILE DIRECTLY.", "# yarn lockfile v1", ""]
    for _ in range(rng.randrange(30, 300)):
        name, version = f"{word(rng)}-{word(rng)}", _version(rng)
        lines += [f"{name}@^{version}:", f'  version "{version}"']
        lines += [f'  resolved "https://registry.example.com/{name}/-/{name}-{version}.tgz#{hexa(rng, 40)}"']
        lines += [f"  integrity {_integrity(rng)}"]
        if rng.random() < 0.4:
            lines += ["  dependencies:", *(f'    {word(rng)} "^{_version(rng)}"' for _ in range(rng.randrange(1, 5)))]
        lines.append("")
    return rng.choice(["prose", "code:text"]), "\n".join(lines)


def poetry_lock(rng: random.Random) -> tuple[str, str]:
    lines = ["# This file is automatically @generated by Poetry 1.8.2 and should not be changed by hand.", ""]
    for _ in range(rng.randrange(8, 100)):
        name, version = word(rng), _version(rng)
        lines += ["[[package]]", f'name = "{name}"', f'version = "{version}"', f'description = "{event(rng)}"']
        lines += ["optional = false", 'python-versions = ">=3.8"', "files = ["]
        for _ in range(rng.randrange(2, 20)):
            lines.append(f'    {{file = "{name}-{version}-py3-none-any.whl", hash = "sha256:{hexa(rng, 64)}"}},')
        lines += ["]", ""]
    return "code:text", "\n".join(lines)


def cargo_lock(rng: random.Random) -> tuple[str, str]:
    lines = ["# This file is automatically @generated by Cargo.", "version = 3", ""]
    for _ in range(rng.randrange(20, 300)):
        lines += ["[[package]]", f'name = "{word(rng)}-{word(rng)}"', f'version = "{_version(rng)}"']
        lines += ['source = "registry+https://github.com/rust-lang/index"', f'checksum = "{hexa(rng, 64)}"']
        if rng.random() < 0.6:
            lines += ["dependencies = [", *(f' "{word(rng)}",' for _ in range(rng.randrange(1, 9))), "]"]
        lines.append("")
    return rng.choice(["prose", "code:text"]), "\n".join(lines)


def go_sum(rng: random.Random) -> tuple[str, str]:
    def line() -> str:
        digest = base64.b64encode(rng.randbytes(32)).decode()
        return f"github.com/{word(rng)}/{word(rng)} v{_version(rng)}{rng.choice(['', '/go.mod'])} h1:{digest}"

    return "prose", joined(rng, line, 10, 400)


def manifest(rng: random.Random) -> tuple[str, str]:
    digits, style = rng.choice([32, 40, 64]), rng.randrange(3)

    def line() -> str:
        name = path(rng)[1:]
        if style == 2:
            digest = base64.urlsafe_b64encode(rng.randbytes(32)).decode().rstrip("=")
            return f"{name}.py,sha256={digest},{rng.randrange(99_999)}"
        return f"SHA256 ({name}) = {hexa(rng, 64)}" if style else f"{hexa(rng, digits)}  {name}"

    return "prose", joined(rng, line, 5, 800)


def insertions(rng: random.Random) -> tuple[str, str]:
    name = word(rng)

    def line() -> str:
        row = f"({rng.randrange(9999)},'{word(rng)} {word(rng)}','{word(rng)}@{word(rng)}.org',NULL,{rng.random():.4f})"
        return f"INSERT INTO `{name}` VALUES {row};"

    return "code:sql", joined(rng, line)


def byte_array(rng: random.Random) -> tuple[str, str]:
    rows = ("    " + ", ".join(f"0x{b:02x}" for b in rng.randbytes(12)) + "," for _ in range(rng.randrange(60, 900)))
    return "code:c", "static const unsigned char data[] = {\n" + "\n".join(rows) + "\n};\n"


GENERATORS: tuple[Noise, ...] = (
    *(syslog, journal, access_log, json_log, application_log, kernel_log),
    *(hexdump, encoded, certificates, script_bundle, style_bundle),
    *(npm_lock, yarn_lock, poetry_lock, cargo_lock, go_sum, manifest, insertions, byte_array),
)
