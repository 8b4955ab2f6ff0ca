import hashlib
import os
from collections import Counter
from pathlib import Path

import pytest

from garage import fingerprint as digests
from garage.config import Extraction
from garage.extract import registry, text
from garage.extract.mirror import canonical
from garage.extract.model import ExtractError, Malformed, NoText, TooLarge, Unsupported
from garage.extract.registry import EXTRACTORS, SUFFIXES, extract, extractor_of, fingerprint, read

SETTINGS = Extraction()
# The extractors that another one falls back on, or whose way of reading it shares.
STANDS_ON = {
    "code": {"text"},
    "markdown": {"text"},
    "mail": {"outlook", "rtf"},
    "outlook": {"rtf"},
    "xlsx": {"spreadsheet"},
}

KINDS = ("prose", "markdown", "tabular", "code:")


def test_no_two_extractors_claim_one_kind_of_file() -> None:
    claims = Counter(ending for module in EXTRACTORS.values() for ending in module.SUFFIXES)
    assert [ending for ending, times in claims.items() if times > 1] == []
    assert sorted(claims) == sorted(SUFFIXES)


def test_every_module_that_has_the_shape_of_an_extractor_is_registered() -> None:
    folder = Path(registry.__file__).parent
    shaped = {path.stem for path in folder.glob("*.py") if "\nSUFFIXES = " in path.read_text(encoding="utf-8")}
    assert shaped == set(EXTRACTORS)
    assert all(name == module.NAME for name, module in EXTRACTORS.items())


def test_endings_are_lower_case_and_kinds_are_known() -> None:
    for module in EXTRACTORS.values():
        assert all(ending == ending.lower() for ending in module.SUFFIXES)
        assert all(kind.startswith(KINDS) for kind in module.SUFFIXES.values())


@pytest.mark.parametrize(
    ("name", "extractor"),
    [
        ("a.md", "markdown"),
        ("A.MD", "markdown"),
        ("a.tar.txt", "text"),
        ("README", "text"),
        ("Makefile", "code"),
        ("CMakeLists.txt", "code"),
        (".gitignore", "code"),
        ("a.pdf", "pdf"),
        ("a.docm", "docx"),
        ("a.doc", None),
        ("a.eml", "mail"),
        ("Inbox.mbox", "mbox"),
        ("a.xlsm", "xlsx"),
        ("a.ods", "odf"),
        ("IMG_1.HEIC", "image"),
        ("md", None),
        ("a.", None),
        ("", None),
    ],
)
def test_a_name_decides_which_extractor_reads_a_file(name: str, extractor: str | None) -> None:
    assert extractor_of(name) == extractor


def test_reading_gives_the_bytes_and_their_hash(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"some bytes")
    raw = read(os.fsencode(path), max_bytes=10)
    assert (raw.data, raw.sha256) == (b"some bytes", hashlib.sha256(b"some bytes").digest())


def test_reading_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9\n.txt"
    with open(path, "wb") as stream:  # noqa: PTH123 - a name that pathlib cannot hold
        stream.write(b"x")
    assert read(path, max_bytes=10).data == b"x"


@pytest.mark.parametrize("size", [11, 5_000_000])
def test_a_file_over_the_limit_is_not_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(bytes(size))
    with pytest.raises(TooLarge, match=str(size)) as caught:
        read(path, max_bytes=10)
    assert caught.value.outcome == "too_large"


def test_a_file_whose_size_is_not_told_is_read_up_to_the_limit() -> None:
    assert read("/proc/self/status", max_bytes=100_000).data.startswith(b"Name:")
    with pytest.raises(TooLarge):
        read("/proc/self/status", max_bytes=10)


@pytest.mark.timeout(20)
def test_what_is_no_regular_file_is_neither_followed_nor_waited_for(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "link", tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(Unsupported, match="not a regular file"):
            read(path, max_bytes=100)


def test_a_vanished_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "gone", max_bytes=100)


@pytest.mark.parametrize("extractor", sorted(EXTRACTORS))
def test_an_empty_file_has_no_text(extractor: str) -> None:
    with pytest.raises(NoText, match="empty"):
        extract(b"", extractor=extractor, name="a", settings=SETTINGS)


@pytest.mark.parametrize("raw", [b" \n\t\n", b"\x00\x00", b"\xef\xbb\xbf", "\u200b".encode()])
def test_a_file_of_nothing_visible_has_no_text(raw: bytes) -> None:
    with pytest.raises(NoText, match="no text"):
        extract(raw, extractor="text", name="a.txt", settings=SETTINGS)


def test_whatever_a_library_raises_is_told_as_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(raw: bytes, *, name: str, settings: Extraction) -> None:
        raise LookupError(f"bad\x00\nentry {'x' * 1000}")

    monkeypatch.setattr(text, "extract", fail)
    with pytest.raises(Malformed, match="it cannot be read: LookupError: bad entry xxx") as caught:
        extract(b"abc", extractor="text", name="a.txt", settings=SETTINGS)
    assert len(caught.value.message) <= 300
    assert isinstance(caught.value.__cause__, LookupError)


def test_want_of_memory_is_not_told_as_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(raw: bytes, *, name: str, settings: Extraction) -> None:
        raise MemoryError

    monkeypatch.setattr(text, "extract", fail)
    with pytest.raises(MemoryError):
        extract(b"abc", extractor="text", name="a.txt", settings=SETTINGS)


def test_every_outcome_has_a_code_of_its_own_and_survives_a_process_border() -> None:
    import pickle

    kinds = ExtractError.__subclasses__()
    assert len({kind.outcome for kind in kinds}) == len(kinds) == 6
    for kind in kinds:
        error = pickle.loads(pickle.dumps(kind("what happened", hint="What to do.", meta={"pages": 3})))
        assert (type(error), str(error), error.meta) == (kind, "what happened What to do.", {"pages": 3})


def test_nested_beyond_all_reason_is_damage_and_kills_nothing() -> None:
    import io
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", "<document>" + "<sdt>" * 50_000 + "</sdt>" * 50_000 + "</document>")
    with pytest.raises(Malformed, match="Excessive depth"):
        extract(out.getvalue(), extractor="docx", name="a.docx", settings=SETTINGS)


def test_a_fingerprint_is_that_of_one_extractor() -> None:
    assert len({fingerprint(name, SETTINGS) for name in EXTRACTORS}) == len(EXTRACTORS)


@pytest.mark.parametrize("module", EXTRACTORS.values())
def test_a_fingerprint_covers_the_mirror_and_leaves_other_extractors_out(module: registry.Extractor) -> None:
    reached = set(digests._reachable([f"garage.extract.{module.NAME}"]))
    assert {"garage.extract.mirror", "garage.extract.model"} <= reached
    others = {name for name in EXTRACTORS if f"garage.extract.{name}" in reached} - {module.NAME}
    assert others <= STANDS_ON.get(module.NAME, set())
    assert not any(name.startswith(("garage.store", "garage.config")) for name in reached)


def test_naming_extractors_loads_none_of_their_libraries() -> None:
    import subprocess
    import sys

    program = (
        "import sys; import garage.extract.registry as r; from garage.config import Extraction;"
        "r.fingerprint('pdf', Extraction());"
        "print([m for m in ('pypdf', 'docx', 'lxml', 'charset_normalizer', 'numpy') if m in sys.modules])"
    )
    root = Path(registry.__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_everything_extracted_is_a_mirror() -> None:
    samples = {"text": b"a\r\nb", "markdown": b"---\r\na: 1\r\n---\r\n# b\r\n", "code": b"x\x00 = 1"}
    for extractor, raw in samples.items():
        (found,) = extract(raw, extractor=extractor, name="a", settings=SETTINGS)
        assert found.content == canonical(found.content)
