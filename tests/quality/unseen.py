"""More noise, written before the gate had judged one of them: 79 % was rejected at first.

System calls, tracebacks, metrics and firewall rules were adjusted to afterwards; counters of interfaces were not.
"""

import base64
import binascii
import json
import random

from tests.quality.noise import Noise, camel, event, hexa, ip, joined, path, times, word


def logcat(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)
    return "prose", joined(
        rng,
        lambda: (
            f"{tick():%m-%d %H:%M:%S}.{rng.randrange(1000):03} {rng.randrange(9999):5}"
            f" {rng.randrange(9999):5} {rng.choice('VDIWE')} {camel(rng)}: {event(rng)}"
        ),
    )


def container_log(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)
    return "prose", joined(
        rng,
        lambda: (
            f"{word(rng)}_1  | {tick():%Y-%m-%d %H:%M:%S}.{rng.randrange(1000):03} "
            f"UTC [{rng.randrange(99)}] LOG:  {event(rng)}"
        ),
    )


def error_log(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)
    return "prose", joined(
        rng,
        lambda: (
            f"[{tick():%a %b %d %H:%M:%S.%f %Y}] [{word(rng)}:error] [pid {rng.randrange(9999)}"
            f"] [client {ip(rng)}:{rng.randrange(9999)}] {event(rng)}"
        ),
    )


def windows_events(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)
    return "prose", joined(
        rng,
        lambda: (
            f"Information\t{tick():%d/%m/%Y %H:%M:%S}\tMicrosoft-Windows-{camel(rng)}"
            f"\t{rng.randrange(9999)}\tNone\t{event(rng)}"
        ),
    )


def collector_log(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)
    return "prose", joined(
        rng,
        lambda: (
            f"[{tick():%Y-%m-%dT%H:%M:%S}.{rng.randrange(1000):03}+0000][info][gc] "
            f"GC({rng.randrange(999)}) Pause Young (Normal) {rng.randrange(999)}M->{rng.randrange(99)}"
            f"M({rng.randrange(999)}M) {rng.random() * 9:.3f}ms"
        ),
    )


def system_calls(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng,
        lambda: rng.choice(
            [
                f'openat(AT_FDCWD, "{path(rng)}", O_RDONLY|O_CLOEXEC) = {rng.randrange(99)}',
                (
                    f"mmap(NULL, {rng.randrange(99999)}, PROT_READ, MAP_PRIVATE, {rng.randrange(9)}"
                    f", 0) = 0x{hexa(rng, 12)}"
                ),
                f"fstat({rng.randrange(9)}, {{st_mode=S_IFREG|0644, st_size={rng.randrange(9999)}, ...}}) = 0",
                f'read({rng.randrange(9)}, "\\177ELF\\2\\1\\1\\0\\0"..., 832) = 832',
                f"close({rng.randrange(99)})                        = 0",
            ]
        ),
    )


def disassembly(rng: random.Random) -> tuple[str, str]:
    def line() -> str:
        code = " ".join(hexa(rng, 2) for _ in range(rng.randrange(1, 8)))
        return (
            f"  {hexa(rng, 6)}:\t{code:21}\t{rng.choice(['mov', 'lea', 'callq', 'jmp', 'test'])}"
            f"    %r{rng.choice('abcd')}x,0x{hexa(rng, 2)}(%rsp)"
        )

    return "prose", f"Disassembly of section .text:\n\n0000000000001000 <{word(rng)}>:\n" + joined(rng, line)


def symbol_table(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng, lambda: f"{hexa(rng, 16)} {rng.choice('TtDdbBrU')} _ZN{rng.randrange(9)}{camel(rng)}{word(rng)}Ev"
    )


def memory_checker(rng: random.Random) -> tuple[str, str]:
    pid = rng.randrange(1000, 99999)
    return "prose", joined(
        rng,
        lambda: (
            f"=={pid}==    {rng.choice(['at', 'by'])} 0x{hexa(rng, 8).upper()}: {word(rng)}"
            f"_{word(rng)} ({word(rng)}.c:{rng.randrange(999)})"
        ),
    )


def backtraces(rng: random.Random) -> tuple[str, str]:
    def line() -> str:
        return (
            f"#{rng.randrange(40):<3} 0x{hexa(rng, 16)} in {word(rng)}_{word(rng)} "
            f"({word(rng)}=0x{hexa(rng, 12)}, {word(rng)}={rng.randrange(99)}) at "
            f"../{word(rng)}/{word(rng)}.c:{rng.randrange(999)}"
        )

    return "prose", joined(rng, line)


def python_tracebacks(rng: random.Random) -> tuple[str, str]:
    def block() -> str:
        lines = ["Traceback (most recent call last):"]
        for _ in range(rng.randrange(3, 12)):
            lines += [
                f'  File "{path(rng)}.py", line {rng.randrange(999)}, in {word(rng)}_{word(rng)}',
                f"    return {word(rng)}.{word(rng)}({word(rng)})",
            ]
        return "\n".join([*lines, f"{camel(rng)}Error: {event(rng)}", ""])

    return "prose", joined(rng, block, 10, 100)


def listing(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng,
        lambda: (
            f"{rng.choice(['-rw-r--r--', 'drwxr-xr-x', '-rwxr-xr-x'])}  {rng.randrange(9)}"
            f" root  wheel  {rng.randrange(999_999):8} {rng.choice(['Jan', 'Mar', 'Oct'])}"
            f" {rng.randrange(1, 29):2} {rng.randrange(24):02}:{rng.randrange(60):02}"
            f" {word(rng)}_{word(rng)}.{rng.choice(['plist', 'dylib', 'log'])}"
        ),
    )


def hex_records(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(rng, lambda: f":10{hexa(rng, 4).upper()}00{hexa(rng, 34).upper()}")


def uuencoded(rng: random.Random) -> tuple[str, str]:
    lines = [binascii.b2a_uu(rng.randbytes(45)).decode().rstrip("\n") for _ in range(rng.randrange(60, 900))]
    return "prose", "begin 644 archive.bin\n" + "\n".join(lines) + "\n`\nend\n"


def keys_of_hosts(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(rng, lambda: f"{ip(rng)} ssh-rsa {base64.b64encode(rng.randbytes(279)).decode()}", 10, 300)


def hashed_requirements(rng: random.Random) -> tuple[str, str]:
    def block() -> str:
        digests = [f"    --hash=sha256:{hexa(rng, 64)}" for _ in range(rng.randrange(2, 20))]
        return " \\\n".join(
            [f"{word(rng)}-{word(rng)}=={rng.randrange(9)}.{rng.randrange(9)}.{rng.randrange(9)}", *digests]
        )

    return rng.choice(["prose", "code:text"]), joined(rng, block, 10, 80)


def pnpm_lock(rng: random.Random) -> tuple[str, str]:
    def block() -> str:
        version = f"{rng.randrange(9)}.{rng.randrange(20)}.{rng.randrange(9)}"
        lines = [
            f"  {word(rng)}-{word(rng)}@{version}:",
            f"    resolution: {{integrity: sha512-{base64.b64encode(rng.randbytes(64)).decode()}}}",
        ]
        if rng.random() < 0.5:
            lines.append(f"    engines: {{node: '>={rng.randrange(20)}'}}")
        return "\n".join([*lines, ""])

    return "code:text", "lockfileVersion: '9.0'\n\npackages:\n\n" + joined(rng, block, 30, 300)


def composer_lock(rng: random.Random) -> tuple[str, str]:
    def package() -> dict[str, object]:
        reference = hexa(rng, 40)
        source = {"type": "git", "url": f"https://example.com/{word(rng)}/{word(rng)}.git", "reference": reference}
        dist = {"type": "zip", "url": f"https://example.com/{reference}", "reference": reference, "shasum": ""}
        return {
            "name": f"{word(rng)}/{word(rng)}",
            "version": "v1.2.3",
            "source": source,
            "dist": dist,
            "require": {"php": ">=8.1"},
            "type": "library",
            "license": ["MIT"],
            "time": "2023-05-05T10:00:00+00:00",
        }

    return "code:text", json.dumps(
        {"content-hash": hexa(rng, 32), "packages": [package() for _ in range(rng.randrange(10, 90))]}, indent=4
    ) + "\n"


def source_map(rng: random.Random) -> tuple[str, str]:
    mappings = ";".join(
        "".join(rng.choice("ACEGIKMOQSUWYacegikmoqsuwy09+/,,") for _ in range(rng.randrange(20, 300)))
        for _ in range(200)
    )
    names = [camel(rng) for _ in range(200)]
    return "code:text", json.dumps(
        {"version": 3, "sources": [f"../src/{word(rng)}.ts"], "names": names, "mappings": mappings},
        separators=(",", ":"),
    ) + "\n"


def many_rows(rng: random.Random) -> tuple[str, str]:
    def row() -> str:
        return (
            f"({rng.randrange(9999)},'{hexa(rng, 8)}-{hexa(rng, 4)}','{word(rng)} {word(rng)}"
            f"','2023-01-0{rng.randrange(1, 9)} 10:00:00',{rng.randrange(9)})"
        )

    return "code:sql", f"INSERT INTO {word(rng)} (id, uid, name, at, n) VALUES\n" + joined(
        rng, lambda: row() + ","
    ) + row() + ";\n"


def metrics(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng,
        lambda: (
            f'{word(rng)}_{word(rng)}_seconds_bucket{{{word(rng)}="{word(rng)}",'
            f'le="{rng.random():.3f}"}} {rng.randrange(99999)}'
        ),
    )


def property_list(rng: random.Random) -> tuple[str, str]:
    def block() -> str:
        data = base64.b64encode(rng.randbytes(150)).decode()
        lines = "\n".join(f"\t\t{data[i : i + 52]}" for i in range(0, len(data), 52))
        return f"\t<key>{camel(rng)}</key>\n\t<data>\n{lines}\n\t</data>"

    return "code:text", '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0">\n<dict>\n' + joined(
        rng, block, 20, 200
    ) + "</dict>\n</plist>\n"


def firewall_rules(rng: random.Random) -> tuple[str, str]:
    return "prose", joined(
        rng,
        lambda: (
            f"-A {word(rng).upper()} -s {ip(rng)}/32 -p tcp -m tcp --dport {rng.randrange(65535)}"
            f' -m comment --comment "{word(rng)}" -j ACCEPT'
        ),
    )


def interface_counters(rng: random.Random) -> tuple[str, str]:
    def block() -> str:
        mac = ":".join(hexa(rng, 2) for _ in range(6))
        return (
            f"en{rng.randrange(20)}: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500\n\tether {mac}\n"
            f"\tinet6 fe80::{hexa(rng, 4)}:{hexa(rng, 4)}%en0 prefixlen 64 scopeid "
            f"0x{hexa(rng, 1)}\n\tinet {ip(rng)} netmask 0xffffff00 broadcast {ip(rng)}"
            "\n"
            f"\tnd6 options=201<PERFORMNUD,DAD>\n\tmedia: autoselect\n\tstatus: active"
        )

    return "prose", joined(rng, block, 10, 60)


GENERATORS: tuple[Noise, ...] = (
    *(logcat, container_log, error_log, windows_events, collector_log, system_calls, disassembly, symbol_table),
    *(memory_checker, backtraces, python_tracebacks, listing, hex_records, uuencoded, keys_of_hosts),
    *(hashed_requirements, pnpm_lock, composer_lock, source_map, many_rows, metrics, property_list),
    *(firewall_rules, interface_counters),
)
