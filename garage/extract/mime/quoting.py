"""Which lines of a mail somebody else wrote: with a mark, introduced by "wrote:", or below a forwarded header."""

import re

# The words that mail programs write, in the languages in which they are seen most.
_WROTE = (
    *(
        "wrote",
        "writes",
        "schrieb",
        "schreef",
        "écrit",
        "escribió",
        "scritto",
        "escreveu",
        "skrev",
        "kirjoitti",
        "írta",
    ),
    *(
        "napisała?",
        r"napisał\(a\)",
        "napsala?",
        "napísala?",
        "пишет",
        "написала?",
        "написав",
        "пише",
        "yazdı",
        "a scris",
    ),
    *("έγραψε", "写道", "寫道", "のメール", "님이 작성"),
)
_WROTE_LINE = re.compile(
    rf"(?:{'|'.join(_WROTE)})[^:：]{{0,80}}[:：]$"
    r"|^\s*\d{4}[-/.]\d{1,2}[-/.]\d{1,2} .{0,200}<\S{1,100}@\S{1,100}>:$",
    re.IGNORECASE,
)
_OPENS_ATTRIBUTION = re.compile(
    r"\s*(?:(?:on|am|le|el|il|op|em|den|på|dne|dňa|dnia|w dniu|в|at|til|a|pe)\s|\d{1,4}[./ 年-]|[\"<]"
    r"|\w{2,12}[.,]{0,2}\s\d{1,2}\b|[^\s@]{1,80}@|\S{1,80} \S{1,80} <)",
    re.IGNORECASE,
)
_WHEN_OR_WHO = re.compile(r"\d{1,2}[:.h]\d\d|@|\d{4}-\d\d-\d\d|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d月")
_ATTRIBUTION_LINES = 4
_ATTRIBUTION_CHARS = 400
_MARKED = re.compile(r"\s{0,3}(?:>|[A-Z]{1,4}>\s|\|\s)")
_SURE_MARK = re.compile(r"\s{0,3}>")
_SMTP = re.compile(r">>> [A-Z]{4}\b")  # what a mail server reports that it said
_FROM_ESCAPE = re.compile(r">From ")
_ORIGINAL = (
    *(
        "original message",
        "original appointment",
        "forwarded message",
        "forwarded by .{0,100}",
        "begin forwarded message",
    ),
    *("reply message", "ursprüngliche nachricht", "originalnachricht", "weitergeleitete nachricht"),
    *(
        "anfang der weitergeleiteten (?:nachricht|e-?mail)",
        "message d.origine",
        "message original",
        "message transféré",
    ),
    *("début du message réexpédié", "début du message transféré", "mensaje original", "mensaje reenviado"),
    *("inicio del mensaje reenviado", "messaggio originale", "messaggio inoltrato", "inizio messaggio inoltrato"),
    *("mensagem original", "mensagem encaminhada", "início da mensagem reencaminhada", "oorspronkelijk bericht"),
    *("doorgestuurd bericht", "begin doorgestuurd bericht", "ursprungligt meddelande", "originalmeddelande"),
    *("vidarebefordrat meddelande", "opprinnelig melding", "videresendt melding", "oprindelig meddelelse"),
    *("videresendt meddelelse", "alkuperäinen viesti", "edelleenlähetetty viesti", "wiadomość oryginalna"),
    *("oryginalna wiadomość", "wiadomość przekazana dalej", "původní zpráva", "přeposlaná zpráva"),
    *("исходное сообщение", "пересылаемое сообщение", "перенаправленное сообщение", "оригинальное сообщение"),
    *("orijinal mesaj", "özgün ileti", "αρχικό μήνυμα", "原始邮件", "原始郵件", "转发邮件", "轉寄郵件"),
    *("元のメッセージ", "転送メッセージ", "원본 메시지", "전달된 메시지"),
)
_RULE = r"(?:-{2,}|_{5,}|={5,}|\*{3,})"
_SEPARATOR = re.compile(rf"\s*{_RULE}?\s*(?:{'|'.join(_ORIGINAL)})\s*:?\s*{_RULE}?\s*", re.IGNORECASE)
_RULE_LINE = re.compile(rf"\s*{_RULE}\s*")
_RULED = re.compile(rf"\s*{_RULE}")
_SENDERS = (
    *("from", "von", "de", "da", "van", "från", "fra", "lähettäjä", "od", "от", "від", "kimden", "gönderen", "από"),
    *("发件人", "寄件者", "寄件人", "差出人", "보낸 사람"),
)
_TIMES = (
    *("sent", "date", "gesendet", "datum", "envoyé", "enviado", "enviado el", "fecha", "data", "inviato", "verzonden"),
    *("skickat", "sendt", "dato", "lähetetty", "päivämäärä", "wysłano", "wysłane", "odesláno", "отправлено", "дата"),
    *("надіслано", "gönderildi", "tarih", "στάλθηκε", "ημερομηνία", "发送时间", "发送日期", "日期", "寄件日期"),
    *("送信日時", "日付", "보낸 날짜", "날짜"),
)
_RECIPIENTS = (
    *(
        "to",
        "an",
        "à",
        "para",
        "a",
        "aan",
        "till",
        "til",
        "vastaanottaja",
        "do",
        "komu",
        "кому",
        "kime",
        "alıcı",
        "προς",
    ),
    *("收件人", "收件者", "宛先", "받는 사람", "cc", "kopie", "kopia", "reply-to"),
)
_SUBJECTS = (
    *("subject", "betreff", "objet", "asunto", "assunto", "oggetto", "onderwerp", "ämne", "emne", "aihe", "temat"),
    *("předmět", "тема", "konu", "θέμα", "主题", "主旨", "件名", "제목"),
)
_FROM = re.compile(rf"\s*\*?(?:{'|'.join(_SENDERS)})\*?\s*[:：]\*?\s*\S", re.IGNORECASE)
_FIELD = re.compile(
    rf"\s*\*?(?:({'|'.join(_TIMES)})|({'|'.join(_RECIPIENTS)})|({'|'.join(_SUBJECTS)}))\*?\s*[:：]", re.IGNORECASE
)
_HEADER_LINES = 8


def quoted_lines(lines: list[str]) -> list[bool]:
    """For each line of a body whether it is somebody else's words; blank lines belong to what stands before them.

    Marks (`>`) count line by line, so that answers in between stay the sender's. What a program puts without marks
    below "Original Message", the header of the mail that is answered, or "... wrote:", counts to the end of the body.
    """
    quoted = [_is_marked(lines, number) for number in range(len(lines))]
    number = 0
    while number < len(lines):
        if quoted[number] or not lines[number].strip():
            number += 1
            continue
        if _begins_original(lines, number):
            return _spread(lines, quoted[:number] + [True] * (len(lines) - number))
        if taken := _attribution(lines, quoted, number):
            following = number + taken
            while following < len(lines) and not lines[following].strip():
                following += 1
            marked = following < len(lines) and quoted[following]
            if not marked:
                return _spread(lines, quoted[:number] + [True] * (len(lines) - number))
            quoted[number:following] = [True] * (following - number)
            number = following
            continue
        number += 1
    return _spread(lines, quoted)


def _is_marked(lines: list[str], number: int) -> bool:
    line = lines[number]
    if not _MARKED.match(line):
        return False
    if _SURE_MARK.match(line):
        if _SMTP.match(line):
            return False
        # Mailboxes escape a line that begins with "From ", and not everybody who reads them undoes it.
        return not _FROM_ESCAPE.match(line) or any(
            _SURE_MARK.match(lines[near]) for near in (number - 1, number + 1) if 0 <= near < len(lines)
        )
    # Initials and bars also occur in tables and code: they count where several follow each other.
    near = [lines[other] for other in (number - 1, number + 1) if 0 <= other < len(lines)]
    mark = line.strip()[:2]
    return not line.rstrip().endswith("|") and any(
        other.strip()[:2] == mark and not other.rstrip().endswith("|") for other in near
    )


def _begins_original(lines: list[str], number: int) -> bool:
    line = lines[number]
    if len(line) <= 200 and _SEPARATOR.fullmatch(line):
        # Without a rule around them the words may be the sender's own, so that a header has to follow.
        return bool(_RULED.match(line)) or line.rstrip().endswith((":", "：")) or _is_header(lines, number + 1)
    if _RULE_LINE.fullmatch(line):
        number = next((below for below in range(number + 1, number + 3) if lines[below : below + 1] != [""]), number)
    return _is_header(lines, number)


def _is_header(lines: list[str], number: int) -> bool:
    """Whether a quoted header stands here: From and two of Sent, To, Subject within a few lines."""
    kinds: set[int | None] = set()
    seen = 0
    sender = False
    for line in lines[number : number + 2 * _HEADER_LINES]:
        if not line.strip():
            if sender and len(kinds) >= 2:
                break
            continue
        seen += 1
        if seen > _HEADER_LINES:
            break
        if not sender:
            sender = bool(_FROM.match(line))
            if not sender:
                return False
        elif match := _FIELD.match(line):
            kinds.add(match.lastindex)
    return sender and len(kinds) >= 2


def _attribution(lines: list[str], quoted: list[bool], number: int) -> int:
    """How many lines, from this one, say who wrote what follows; 0 when they say no such thing."""
    for count in range(1, _ATTRIBUTION_LINES + 1):
        last = number + count - 1
        if last >= len(lines) or quoted[last] or not lines[last].strip():
            return 0
        if _says_wrote(lines[last]):
            opens = bool(_OPENS_ATTRIBUTION.match(lines[number]))
            if any(quoted[last + 1 : last + 3]):
                return count if opens or count == 1 else 0
            said = "\n".join(line[:_ATTRIBUTION_CHARS] for line in lines[number : last + 1])
            return count if opens and _WHEN_OR_WHO.search(said) else 0
    return 0


def _says_wrote(line: str) -> bool:
    end = line.rstrip()
    return end.endswith((":", "：")) and len(end) <= _ATTRIBUTION_CHARS and _WROTE_LINE.search(end) is not None


def _spread(lines: list[str], quoted: list[bool]) -> list[bool]:
    """Blank lines belong to what stands before them."""
    for number in range(1, len(lines)):
        if not lines[number].strip():
            quoted[number] = quoted[number - 1]
    return quoted
