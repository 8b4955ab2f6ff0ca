"""What people write and keep, a text a kind, each of the length at which it is judged by its structure.

Where a form repeats (lists, tables, transcripts) the entries are put together from small stocks by a seeded random
source; running text is written out.
"""

import random
from collections.abc import Callable
from datetime import date, timedelta

PASSAGES = {
    "English": (
        "The ferry left an hour late, because somebody had parked a tractor "
        "across the ramp.\nNobody minded. We drank tea from the flask, and "
        "Ruth read aloud from the guide book.\n"
    ),
    "German": (
        "Im Keller steht noch die alte Nähmaschine meiner Großmutter, daneben "
        "drei Kisten mit Stoffresten.\nWer sie aufräumen will, braucht Geduld, "
        "denn jeder Knopf hat seine Geschichte.\n"
    ),
    "French": (
        "Le marché ouvrait avant l'aube ; on y vendait des figues, du miel et "
        "parfois des chevaux.\nMon père n'achetait jamais rien, mais il "
        "connaissait le nom de chaque marchand.\n"
    ),
    "Finnish": (
        "Järvi jäätyi tänä vuonna vasta tammikuussa, ja luistelijat odottivat "
        "kärsivällisesti.\nIltaisin kuuntelimme radiosta säätiedotuksia.\n"
    ),
    "Greek": (
        "Το νησί έχει τρία πηγάδια και μία εκκλησία, χτισμένη πάνω σε αρχαίο "
        "ναό.\nΤο καλοκαίρι οι ψαράδες επιστρέφουν πριν από την ανατολή.\n"
    ),
    "Russian": (
        "Дедушка записывал погоду каждый день, даже когда болел.\nТетради "
        "лежат в сундуке, и по ним видно, как менялись зимы.\n"
    ),
    "Arabic": (
        "وصلت الرسالة بعد ثلاثة أشهر، وكان ختم البريد قد بهت لونه.\nقرأتها أمي بصوت عالٍ ونحن نجلس حول المائدة.\n"
    ),
    "Hebrew": "הספרייה הקטנה נפתחה בבית הקפה הישן ליד הנמל.\nכל מי שלוקח ספר משאיר אחר במקומו.\n",
    "Hindi": ("गाँव के बीच में एक पुराना बरगद है, जिसकी छाया में पंचायत बैठती है।\nबरसात के बाद वहाँ बच्चे झूला डालते हैं।\n"),
    "Thai": "ตลาดน้ำเปิดตั้งแต่เช้ามืด เรือขายผลไม้จอดเรียงกันเป็นแถว\nคุณยายเลือกมะม่วงทีละลูกอย่างพิถีพิถัน\n",
    "Chinese": "外婆的院子里有一棵石榴树,每年秋天都结满果实。\n我们把石榴一颗颗剥开,放在青花碗里。\n",
    "Japanese": "駅前の古本屋は日曜日だけ開いている。\n店主は客の顔を見て、読むべき本を一冊だけ勧める。\n",
    "Korean": "겨울이면 할머니는 장독대에 쌓인 눈을 먼저 쓸어 내셨다.\n그리고 뜨거운 숭늉을 한 그릇씩 나누어 주셨다.\n",
}
GIVEN = (
    *("Anna", "Jón", "Maria", "Olga", "Sam", "Noor", "Ivo", "Ruth", "Aldo", "Birgit"),
    *("Chinua", "Dolores", "Emeka", "Fatima", "Goran", "Hana"),
)
FAMILY = (
    *("Keller", "Þórsson", "Silva", "Petrova", "O'Neill", "Haddad", "Horák", "Weaver"),
    *("Bianchi", "Nakamura", "Okafor", "Lund", "Costa", "Novak"),
)
GOODS = ("Honey", "Oak board", "Beeswax", "Candle", "Linseed oil", "Hemp rope", "Tin pail", "Wool", "Rye flour", "Salt")
WHO = (
    *("the ferryman", "my aunt", "a stranger", "nobody", "the baker's boy", "our teacher"),
    *("the older sister", "somebody", "the priest"),
)
DID = (
    *("forgot", "carried away", "never mentioned", "painted", "asked for", "gave back"),
    *("laughed at", "buried", "kept", "sold", "looked after"),
)
WHAT = (
    *("the keys", "a blue kettle", "that letter", "the last loaf", "three lanterns"),
    *("our bicycle", "the map", "his good coat", "the clock"),
)
WHEN = (
    *("before the rain", "on the way home", "after supper", "as always", "in the dark"),
    *("without a word", "long ago", "by mistake"),
)


def said(rng: random.Random) -> str:
    """A sentence."""
    return f"{rng.choice(WHO)} {rng.choice(DID)} {rng.choice(WHAT)} {rng.choice(WHEN)}.".capitalize()


def name(rng: random.Random) -> str:
    """Somebody's name."""
    return f"{rng.choice(GIVEN)} {rng.choice(FAMILY)}"


def running(language: str, rng: random.Random) -> str:
    """Running text of a language, cut into lines at varying places, as no text repeats itself line by line."""
    text = PASSAGES[language].replace("\n", " ") * 3
    starts = (rng.randrange(len(text) // 2) for _ in range(60))
    return "\n".join(text[start : start + rng.randrange(20, 70)].strip() for start in starts) + "\n"


def one_line_paragraphs(rng: random.Random) -> str:
    return "\n\n".join(" ".join(said(rng) for _ in range(30)) for _ in range(45)) + "\n"


def poem(rng: random.Random) -> str:
    endings = ("sea", "shore", "rain", "night", "stone", "bell", "wind", "lamp")
    return (
        "\n".join(
            f"O {rng.choice(endings)}, that {rng.choice(('knows', 'keeps', 'forgets'))} the {rng.choice(endings)},"
            for _ in range(60)
        )
        + "\n"
    )


def song(rng: random.Random) -> str:
    refrain = (
        "Carry me over the water,\ncarry me over the hill,\ncarry me home to "
        "my daughter,\nfor the mill wheel is turning still.\n"
    )
    verses = (
        f"{said(rng)}\n{said(rng)} {number}\nAnd the {rng.choice(GOODS).lower()} was gone by {name(rng)}'s door.\n"
        for number in range(14)
    )
    return "\n".join(f"{verse}\n{refrain}" for verse in verses)


def bibliography(rng: random.Random) -> str:
    def entry() -> str:
        pages = rng.randrange(1, 900)
        return (
            f"{name(rng)}: On {rng.choice(GOODS).lower()} and its trade. In: Annals "
            f"of Husbandry {rng.randrange(1, 90)} ({rng.randrange(1880, 2020)}), "
            f"no. {rng.randrange(1, 5)}, pp. {pages}-{pages + 20}. doi:10.{rng.randrange(1000, 9999)}"
            f"/{rng.randrange(10**6)}"
        )

    return "\n".join(entry() for _ in range(80)) + "\n"


def cryptography(rng: random.Random) -> str:
    return "\n".join(
        (
            f"{said(rng)}\n{said(rng)}\n{said(rng)}\n\n  K{n} = {rng.getrandbits(128):032x}"
            f"\n  C{n} = {rng.getrandbits(128):032x}\n"
        )
        for n in range(20)
    )


def recipe(rng: random.Random) -> str:
    amounts = (f"{rng.randrange(1, 900)} g {rng.choice(GOODS).lower()}" for _ in range(30))
    steps = (f"{n}. Stir for {rng.randrange(2, 40)} minutes at {rng.randrange(80, 220)} °C." for n in range(1, 25))
    return "\n".join([*amounts, "", *steps]) + "\n"


def markdown_table(rng: random.Random) -> str:
    rows = (
        f"| {1900 + n} | {rng.random() * 90:.1f} | {rng.random() * 90:.1f} | {rng.randrange(9999)} |" for n in range(90)
    )
    return "\n".join(["# Harvests", "", "| Year | Rye | Oats | Sacks |", "|---|---|---|---|", *rows]) + "\n"


def chess(rng: random.Random) -> str:
    squares = [f"{file}{rank}" for file in "abcdefgh" for rank in range(1, 9)]

    def game() -> str:
        moves = (
            (
                f"{n}. {rng.choice(('', 'N', 'B', 'Qx', 'R'))}{rng.choice(squares)} {rng.choice(('', 'N', 'Bx', 'K'))}"
                f"{rng.choice(squares)}"
            )
            for n in range(1, 40)
        )
        text = " ".join(moves).split()
        body = "\n".join(" ".join(text[i : i + 12]) for i in range(0, len(text), 12))
        return f'[Event "Village Cup"]\n[White "{name(rng)}"]\n[Black "{name(rng)}"]\n[Result "1-0"]\n\n{body} 1-0\n'

    return "\n".join(game() for _ in range(12))


def quoted_log(rng: random.Random) -> str:
    return "\n".join(
        (
            f"On the {n}th the heating failed again. {said(rng)}\nThe controller "
            f"said nothing that made sense to us, only this:\n\n    2024-01-{n:02} "
            f"06:1{n % 10}:00 ERROR burner: no flame after {rng.randrange(9)} tries\n"
            "\nWe bled the pipes and waited.\n"
        )
        for n in range(10, 28)
    )


def subtitles(rng: random.Random) -> str:
    return "\n".join(
        (
            f"{n}\n00:{n // 20:02}:{n % 20 * 3:02},000 --> 00:{n // 20:02}:{n % 20 * 3 + 2:02}"
            f",500\n{said(rng)} {name(rng)}\n"
        )
        for n in range(1, 300)
    )


def web_subtitles(rng: random.Random) -> str:
    return "WEBVTT\n\n" + "\n".join(
        (
            f"00:{n // 20:02}:{n % 20 * 3:02}.000 --> 00:{n // 20:02}:{n % 20 * 3 + 2:02}"
            f".500 align:start\n{said(rng)} {rng.choice(GOODS)}, {n}\n"
        )
        for n in range(1, 200)
    )


def transcript(rng: random.Random) -> str:
    return (
        "\n".join(f"[{n // 60:02}:{n % 60:02}:{rng.randrange(60):02}] {name(rng)}: {said(rng)}" for n in range(120))
        + "\n"
    )


def messenger_export(rng: random.Random) -> str:
    return (
        "\n".join(
            (
                f"[{1 + n % 28:02}.03.24, {n % 24:02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
                f"] {rng.choice(GIVEN[:2])}: {said(rng)}"
            )
            for n in range(200)
        )
        + "\n"
    )


def chat_room(rng: random.Random) -> str:
    return (
        "\n".join(
            (
                f"[2024-03-01 {n // 60:02}:{n % 60:02}:{rng.randrange(60):02}] <{rng.choice(('ruth', 'ivo', 'noor'))}"
                f"> {said(rng)}"
            )
            for n in range(200)
        )
        + "\n"
    )


def genealogy(rng: random.Random) -> str:
    return (
        "\n".join(
            (
                f"{'  ' * rng.randrange(4)}{name(rng)}, * {rng.randrange(1, 28)}.{rng.randrange(1, 12)}"
                f".{rng.randrange(1700, 1950)}, † {rng.randrange(1760, 2000)}, oo {rng.randrange(1720, 1980)}"
                f" {name(rng)}"
            )
            for _ in range(120)
        )
        + "\n"
    )


def price_list(rng: random.Random) -> str:
    adjectives = ("fine", "raw", "large", "small", "old", "new", "local", "double", "smoked", "plain")
    return (
        "\n".join(
            (
                f"{rng.choice(GOODS)}, {rng.choice(adjectives)}, {rng.choice(('a piece', 'the kilo', 'the dozen'))}"
                f" {'.' * rng.randrange(5, 30)} $ {rng.random() * 90:.2f}"
            )
            for _ in range(150)
        )
        + "\n"
    )


def links(rng: random.Random) -> str:
    return (
        "# Reading list\n\n"
        + "\n".join(
            f"- [{said(rng)}](https://example.org/{rng.randrange(9999)}/{rng.choice(GOODS).lower()}?page={n})"
            for n in range(200)
        )
        + "\n"
    )


def bare_links(rng: random.Random) -> str:
    return (
        "\n".join(f"https://example.org/{rng.choice(GOODS).lower()}/{rng.randrange(10**6)}" for _ in range(120)) + "\n"
    )


def releases(rng: random.Random) -> str:
    return "\n".join(f'<a href="doc/changes-{n}.md#{n}.1.0">{n}.1.0</a><br/>' for n in range(200)) + "\n"


def glossary(rng: random.Random) -> str:
    return (
        "\n".join(f"{rng.choice(GOODS)}\n    {said(rng)} See also {rng.choice(GOODS).lower()}." for _ in range(60))
        + "\n"
    )


def word_list(rng: random.Random) -> str:
    return (
        "\n".join(
            rng.choice(GOODS).split()[0].lower() + rng.choice(("", "s", "like", "-maker", "er")) for _ in range(300)
        )
        + "\n"
    )


def changelog(rng: random.Random) -> str:
    day = date(2020, 1, 1)
    return "\n".join(
        (
            f"## 1.{n}.0 - {day + timedelta(days=9 * n)}\n\n- {said(rng)}\n- The {rng.choice(GOODS).lower()}"
            f" no longer spills (#{rng.randrange(999)}).\n"
        )
        for n in range(60)
    )


def calendar(rng: random.Random) -> str:
    weeks = "\n".join(" ".join(f"{day:2}" for day in range(week, week + 7)) for week in (1, 8, 15, 22))
    months = ("January", "February", "March", "April", "May", "June", "July", "August", "September")
    return "\n".join(f"     {month} 2024\nMo Tu We Th Fr Sa Su\n{weeks}\n" for month in months)


def diary_of_weights(rng: random.Random) -> str:
    return (
        "\n".join(f"{date(2023, 1, 1) + timedelta(days=n)}  {70 + rng.random() * 5:.1f} kg" for n in range(400)) + "\n"
    )


def phone_list(rng: random.Random) -> str:
    return (
        "\n".join(
            (
                f"{name(rng)}  0{rng.randrange(100, 999)} / {rng.randrange(10**6, 10**7)}"
                f"  {rng.choice(('home', 'work', 'mobile'))}"
            )
            for _ in range(120)
        )
        + "\n"
    )


def timetable(rng: random.Random) -> str:
    return (
        "\n".join(
            f"{rng.choice(('Harbour', 'Mill', 'Church', 'School', 'Station'))}   "
            + "  ".join(f"{hour:02}:{rng.randrange(60):02}" for hour in range(6, 18))
            for _ in range(60)
        )
        + "\n"
    )


def mail_with_headers(rng: random.Random) -> str:
    received = "\n".join(
        (
            f"Received: from mx{n}.example.org (mx{n}.example.org [192.0.2.{n}])\n"
            f"\tby mail.example.net with ESMTPS id {rng.getrandbits(64):016x}\n"
            f"\tfor <ruth@example.net>; Mon, 04 Mar 2024 10:00:{n:02} +0100"
        )
        for n in range(8)
    )
    letter = "\n".join(said(rng) for _ in range(25))
    return (
        f"Return-Path: <anna@example.org>\n{received}\nFrom: Anna "
        "<anna@example.org>\nTo: Ruth <ruth@example.net>\nSubject: The keys\n"
        f"Message-ID: <{rng.getrandbits(96):024x}@example.org>\n\nDear Ruth,\n\n"
        f"{letter}\n\nYours, Anna\n"
    )


def mail_to_many(rng: random.Random) -> str:
    addresses = (f"{rng.choice(GIVEN)}.{rng.choice(FAMILY)}{rng.randrange(9)}@example.org" for _ in range(300))
    return f"From: ruth@example.org\nTo: {', '.join(addresses)}\nSubject: Saturday\n\n{said(rng)}\n"


def note_with_a_picture(rng: random.Random) -> str:
    picture = "".join(rng.choice("ABCDEFGHabcdefgh0123456789+/") for _ in range(200_000))
    return (
        f"# The pond\n\n![the pond](data:image/png;base64,{picture})\n\n"
        + "\n".join(said(rng) for _ in range(60))
        + "\n"
    )


def tex(rng: random.Random) -> str:
    return (
        "\n".join(
            (
                f"\\section{{{rng.choice(GOODS)}}}\n\\begin{{itemize}}\n\\item {said(rng)}"
                f"\n\\item $x_{n}^2 + y_{n} = {rng.randrange(99)}$\n\\end{{itemize}}\n"
                "\\hline"
            )
            for n in range(30)
        )
        + "\n"
    )


def source_code(rng: random.Random) -> str:
    return (
        "\n\n".join(
            (
                f"def weigh_{n}(sacks: list[float], limit: float = {n}.5) -> float:\n   "
                " total = 0.0\n    for sack in sacks:\n        if sack > limit:\n      "
                f'      raise ValueError(f"{{sack}} is heavier than {{limit}}")\n       '
                f" total += sack * {rng.random():.3f}\n    return total"
            )
            for n in range(20)
        )
        + "\n"
    )


def sheet(rng: random.Random) -> str:
    return (
        "## Readings\n\n"
        + "\n".join(
            f"2024-01-{1 + n % 28:02} 10:{n % 60:02}:00,{rng.random() * 40:.2f},{rng.random():.3f},{rng.randrange(9)}"
            for n in range(500)
        )
        + "\n"
    )


def sheet_of_keys(rng: random.Random) -> str:
    return (
        "\n".join(
            f"{rng.getrandbits(32):08x}-{rng.getrandbits(16):04x}-4000-8000-{rng.getrandbits(48):012x},{name(rng)}"
            for _ in range(200)
        )
        + "\n"
    )


def short_messages(rng: random.Random) -> str:
    return (
        "\n\n".join(
            rng.choice(("ok", "👍", "Your code is 123456", "on my way", "2024-03-01 10:00:00 delivered"))
            for _ in range(200)
        )
        + "\n"
    )


FORMS: dict[str, tuple[Callable[[random.Random], str], ...]] = {
    "prose": (
        *(one_line_paragraphs, poem, song, bibliography, cryptography, recipe, chess, quoted_log, subtitles),
        *(web_subtitles, transcript, messenger_export, chat_room, genealogy, price_list, bare_links, glossary),
        *(word_list, calendar, diary_of_weights, phone_list, timetable, mail_with_headers, mail_to_many, tex),
    ),
    "markdown": (markdown_table, links, releases, changelog, note_with_a_picture),
    "code:python": (source_code,),
    "tabular": (sheet, sheet_of_keys),
    "conversation": (short_messages, messenger_export),
}
