import pytest

from garage.chunk.languages import LANGUAGES
from garage.config import Extraction
from garage.extract import code
from garage.extract.model import Unsupported

SETTINGS = Extraction()


def test_source_code_stands_word_for_word() -> None:
    source = "def f():\n\treturn 1   \n\n\n\n# end"
    found = code.extract(source.encode(), name="a.py", settings=SETTINGS)
    assert (found.content, found.kind, found.title) == (source + "\n", "code:python", None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("main.PY", "code:python"),
        ("app.tsx", "code:typescript"),
        ("token.sol", "code:solidity"),
        ("ledger.cob", "code:cobol"),
        ("data.json", "code:text"),
        ("CMakeLists.txt", "code:text"),
        ("Makefile", "code:text"),
        ("Gemfile", "code:ruby"),
        ("table.csv", "tabular"),
        ("TABLE.TSV", "tabular"),
        ("something.else", "code:text"),
    ],
)
def test_the_kind_follows_from_the_name(name: str, kind: str) -> None:
    assert code.extract(b"a;b\n", name=name, settings=SETTINGS).kind == kind


def test_every_language_of_the_table_can_be_cut_and_every_cut_language_is_reached() -> None:
    reached = {kind.removeprefix("code:") for kind in code.SUFFIXES.values() if kind.startswith("code:")}
    assert reached == set(LANGUAGES)


def test_about_as_many_suffixes_as_there_are_kinds_of_source_files() -> None:
    assert len(code.SUFFIXES) > 75


def test_a_video_called_ts_is_refused() -> None:
    packet = b"\x47\x40\x11\x10" + bytes((i * 37) % 256 for i in range(184))
    with pytest.raises(Unsupported):
        code.extract(packet * 100, name="clip.ts", settings=SETTINGS)
