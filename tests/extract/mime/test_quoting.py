import pytest

from garage.extract.mime.quoting import quoted_lines


def marks(text: str) -> str:
    """One letter a line: q for somebody else's words, s for the sender's."""
    return "".join("q" if quoted else "s" for quoted in quoted_lines(text.split("\n")))


def test_lines_with_a_mark_are_quoted_and_answers_in_between_are_not() -> None:
    assert marks("Hi Bob,\n> Shall we meet?\n> On Monday?\nYes.\n>> deeper\n> Where?\nAt noon.") == "sqqsqqs"


def test_the_line_that_says_who_wrote_is_not_the_senders() -> None:
    assert marks("Fine.\n\nOn Mon, 3 Mar 2025 at 10:00, Ann <ann@x.org> wrote:\n> Tea?\n>\n> Ann\n\nBye") == "ssqqqqqs"


def test_blank_lines_belong_to_what_stands_before_them() -> None:
    assert marks("a\n\n> b\n\nc\n") == "ssqqss"


def test_an_attribution_may_be_broken_into_lines() -> None:
    assert marks("Yes\n\nOn Mon, 3 Mar 2025 at 10:00, Ann Arbor\n<ann@example.org>\nwrote:\n\n> Tea?") == "ssqqqqq"


@pytest.mark.parametrize(
    "line",
    [
        "On Mon, 3 Mar 2025 at 10:00, Ann <ann@x.org> wrote:",
        "Am 03.03.2025 um 10:00 schrieb Ann Arbor:",
        "Le lun. 3 mars 2025 à 10:00, Ann <ann@x.org> a écrit :",
        "El lun, 3 mar 2025 a las 10:00, Ann (<ann@x.org>) escribió:",
        "Il giorno lun 3 mar 2025 alle ore 10:00 Ann <ann@x.org> ha scritto:",
        "Op ma 3 mrt 2025 om 10:00 schreef Ann <ann@x.org>:",
        "Em seg., 3 de mar. de 2025 às 10:00, Ann <ann@x.org> escreveu:",
        "Den mån 3 mars 2025 kl 10:00 skrev Ann <ann@x.org>:",
        "pon., 3 mar 2025 o 10:00 Ann <ann@x.org> napisał(a):",
        "2025-03-03 10:00 GMT+01:00 Ann <ann@x.org>:",
        "03.03.2025 10:00, Анна пишет:",
        "在 2025年3月3日,10:00,Ann <ann@x.org> 写道:",
    ],
)
def test_an_attribution_quotes_what_follows_without_marks(line: str) -> None:
    assert marks(f"Agreed.\n\n{line}\n\nShall we have tea?\n\nAnn").startswith("ssq")


@pytest.mark.parametrize("line", ["In 1984 Orwell wrote:", "As the committee wrote:", "Here is what I wrote:"])
def test_a_sentence_that_ends_with_wrote_quotes_nothing_by_itself(line: str) -> None:
    assert "q" not in marks(f"Hello.\n\n{line}\n\nWar is peace.")


def test_a_paragraph_above_an_attribution_stays_the_senders() -> None:
    assert marks("I have read it,\nand agree.\nAnn wrote:\n> Tea?") == "ssqq"


@pytest.mark.parametrize(
    "separator",
    [
        "-----Original Message-----",
        "-----Ursprüngliche Nachricht-----",
        "-----Message d'origine-----",
        "---------- Forwarded message ---------",
        "-------- Messaggio originale --------",
        "Begin forwarded message:",
        "-----原始邮件-----",
    ],
)
def test_below_a_separator_everything_is_quoted(separator: str) -> None:
    assert marks(f"See below.\n\n{separator}\nHello\n\nAnn") == "ssqqqq"


def test_the_words_original_message_in_a_sentence_separate_nothing() -> None:
    assert marks("Original message\nwas lost, sorry.") == "ss"


@pytest.mark.parametrize(
    "header",
    [
        "From: Ann\nSent: Monday, 3 March 2025 10:00\nTo: Bob\nSubject: Tea",
        "Von: Ann\nGesendet: Montag, 3. März 2025 10:00\nAn: Bob\nBetreff: Tee",
        "De : Ann\nEnvoyé : lundi 3 mars 2025 10:00\nÀ : Bob\nObjet : Thé",
        "Da: Ann\nInviato: lunedì 3 marzo 2025 10:00\nA: Bob\nOggetto: Tè",
        "*From:* Ann\n*Date:* 3 March\n*Subject:* Tea",
        "发件人: Ann\n发送时间: 2025年3月3日\n收件人: Bob\n主题: 茶",
    ],
)
def test_a_header_in_the_text_begins_a_quotation(header: str) -> None:
    count = header.count("\n") + 1
    assert marks(f"Agreed.\n\n{header}\n\nShall we?") == "ss" + "q" * (count + 2)


def test_the_rule_above_a_quoted_header_is_quoted_too() -> None:
    assert marks("Yes.\n________________________________\nFrom: Ann\nSent: today\nTo: Bob\n\nTea?") == "sqqqqqq"


def test_a_line_that_begins_with_from_is_no_header_alone() -> None:
    assert marks("From: the desk of Ann\n\nWe meet at noon.") == "sss"


def test_an_escaped_from_line_is_no_quotation() -> None:
    assert marks("Hello\n>From here on it is easy.\nBye") == "sss"


def test_what_a_mail_server_reports_is_no_quotation() -> None:
    assert marks("... while talking to mx:\n>>> DATA\n<<< 550 no such user") == "sss"


def test_initials_count_as_marks_where_several_lines_have_them_and_tables_do_not() -> None:
    assert marks("JD> Shall we?\nJD> At noon?\nYes.") == "qqs"
    assert marks("AB> once") == "s"
    assert marks("| a | b |\n| c | d |") == "ss"


def test_ten_thousand_lines_that_nearly_quote_take_no_time() -> None:
    assert "q" not in marks("On and on\n" * 10_000 + "From: x\n" * 10_000)
