"""A last set of noise, which the gate has not been adjusted to: what to expect of kinds that nobody thought of."""

import base64
import json
import random

from tests.quality.noise import Noise, camel, event, hexa, ip, joined, path, times, word


def mail_server(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)

    def line() -> str:
        program = f"postfix/{rng.choice(['smtpd', 'qmgr', 'cleanup'])}[{rng.randrange(9999)}]"
        return (
            f"{tick():%b %d %H:%M:%S} mail {program}: {hexa(rng, 10).upper()}: "
            f"from=<{word(rng)}@{word(rng)}.org>, nrcpt=1"
        )

    return "prose", joined(rng, line)


def key_value_log(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)
    return "prose", joined(
        rng, lambda: f'time="{tick():%Y-%m-%dT%H:%M:%SZ}" level=info msg="{event(rng)}" {word(rng)}={rng.randrange(99)}'
    )


def database_log(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)

    def entry() -> str:
        first = (
            f"{tick():%Y-%m-%d %H:%M:%S}.{rng.randrange(1000):03} CET [{rng.randrange(9999)}] {word(rng)}@{word(rng)} "
        )
        if rng.random() < 0.3:
            return f"{first}ERROR:  duplicate key value\n\tDETAIL:  Key ({word(rng)})=({rng.randrange(99)}) exists."
        return f"{first}LOG:  duration: {rng.random() * 900:.3f} ms"

    return "prose", joined(rng, entry)


def build_output(rng: random.Random) -> tuple[str, str]:
    def line() -> str:
        name = f"{word(rng)}/{word(rng)}_{word(rng)}"
        flags = f"-I{path(rng)} -D{word(rng).upper()}=1 -O2 -Wall -fPIC"
        return f"[{rng.randrange(999)}/999] /usr/bin/cc {flags} -c -o {name}.o {name}.c"

    return "prose", joined(rng, line)


def packages_fetched(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng,
        lambda: (
            f"Get:{rng.randrange(999)} http://mirror.example.org/debian bookworm/main amd64 "
            f"lib{word(rng)}{rng.randrange(9)} amd64 {rng.randrange(9)}.{rng.randrange(99)}"
            f"-{rng.randrange(9)} [{rng.randrange(999)} kB]"
        ),
    )


def trace_of_routes(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng,
        lambda: (
            f"{rng.randrange(1, 30):2}  {word(rng)}-{word(rng)}.example.net ({ip(rng)})  "
            f"{rng.random() * 90:.3f} ms  {rng.random() * 90:.3f} ms  {rng.random() * 90:.3f} ms"
        ),
    )


def profile(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng,
        lambda: (
            f"{rng.randrange(99999):9} {rng.random():8.3f} {rng.random():8.3f} {rng.random():8.3f} {rng.random():8.3f} "
            f"{word(rng)}.py:{rng.randrange(999)}({word(rng)}_{word(rng)})"
        ),
    )


def message_of_keys(rng: random.Random) -> tuple[str, str]:
    text = base64.b64encode(rng.randbytes(rng.randrange(2_000, 20_000))).decode()
    body = "\n".join(text[i : i + 64] for i in range(0, len(text), 64))
    return "prose", f"-----BEGIN PGP MESSAGE-----\nVersion: GnuPG v2\n\n{body}\n=abcd\n-----END PGP MESSAGE-----\n"


def thermal_table(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng,
        lambda: (
            f"T{word(rng)[:3]}{rng.randrange(9)}  [flt ]  {rng.random() * 90:.4f} "
            f"(bytes {' '.join(hexa(rng, 2) for _ in range(4))})"
        ),
    )


def power_log(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)
    return "prose", joined(
        rng,
        lambda: (
            f"{tick():%Y-%m-%d %H:%M:%S} +0100 Assertions          \tPID {rng.randrange(999)}({word(rng)}) Created "
            f'PreventUserIdleSystemSleep "com.{word(rng)}.{word(rng)}" 00:00:00  id:0x0{hexa(rng, 9)}'
        ),
    )


def records(rng: random.Random) -> tuple[str, str]:
    rows = [
        {word(rng): rng.random(), "id": hexa(rng, 24), "values": [rng.random() for _ in range(9)]} for _ in range(300)
    ]
    return "code:text", json.dumps(rows, separators=(",", ":")) + "\n"


def translation_units(rng: random.Random) -> tuple[str, str]:
    def row() -> str:
        return "  {" + ", ".join(str(rng.randrange(65536)) for _ in range(12)) + "},"

    return "code:c", "static const int table[][12] = {\n" + joined(rng, row) + "};\n"


def modules_loaded(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng,
        lambda: (
            f"{word(rng)}_{word(rng)} {rng.randrange(99999)} {rng.randrange(9)} {word(rng)}"
            f"_{camel(rng)}, Live 0x{hexa(rng, 16)}"
        ),
    )


GENERATORS: tuple[Noise, ...] = (
    *(mail_server, key_value_log, database_log, build_output, packages_fetched, trace_of_routes, profile),
    *(message_of_keys, thermal_table, power_log, records, translation_units, modules_loaded),
)
