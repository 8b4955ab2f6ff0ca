"""Nothing that a person wrote or keeps is rejected: own texts of many forms and languages, and real documents."""

import ast
import gzip
import json
import random
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from garage.config import Extraction
from garage.extract.mirror import canonical, decode, looks_binary
from garage.extract.model import ExtractError
from garage.extract.registry import SUFFIXES, extract
from garage.quality import judge
from tests.quality import writing

ROOT = Path(__file__).resolve().parents[2]
MOST = 400  # documents of a collection

Document = tuple[str, str, str]
"""Name, kind and text."""


@pytest.mark.parametrize(
    ("kind", "form"),
    [(kind, form) for kind, forms in writing.FORMS.items() for form in forms],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_what_people_write_and_keep_passes(kind: str, form: Callable[[random.Random], str]) -> None:
    verdicts = [judge(form(random.Random(f"{form.__name__} {number}")), kind=kind) for number in range(20)]
    assert [verdict.reason for verdict in verdicts if verdict.rejected] == []


@pytest.mark.parametrize("language", writing.PASSAGES)
def test_running_text_of_every_language_gives_no_signal(language: str) -> None:
    text = writing.running(language, random.Random(language))
    assert judge(text, kind="prose").signals == ()
    assert judge(" ".join(text.split("\n")) + "\n", kind="prose").signals == ()


def chosen(paths: Iterator[Path] | list[Path], most: int = MOST) -> list[Path]:
    """At most `most` of the files, the same ones each time."""
    files = sorted(path for path in paths if path.is_file())
    random.Random(7).shuffle(files)
    return files[:most]


def read(paths: list[Path], kind: str) -> Iterator[Document]:
    for path in paths:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = canonical(decode(raw)[0])
        if not looks_binary(raw) and text.strip():
            yield str(path), "markdown" if ".md" in path.suffixes else kind, text


def installed_documentation() -> Iterator[Document]:
    folder = Path("/usr/share/doc")
    names = ("README*", "NEWS*", "changelog*", "copyright", "*.md", "*.rst", "*.txt", "FAQ*", "HOWTO*", "TODO*")
    paths = {path for name in names for path in folder.glob(f"*/**/{name}")}
    yield from read(
        chosen([path for path in paths if path.suffix not in {".html", ".xml", ".json"}], 3 * MOST), "prose"
    )


def manual_pages() -> Iterator[Document]:
    yield from read(chosen(Path("/usr/share/man").glob("**/*.gz"), 3 * MOST), "prose")


def rendered_manual_pages() -> Iterator[Document]:
    if shutil.which("man") is None:
        return
    for path in chosen(Path("/usr/share/man").glob("man*/*.gz"), 60):
        ran = subprocess.run(["man", "-P", "cat", str(path)], capture_output=True, text=True, check=False)
        if ran.stdout.strip():
            yield str(path), "prose", canonical(ran.stdout)


def licences() -> Iterator[Document]:
    yield from read(chosen(Path("/usr/share/common-licenses").glob("*")), "prose")
    yield from read(chosen(Path(sysconfig.get_path("purelib")).glob("*.dist-info/**/LICEN[CS]E*")), "prose")


def descriptions_of_packages() -> Iterator[Document]:
    folder = Path(sysconfig.get_path("purelib"))
    yield from read(chosen(folder.glob("*.dist-info/METADATA")), "prose")
    yield from read(chosen([path for ending in ("md", "rst") for path in folder.rglob(f"*.{ending}")]), "prose")


def docstrings() -> Iterator[Document]:
    for path in chosen(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        tree = ast.parse(path.read_bytes())
        owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
        found = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, owners)]
        if text := "\n\n".join(filter(None, found)):
            yield str(path), "prose", canonical(text)


def source_code() -> Iterator[Document]:
    folder = Path(sysconfig.get_path("stdlib"))
    for path, _, text in read(chosen([*folder.glob("*.py"), *ROOT.glob("garage/**/*.py")]), "prose"):
        yield path, "code:python", text


def own_documents() -> Iterator[Document]:
    yield from read([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], "markdown")
    yield from read(chosen(ROOT.glob("examples/library/**/*.md")), "markdown")


COLLECTIONS = (
    *(installed_documentation, manual_pages, rendered_manual_pages, licences, descriptions_of_packages),
    *(docstrings, source_code, own_documents),
)


def refused(documents: list[Document]) -> list[str]:
    verdicts = ((name, judge(text, kind=kind)) for name, kind, text in documents)
    return [f"{name}: {verdict.reason}" for name, verdict in verdicts if verdict.rejected]


@pytest.mark.slow
@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda collection: collection.__name__)
def test_real_documents_of_this_machine_pass(collection: Callable[[], Iterator[Document]]) -> None:
    documents = list(collection())
    if not documents:
        pytest.skip("this machine has none of them")
    assert refused(documents) == []


@pytest.mark.slow
def test_the_documents_of_the_collections_pass_alone_and_joined(shared: Path) -> None:
    documents: list[Document] = []
    for corpus in sorted(shared.glob("eval/*/corpus.jsonl")):
        rows = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
        texts = [f"{row.get('title', '')}\n\n{row['text']}\n" for row in rows]
        documents += [(f"{corpus} {number}", "prose", text) for number, text in enumerate(texts)]
        joined = ("\n".join(texts[at : at + 40]) for at in range(0, len(texts), 40))
        documents += [(f"{corpus} from {40 * number}", "prose", text) for number, text in enumerate(joined)]
    documents += read(chosen(shared.glob("eval/**/*.md")), "markdown")
    assert len(documents) > 6_000
    assert refused(documents) == []


@pytest.mark.slow
def test_the_files_of_the_corpus_pass(shared: Path) -> None:
    documents: list[Document] = []
    for path in chosen(shared.glob("corpus/**/*")):
        name = SUFFIXES.get(path.name.lower()) or SUFFIXES.get(path.suffix.lower())
        if name is None or not {"pdf", "docx", "text", "markdown", "html", "mail"} & {name}:
            continue
        try:
            found = extract(path.read_bytes(), extractor=name, name=path.name, settings=Extraction())
        except ExtractError:
            continue
        documents += [(str(path), document.kind, document.content) for document in found]
    assert len(documents) > 80
    assert refused(documents) == []
