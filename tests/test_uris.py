import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garage.uris import BadUri, path_of, uri_of

# Bytes of every kind, and the ones that meet in names: text of several scripts cut anywhere, escapes, separators.
paths = st.one_of(
    st.binary(),
    st.text().map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(st.sampled_from([b"a", b"/", b"%", b"%41", b"\n", b"\xc3", b"\xa9", b"\xe2\x80", b"\xae", b"."])).map(
        b"".join
    ),
).map(lambda path: path.replace(b"\x00", b""))


@given(paths)
def test_every_path_comes_back_from_its_address(path: bytes) -> None:
    assert path_of(uri_of(path)) == path


@given(paths)
def test_an_address_shows_no_control_character_and_fits_every_encoding(path: bytes) -> None:
    uri = uri_of(path)
    uri.encode("utf-8")
    assert not [char for char in uri if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}]
    assert not [char for char in uri if unicodedata.bidirectional(char) in {"RLO", "LRO", "RLE", "LRE", "RLI", "LRI"}]


@given(paths, paths)
def test_addresses_join_as_paths_do(folder: bytes, name: bytes) -> None:
    assert uri_of(folder + b"/" + name) == uri_of(folder) + "/" + uri_of(name)


@given(st.text())
def test_a_text_is_the_address_of_its_path_or_is_refused(text: str) -> None:
    try:
        path = path_of(text)
    except BadUri:
        return
    assert uri_of(path) == text


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (b"", ""),
        (b"notes/2024 plan.md", "notes/2024 plan.md"),
        ("Übung/日本語.md".encode(), "Übung/日本語.md"),
        (b"caf\xe9.md", "caf%E9.md"),
        (b"two\nlines.md", "two%0Alines.md"),
        (b"100%.md", "100%25.md"),
        ("abc\u202edm.exe".encode(), "abc%E2%80%AEdm.exe"),
        (b"\x7f\xc2\x85", "%7F%C2%85"),
    ],
)
def test_only_what_cannot_be_shown_is_escaped(path: bytes, uri: str) -> None:
    assert uri_of(path) == uri


@pytest.mark.parametrize("uri", ["50%", "%zz", "a%20b", "caf%e9", "%00", "\x00", "two\nlines", "\udce9"])
def test_a_text_that_is_no_address_is_refused_and_named(uri: str) -> None:
    with pytest.raises(BadUri, match="is not the address of a file") as caught:
        path_of(uri)
    assert caught.value.uri == uri
    str(caught.value).encode("utf-8")


def test_a_file_is_found_again_by_its_address(tmp_path: Path) -> None:
    name = b"odd \xff\n%41.md"
    (tmp_path / os.fsdecode(name)).write_text("here")
    uri = uri_of(name)
    assert (tmp_path / os.fsdecode(path_of(uri))).read_text() == "here"
