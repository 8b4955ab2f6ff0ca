import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garage.config import Extraction
from garage.extract import json_lines
from garage.extract.mirror import canonical
from garage.extract.model import Extracted, Malformed, Unsupported


def read(*records: object) -> Extracted:
    return json_lines.extract("\n".join(map(json.dumps, records)).encode(), name="notes.jsonl", settings=Extraction())


def test_a_record_with_a_title_is_a_section() -> None:
    found = read(
        {"title": "Sourdough", "tags": ["bread", "slow"], "rating": 5, "done": False, "source": None, "extra": {}},
        {"title": "Soup", "author": {"name": "Anna", "mail": "anna@example.org"}},
    )
    assert found.content == (
        "## Sourdough\n\ntags: bread, slow\nrating: 5\ndone: false\n\n"
        "## Soup\n\nauthor.name: Anna\nauthor.mail: anna@example.org\n"
    )
    assert (found.kind, found.meta, found.warnings) == ("markdown", {"records": 2}, ())


def test_records_without_titles_are_paragraphs() -> None:
    assert read({"role": "user", "content": "Hi"}, {"role": "bot", "content": "Hello"}).content == (
        "role: user\ncontent: Hi\n\nrole: bot\ncontent: Hello\n"
    )


def test_a_record_without_a_title_among_others_is_numbered() -> None:
    assert read({"name": "A", "x": 1}, {"x": 2}, {"name": "", "x": 3}, {"name": "B"}).content == (
        "## A\n\nx: 1\n\n## Record 2\n\nx: 2\n\n## Record 3\n\nx: 3\n\n## B\n"
    )


def test_a_long_text_is_a_paragraph_and_begins_no_section() -> None:
    found = read({"id": 7, "body": "First line\n# no heading\nlast line", "next": "x"})
    assert found.content == "id: 7\n\nbody:\n\nFirst line\n\\# no heading\nlast line\n\nnext: x\n"
    assert read({"body": "word " * 60}).content.startswith("body:\n\nword word")


def test_what_is_inside_of_a_list_is_said_in_its_order() -> None:
    messages = [{"from": "Anna", "text": "Hi"}, {"from": "Ben", "text": "Hello"}]
    assert read({"messages": messages}).content == (
        "messages.from: Anna\nmessages.text: Hi\nmessages.from: Ben\nmessages.text: Hello\n"
    )


def test_values_that_are_no_objects_are_lines() -> None:
    assert read("just text", [1, "two"], 3.5, True).content == "just text\n\n1, two\n\n3.5\n\ntrue\n"


def test_a_bad_line_costs_itself_only() -> None:
    raw = b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": 2\r\n' + b"[" * 100_000 + b'\r\n{"a": 3}\r\n'
    found = json_lines.extract(raw, name="x.ndjson", settings=Extraction())
    assert found.content == "a: 1\n\na: 3\n"
    assert found.warnings == ("lines that are no JSON, left out: 2",)
    assert found.meta == {"records": 2}


def test_what_is_nested_without_end_is_named_to_a_depth_and_costs_nothing_else() -> None:
    value: object = "deep"
    for _ in range(50):
        value = {"a": [value]}
    first, *rest = read({"x": value, "y": "seen"}).content.splitlines()
    assert first.startswith('x.a.a.a.a: [{"a": ')
    assert "deep" in first
    assert rest == ["y: seen"]


def test_keys_and_values_with_line_ends_stay_on_their_lines() -> None:
    assert read({"a\nb": " x\ty ", "": "no key"}).content == "a b: x y\n-: no key\n"


def test_what_is_no_json_is_told() -> None:
    with pytest.raises(Malformed, match="no line of it is JSON"):
        json_lines.extract(b"Dear diary\n", name="x.jsonl", settings=Extraction())
    with pytest.raises(Unsupported):
        json_lines.extract(bytes(range(1, 256)) * 40, name="x.jsonl", settings=Extraction())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=250),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(JSON, min_size=1, max_size=4))
def test_every_record_becomes_a_mirror(records: list[object]) -> None:
    found = read(*records)
    assert found.content == canonical(found.content)
    assert found.meta["records"] == len(records)
    headings = sum(line.startswith("#") for line in found.content.split("\n"))
    assert headings <= len(records)


def test_what_lies_very_deep_stands_as_it_was_written() -> None:
    record: object = "the treasure"
    for _ in range(12):
        record = {"in": record}
    in_lists: object = ["the map"]
    for _ in range(12):
        in_lists = [in_lists, in_lists]
    raw = f"{json.dumps({'a': record})}\n{json.dumps({'b': in_lists})}\n".encode()
    content = json_lines.extract(raw, name="a.jsonl", settings=Extraction()).content
    assert "the treasure" in content
    assert "the map" in content
