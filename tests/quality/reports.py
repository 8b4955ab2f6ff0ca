"""What diagnostic programs write about a machine: listings of processes, sockets, memory, devices, stacks."""

import random

from tests.quality.noise import Noise, camel, event, hexa, ip, joined, path, times, word

DAEMONS = (
    *("kernel_task", "launchd", "logd", "cfprefsd", "mds_stores", "WindowServer"),
    *("coreaudiod", "bluetoothd", "locationd", "syspolicyd"),
)


def processes(rng: random.Random) -> tuple[str, str]:
    def line() -> str:
        user = rng.choice(["root", "_windowserver", "anna", "_coreaudiod"])
        size = f"{rng.randrange(4_000_000, 40_000_000):8} {rng.randrange(1000, 900_000):6}"
        name = f"{path(rng)}/{rng.choice(DAEMONS)}"
        use = f"{rng.random() * 9:4.1f} {rng.random() * 4:4.1f}"
        return (
            f"{user:16} {rng.randrange(1, 99999):5} {use} {size}   ??  Ss   {rng.randrange(1, 12):2}"
            f":04AM   0:{rng.random() * 60:05.2f} {name}"
        )

    return "prose", "USER               PID %CPU %MEM      VSZ    RSS   TT  STAT STARTED      TIME COMMAND\n" + joined(
        rng, line
    )


def sockets(rng: random.Random) -> tuple[str, str]:
    def line() -> str:
        ends = f"{ip(rng)}.{rng.randrange(1024, 65535):<6} {ip(rng)}.{rng.choice([443, 80, 5223, 993])}"
        state = rng.choice(["ESTABLISHED", "CLOSE_WAIT", "LISTEN"])
        return f"tcp4 {rng.randrange(9):7} {rng.randrange(9):6}  {ends:44} {state}"

    return "prose", "Active Internet connections (including servers)\n" + joined(rng, line)


def open_files(rng: random.Random) -> tuple[str, str]:
    def line() -> str:
        head = f"{rng.choice(DAEMONS)[:9]:9} {rng.randrange(1, 99999):5} root"
        if rng.random() < 0.3:
            return f"{head}  {rng.randrange(99):3}u  unix 0x{hexa(rng, 16)}        0t0        ->0x{hexa(rng, 16)}"
        kind = rng.choice(["txt", "3r", "12u", "cwd"])
        return (
            f"{head}  {kind:>4}   REG    1,{rng.randrange(20):<5} {rng.randrange(9_999_999):9}"
            f" {rng.randrange(99_999_999):9} {path(rng)}"
        )

    return "prose", "COMMAND     PID USER   FD      TYPE DEVICE SIZE/OFF    NODE NAME\n" + joined(rng, line)


def sampled_stacks(rng: random.Random) -> tuple[str, str]:
    def thread() -> str:
        lines = [
            (
                f"  Thread 0x{hexa(rng, 6)}    DispatchQueue {rng.randrange(99)}        "
                "  1001 samples (1-1001)    priority 31"
            )
        ]
        for depth in range(rng.randrange(4, 14)):
            image = rng.choice(["libsystem_pthread.dylib", "CoreFoundation", "libdispatch.dylib", "AppKit"])
            lines.append(
                f"  {'  ' * depth}{rng.randrange(1, 1001)}  _{camel(rng)} + {rng.randrange(999)}"
                f" ({image} + {rng.randrange(99999)}) [0x{hexa(rng, 12)}]"
            )
        return "\n".join(lines)

    head = f"Process:         {rng.choice(DAEMONS)} [{rng.randrange(9999)}]\nPath:            {path(rng)}\n\n"
    return "prose", head + joined(rng, thread, 10, 200)


def crash_report(rng: random.Random) -> tuple[str, str]:
    lines = [f"Process:               {camel(rng)} [{rng.randrange(9999)}]", f"Path:                  {path(rng)}", ""]
    lines += ["Exception Type:        EXC_BAD_ACCESS (SIGSEGV)", "Termination Reason:    SIGNAL 11", ""]
    for number in range(rng.randrange(4, 30)):
        lines.append(f"Thread {number}:: Dispatch queue: com.{word(rng)}.{word(rng)}")
        for frame in range(rng.randrange(5, 25)):
            lines.append(
                f"{frame:<3} {rng.choice(['AppKit', 'libdispatch.dylib', 'Foundation']):34}"
                f"\t       0x{hexa(rng, 12)} {camel(rng)} + {rng.randrange(999)}"
            )
        lines.append("")
    lines += [f"    x{n}: 0x{hexa(rng, 16)}   x{n + 1}: 0x{hexa(rng, 16)}" for n in range(0, 28, 2)]
    lines += [
        (
            f"       0x{hexa(rng, 9)} -        0x{hexa(rng, 9)} com.{word(rng)}.{word(rng)}"
            f" (1.0) <{hexa(rng, 32)}> {path(rng)}"
        )
        for _ in range(rng.randrange(20, 200))
    ]
    return "prose", "\n".join(lines) + "\n"


def memory_map(rng: random.Random) -> tuple[str, str]:
    if rng.random() < 0.5:
        return "prose", joined(
            rng,
            lambda: (
                f"{hexa(rng, 12)}-{hexa(rng, 12)} {rng.choice(['r-xp', 'rw-p', 'r--p'])}"
                f" {hexa(rng, 8)} fd:01 {rng.randrange(999999)}      {path(rng)}.so"
            ),
        )
    return "prose", joined(
        rng,
        lambda: (
            f"__{rng.choice(['TEXT', 'DATA', 'LINKEDIT']):20} {hexa(rng, 12)}-{hexa(rng, 12)}"
            f" [ {rng.randrange(4, 9999)}K  {rng.randrange(4, 999)}K     0K     0K] "
            f"r-x/rwx SM=COW          {path(rng)}"
        ),
    )


def device_tree(rng: random.Random) -> tuple[str, str]:
    def node() -> str:
        bar = "  | " * rng.randrange(1, 5)
        lines = [
            (
                f"{bar}+-o {camel(rng)}  <class {camel(rng)}, id 0x{hexa(rng, 9)}, "
                f"registered, matched, active, busy 0 (0 ms), retain {rng.randrange(9)}"
                ">"
            )
        ]
        lines.append(f"{bar}| {{")
        for _ in range(rng.randrange(2, 12)):
            value = rng.choice([str(rng.randrange(99)), "Yes", f"<{hexa(rng, 16)}>", f'"{word(rng)}"'])
            lines.append(f'{bar}|   "{camel(rng)}" = {value}')
        return "\n".join([*lines, f"{bar}| }}"])

    return "prose", joined(rng, node, 10, 200)


def strings_of_a_program(rng: random.Random) -> tuple[str, str]:
    def line() -> str:
        forms = (
            f"_ZN{rng.randrange(3, 20)}{camel(rng)}{rng.randrange(3, 9)}{word(rng)}Ev",
            f"{word(rng)}_{word(rng)}_{word(rng)}",
            "".join(rng.choice("ABCHIUVWt$@[]^_\\fLl;<>|%&0189 ") for _ in range(rng.randrange(4, 9))),
            f"GLIBC_2.{rng.randrange(2, 38)}",
            f".{rng.choice(['text', 'rodata', 'bss', 'dynsym', 'rela.plt', 'note.gnu.build-id'])}",
            f"{path(rng)}/lib{word(rng)}.so.{rng.randrange(9)}",
            f"%s: {word(rng)} %d %s",
            event(rng),
        )
        return rng.choices(forms, [5, 5, 6, 1, 1, 2, 1, 1])[0]

    return "prose", joined(rng, line, 200, 3000)


def vector_drawing(rng: random.Random) -> tuple[str, str]:
    def path_of_points() -> str:
        parts = (
            f"{rng.choice('cCsSlLhvqQ')}{rng.uniform(-99, 99):.2f}{rng.choice([',', ' '])}{rng.uniform(-99, 99):.2f}"
            for _ in range(rng.randrange(100, 900))
        )
        return f'<path fill="#{hexa(rng, 6)}" d="M{rng.random() * 99:.2f} {rng.random() * 99:.2f}{"".join(parts)}z"/>'

    body = "".join(path_of_points() for _ in range(rng.randrange(1, 60)))
    return "code:text", f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">{body}</svg>\n'


def packets(rng: random.Random) -> tuple[str, str]:
    tick = times(rng)
    return "prose", joined(
        rng,
        lambda: (
            f"{tick():%H:%M:%S.%f} IP {ip(rng)}.{rng.randrange(65535)} > {ip(rng)}"
            f".443: Flags [P.], seq {rng.randrange(9999)}:{rng.randrange(9999)}, "
            f"ack {rng.randrange(9999)}, win {rng.randrange(999)}, length {rng.randrange(1460)}"
        ),
    )


def coverage(rng: random.Random) -> tuple[str, str]:
    if rng.random() < 0.5:
        return "prose", "TN:\n" + joined(
            rng,
            lambda: rng.choice(
                [
                    f"SF:{path(rng)}.c",
                    f"DA:{rng.randrange(999)},{rng.randrange(99)}",
                    f"FN:{rng.randrange(999)},{word(rng)}_{word(rng)}",
                    f"BRDA:{rng.randrange(999)},0,{rng.randrange(9)},{rng.randrange(99)}",
                ]
            ),
        )
    return "prose", joined(
        rng,
        lambda: (
            f"{path(rng)[1:]}.py{' ' * rng.randrange(4, 30)}{rng.randrange(500):4} {rng.randrange(90):6}"
            f"   {rng.randrange(101):3}%   {rng.randrange(99)}-{rng.randrange(100, 200)}"
            f", {rng.randrange(300)}"
        ),
    )


def counted_lines(rng: random.Random) -> tuple[str, str]:
    number = 0

    def line() -> str:
        nonlocal number
        number += 1
        return (
            f"{rng.choice(['-', '#####', str(rng.randrange(999))]):>9}:{number:5}:{'    ' * rng.randrange(4)}"
            f"{word(rng)}({word(rng)}, {word(rng)}_{word(rng)});"
        )

    return "prose", joined(rng, line)


def damaged_binary(rng: random.Random) -> tuple[str, str]:
    return "prose", rng.randbytes(rng.randrange(5_000, 60_000)).decode("utf-8", "replace").translate(
        dict.fromkeys([*range(9), *range(11, 32)])
    ) + "\n"


GENERATORS: tuple[Noise, ...] = (
    *(processes, sockets, open_files, sampled_stacks, crash_report, memory_map, device_tree, strings_of_a_program),
    *(vector_drawing, packets, coverage, counted_lines, damaged_binary),
)
