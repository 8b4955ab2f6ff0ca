from selectolax.lexbor import LexborHTMLParser, LexborNode

from garage.extract.web.layout import Writer


def node(html: str, selector: str) -> LexborNode:
    found = LexborHTMLParser(html).css_first(selector)
    assert found is not None
    return found


def test_a_writer_takes_a_page_piece_by_piece() -> None:
    writer = Writer()
    heading, item = node("<h2>", "h2"), node("<li>", "li")
    writer.begin("h2", heading)
    writer.words("Tea\n and ")
    writer.words("cake")
    writer.end("h2")
    writer.begin("li", item)
    writer.words("green")
    writer.end("li")
    assert writer.heading == "Tea and cake"
    assert writer.text() == "## Tea and cake\n\n- green\n"


def test_what_was_never_closed_is_written_all_the_same() -> None:
    writer = Writer()
    table, cell = node("<table>", "table"), node("<table><tr><td>", "td")
    writer.begin("table", table)
    writer.begin("td", cell)
    writer.words("left open")
    writer.end("td")
    assert writer.text() == "left open\n"


def test_tables_within_more_than_eight_tables_are_read_as_text() -> None:
    writer = Writer()
    table, cell = node("<table>", "table"), node("<table><tr><td>", "td")
    for level in range(12):
        writer.begin("table", table)
        writer.begin("td", cell)
        writer.words(f"level {level}")
    for _ in range(12):
        writer.end("td")
        writer.end("table")
    assert [line for line in writer.text().split("\n") if line] == [f"level {level}" for level in range(12)]
