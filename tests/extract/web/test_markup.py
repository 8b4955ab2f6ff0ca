import time

import pytest

from garage.extract.web.markup import to_markdown


def md(html: str | bytes) -> str:
    return to_markdown(html).text


def test_headings_paragraphs_and_breaks() -> None:
    assert md("<h1>A <b>title</b></h1><p>One\n  two<br>three</p><div>four</div><div>five</div><h3>Six") == (
        "# A title\n\nOne two\nthree\n\nfour\nfive\n\n### Six\n"
    )


def test_lists_nest_and_count() -> None:
    assert md("<ul><li>a<ul><li>b</ul><li>c</ul><ol start=9><li>x<li>y</ol>") == "- a\n  - b\n- c\n\n9. x\n10. y\n"


def test_quotations_are_marked_at_every_line() -> None:
    assert md("<p>Hi</p><blockquote>one<br>two<blockquote>deep</blockquote></blockquote>") == (
        "Hi\n\n> one\n> two\n\n> > deep\n"
    )


def test_a_table_of_data_is_written_as_rows() -> None:
    table = "<table><caption>Prices</caption><tr><th>Tea<th>Price<tr><td>Green<td>3|50<tr><td colspan=2>none</table>"
    assert md(table) == "Prices\n| Tea | Price |\n| --- | --- |\n| Green | 3\\|50 |\n| none |  |\n"


def test_a_table_that_arranges_the_page_is_read_cell_by_cell() -> None:
    page = "<table><tr><td><h2>Left</h2><p>words</p></td><td><table><tr><td>a<td>b</table></td></tr></table>"
    assert md(page) == "## Left\n\nwords\n\na | b\n"


def test_preformatted_text_stands_as_it_is_within_a_fence() -> None:
    assert md("<pre>\n  if x:\n\ty ``` z\n</pre>after") == "````\n  if x:\n\ty ``` z\n````\n\nafter\n"
    assert to_markdown("<pre>  a\n b</pre>", fences=False).text == "  a\n b\n"


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ('<a href="https://example.org/a">here</a>', "[here](https://example.org/a)"),
        ('<a href="https://www.example.org/">example.org</a>', "example.org"),
        ('<a href="mailto:ann@x.org">Ann</a>', "[Ann](mailto:ann@x.org)"),
        ('<a href="mailto:ann@x.org">ann@x.org</a>', "ann@x.org"),
        ('<a href="/local">here</a>', "here"),
        ('<a href="#top">here</a>', "here"),
        ('<a href="javascript:x()">here</a>', "here"),
        ('<a href="https://t.example/' + "x" * 200 + '">here</a>', "here"),
        ('<a href="https://example.org/a"></a>x', "x"),
    ],
)
def test_the_target_of_a_link_is_kept_where_it_tells_something(link: str, shown: str) -> None:
    assert md(f"<p>{link}</p>") == f"{shown}\n"


def test_what_nobody_sees_is_left_out() -> None:
    page = (
        "<head><title>t</title><style>p{}</style></head><!-- c --><script>var x='<p>no</p>'</script>"
        "<noscript>no</noscript><template>no</template><p hidden>no</p><p style='color:red; display: none'>no</p>"
        "<select><option>no</select><p>yes</p><svg><text>no</text></svg>"
    )
    assert md(page) == "yes\n"


def test_entities_spaces_and_fillers_become_plain_words() -> None:
    assert md("<p>a&nbsp;&nbsp;b &lt;c&gt; &eacute; co&shy;op</p>") == "a b <c> é coop\n"
    assert md("<p>Preview &zwnj;&nbsp;&zwnj;&nbsp;&zwnj;&nbsp;&zwnj;&nbsp;end</p><p>&zwnj;</p>") == "Preview end\n"
    assert md("<p>می\u200cخواهم</p>") == "می\u200cخواهم\n"


def test_elements_within_a_word_add_no_space() -> None:
    assert md("<p>有什<strong>么需</strong>要</p><ul><li>a</li><li>b</li></ul>") == "有什么需要\n\n- a\n- b\n"


def test_a_line_that_looks_like_a_heading_is_escaped() -> None:
    assert md("<p># of items</p>") == "\\# of items\n"


def test_a_heading_is_one_line_whatever_it_holds_and_ends_where_a_paragraph_begins() -> None:
    assert md("<h2><div>On</div><div>tea <span>and</span> ca<wbr>ke</div></h2>x") == "## On tea and cake\n\nx\n"
    assert md("<h3>Forgotten<p>words<p>more") == "### Forgotten\n\nwords\n\nmore\n"
    assert md("<h2>" + "large words " * 40 + "</h2>").startswith("large words")
    assert md("<menu><li><h4>x</h4></menu>") == "- x\n"


def test_the_words_for_a_picture_are_kept() -> None:
    assert md('<p>See <img src="x.png" alt="a red  house"> there<img src="y.png"></p>') == "See a red house there\n"


def test_title_and_metadata_are_what_the_page_says_of_itself() -> None:
    page = (
        '<html lang="de"><head><title> Ein\n Titel </title><meta name="author" content="Ann">'
        '<meta property="article:published_time" content="2025-03-03"><meta name="description" content="Worum es geht">'
        '<meta property="og:title" content="Other"></head><body><h1>Kopf</h1>'
    )
    found = to_markdown(page)
    assert (found.title, found.heading) == ("Ein Titel", "Kopf")
    assert found.meta == {"language": "de", "author": "Ann", "created": "2025-03-03", "description": "Worum es geht"}


def test_a_page_without_a_title_has_what_it_tells_social_networks() -> None:
    assert to_markdown('<meta property="og:title" content="Shared">').title == "Shared"
    assert to_markdown("<p>nothing").title is None


def test_bytes_are_decoded_as_the_page_declares_or_the_mail_says() -> None:
    russian = "<p>привет</p>".encode("koi8-r")
    assert to_markdown(b'<meta charset="koi8-r">' + russian).text == "привет\n"
    assert to_markdown(russian, charset="koi8-r").text == "привет\n"
    assert to_markdown("<p>Grüße</p>".encode("utf-16")).meta == {"encoding": "utf-16"}


def test_xhtml_may_close_any_element_at_once() -> None:
    head = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x"/></head>'
    page = f"{head}<body><p>seen</p>"
    assert md(page) == "seen\n"


def test_nul_is_not_passed_on() -> None:
    assert md("<p>a\0b</p>") == "ab\n"


@pytest.mark.parametrize("tag", ["div", "blockquote", "ul><li", "table><tr><td", "b", "span", "pre", "b><p"])
def test_a_hundred_thousand_nested_elements_take_linear_time(tag: str) -> None:
    began = time.perf_counter()
    found = to_markdown(f"<{tag}>x " * 100_000 + "<p>the end")
    assert found.text.count("x") == 100_000
    assert found.text.endswith("the end\n")
    assert found.warnings == ("it is nested so deeply that its structure was left out",)
    assert time.perf_counter() - began < 30


def test_a_few_thousand_nested_elements_keep_their_structure() -> None:
    found = to_markdown("<ul><li>x" * 3_000)
    assert found.text.startswith("- x\n  - x\n    - x\n")
    assert found.warnings == ()


@pytest.mark.parametrize(
    "text", ["<", "<p", "</", "<!--", "<script>", "<a href='", "<![CDATA[", "&#x;", "<table><td>", "<svg><td>"]
)
def test_fragments_repeated_are_still_read_in_linear_time(text: str) -> None:
    began = time.perf_counter()
    to_markdown(text * 50_000)
    assert time.perf_counter() - began < 20


def test_a_page_without_end_tags_for_its_rows_is_not_taken_for_a_deep_one() -> None:
    page = "<table>" + "<tr><td>a<td>b" * 30_000 + "</table>" + "<p>x" * 30_000 + "<ul>" + "<li>y" * 30_000
    found = to_markdown(page)
    assert found.warnings == ()
    assert found.text.count("| a | b |") == 30_000


def test_cells_outside_of_tables_do_no_harm() -> None:
    assert md("<table><tr><td>w<math><tr><td>u</math><td>e</table>") == "| w |  |\n| --- | --- |\n| u | e |\n"
    assert md("<math><td>x</td></math>") == "x\n"


def test_a_cell_over_several_rows_leaves_its_column_free_in_those_below() -> None:
    table = "<table><tr><td rowspan=2>a<td>b<tr><td>c<tr><td>d<td>e</table>"
    assert md(table).splitlines() == ["| a | b |", "| --- | --- |", "|  | c |", "| d | e |"]


def test_a_cell_over_rows_and_columns_covers_a_block_and_a_senseless_span_is_one_cell() -> None:
    table = "<table><tr><td rowspan=2 colspan=2>a<td>b<tr><td>c<tr><td rowspan=0>d<td rowspan=99999999>e<td>f</table>"
    assert md(table).splitlines() == [
        "| a |  | b |",
        "| --- | --- | --- |",
        "|  |  | c |",
        "| d | e | f |",
    ]
