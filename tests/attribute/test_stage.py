"""A folder as people have one is classified as a person would, and decided again only where that can change."""

import io
import mailbox
import os
import shutil
import subprocess
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from garage import stages, worklist
from garage.config import load
from garage.inference.testing import HashEmbedder
from garage.search.hybrid import search
from garage.store.database import Database
from garage.store.search import Filters
from garage.store.sources import Source
from garage.worklist import Report

ADA: dict[str, Any] = {
    "name": "Ada Lovelace",
    "identities": ["email:ada@example.org", "git_email:ada@work.example", "handle:alovelace"],
}
_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
}


class Garage:
    """A source called `lib` on a database of the test's own, under a configuration that can change."""

    def __init__(self, home: Any, root: Path) -> None:
        self.home, self.root = home, root
        self.database = Database(home.database_url)
        self.configure()

    def configure(self, *, identity: dict[str, Any] = ADA, source: dict[str, Any] | None = None, **more: Any) -> None:
        self.home.configure(
            {"name": "lib", "root": self.root, "include_code": True, **(source or {})},
            extraction={"workers": 1},
            identity=identity,
            **more,
        )

    def row(self) -> Source:
        return stages.source(self.database, load(), "lib")

    def read(self) -> None:
        config = load()
        stages.walk(self.database, config, self.row())
        worklist.run(self.database, stages.documents(self.database, config, self.row()))

    def attribute(self) -> Report:
        assert stages.histories(self.database, self.row()).warnings == ()
        return worklist.run(self.database, stages.attribution(self.database, load(), self.row()))

    def rows(self, query: str) -> list[Any]:
        with self.database.connection() as conn:
            return conn.execute(query.encode()).fetchall()

    def decided(self) -> dict[str, tuple[str, str, str]]:
        """Class, trust and the evidence that won, by address."""
        return {
            uri: (corpus_class, trust, evidence)
            for uri, corpus_class, trust, evidence in self.rows(
                "select uri, corpus_class, trust_tier, (select s->>'evidence' from jsonb_array_elements(signals) s"
                " where (s->>'won')::bool and s->>'signal' <> 'class') from documents order by 1"
            )
        }

    def parts(self) -> list[tuple[str, str, str]]:
        return [
            (uri, name, role)
            for uri, name, role in self.rows(
                "select d.uri, a.display_name, p.role from document_authors p join documents d on d.id = p.document_id"
                " join authors a on a.id = p.author_id order by 1, 3, 2"
            )
        ]


@pytest.fixture
def garage(garage_home: Any, tmp_path: Path) -> Iterator[Garage]:
    root = tmp_path / "Everything"
    root.mkdir()
    made = Garage(garage_home, root)
    yield made
    made.database.close()


def commit(repository: Path, who: str, files: dict[str, str]) -> None:
    """Writes files and commits them under a name and address."""
    name, _, email = who.removesuffix(">").partition(" <")
    who_env = {
        f"GIT_{role}_{what}": said
        for role in ("AUTHOR", "COMMITTER")
        for what, said in (("NAME", name), ("EMAIL", email))
    }

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True, env=_GIT | who_env)

    if not repository.exists():
        repository.mkdir(parents=True)
        git("init", "-q")
    for file, text in files.items():
        (repository / file).parent.mkdir(parents=True, exist_ok=True)
        (repository / file).write_text(text, encoding="utf-8")
    git("add", "-A")
    git("commit", "-q", "-m", "words")


def pdf(author: str | None) -> bytes:
    """One page of text, with an author in its information dictionary."""
    text = b"BT /F1 12 Tf 72 720 Td (The boiler keeps its pressure through the night, and the valve stays shut.) Tj ET"
    info = f"/Author ({author})" if author else ""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(text), text),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<<{info}/Producer(LibreOffice 7.3)>>".encode(),
    ]
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(
        out + b"trailer<</Size %d/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    )


def docx(author: str) -> bytes:
    from docx import Document

    document = Document()
    document.core_properties.author = author
    document.add_paragraph("The greenhouse is heated from October until the end of March.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def xlsx(author: str) -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    book.properties.creator = author
    book.create_sheet("Harvest", 0).append(["tree", "apples harvested in autumn"])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def pptx(author: str) -> bytes:
    from pptx import Presentation

    deck = Presentation()
    deck.core_properties.author = author
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "What the bees did in summer"
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def mail(sender: str, to: str, cc: str = "") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, to, "About the pump"
    message["Message-ID"] = f"<{abs(hash((sender, to)))}@example.org>"
    if cc:
        message["Cc"] = cc
    message.set_content("The pump of the garden runs dry in July, so let us look at it together.\n")
    return message


def furnish(root: Path) -> None:
    """A folder with a clone, an own repository, papers, office files and mail."""
    commit(
        root / "Projects/clone",
        "Linus T <linus@kernel.example>",
        {"README.md": "# Clone\n\nA kernel of note.\n", "LICENSE": "You may use it as you like, at no charge.\n"},
    )
    commit(
        root / "Projects/clone", "Greg K <greg@kernel.example>", {"init/main.py": "def main() -> int:\n    return 1\n"}
    )
    own = root / "Code/own"
    commit(
        own,
        "Ada Lovelace <Ada@Work.Example>",
        {"README.md": "# Engine\n\nIt weaves patterns.\n", "engine.py": "def weave() -> int:\n    return 2\n"},
    )
    commit(
        own,
        "Charles B <charles@work.example>",
        {"engine.py": "def weave() -> int:\n    return 3\n", "mill.py": "def mill() -> int:\n    return 4\n"},
    )
    (own / "draft.md").write_text("# Draft\n\nNot committed as yet, and about weaving.\n", encoding="utf-8")
    files: dict[str, bytes] = {
        "Papers/shannon.pdf": pdf(None),
        "Downloads/survey.pdf": pdf("Mary Somerville"),
        "Downloads/engine notes.pdf": pdf("Lovelace, Ada"),
        "Downloads/scan.pdf": pdf("Microsoft Office User"),
        "Letters/to the council.docx": docx("Ada Lovelace"),
        "Letters/from the council.docx": docx("Town Council"),
        "Letters/generated.docx": docx("python-docx"),
        "Letters/account.docx": docx("alovelace"),
        "Garden/harvest.xlsx": xlsx("openpyxl"),
        "Garden/theirs.xlsx": xlsx("Nick Burch"),
        "Garden/bees.pptx": pptx("python-pptx"),
        "Garden/joint.md": b"---\nauthors: [Mary Somerville, Ada Lovelace]\n---\n# Joint\n\nWe wrote it together.\n",
        "Garden/plain.md": b"# Plain\n\nNobody signed this page about the garden.\n",
        "Garden/Manuals/pump.md": b"# Pump\n\nTurn the red wheel by a quarter.\n",
        "Mail/in.eml": bytes(
            mail("Mary Somerville <mary@example.net>", "Ada <ada@example.org>", "Charles <charles@work.example>")
        ),
        "Mail/out.eml": bytes(mail("Ada Lovelace <ADA@example.org>", "mary@example.net")),
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    box = mailbox.mbox(root / "Mail/archive.mbox")
    box.add(mail("charles@work.example", "ada@example.org"))
    box.add(mail("ada@example.org", "charles@work.example"))
    box.close()


def test_a_folder_as_people_have_one_is_classified_as_a_person_would(garage: Garage) -> None:
    furnish(garage.root)
    garage.read()
    report = garage.attribute()
    found = garage.decided()
    letters = {uri: said for uri, said in found.items() if uri.startswith("Mail/archive.mbox#")}
    assert sorted(said[1:] for said in letters.values()) == [
        ("authored", "message-sender:self"),
        ("received", "message-sender:charles@work.example"),
    ]
    assert {uri: said for uri, said in found.items() if uri not in letters} == {
        "Code/own/README.md": ("document", "authored", "git-log:self-commits:1/1"),
        "Code/own/draft.md": ("document", "authored", "source-default"),
        "Code/own/engine.py": ("code", "authored", "git-log:self-commits:1/2"),
        "Code/own/mill.py": ("code", "reference", "git-log:self-commits:0/1"),
        "Downloads/engine notes.pdf": ("document", "authored", "metadata:author:Ada Lovelace"),
        "Downloads/scan.pdf": ("document", "authored", "source-default"),
        "Downloads/survey.pdf": ("document", "reference", "metadata:author:Mary Somerville"),
        "Garden/Manuals/pump.md": ("document", "reference", "path-rule:Manuals/"),
        "Garden/bees.pptx": ("document", "authored", "source-default"),
        "Garden/harvest.xlsx": ("document", "authored", "source-default"),
        "Garden/joint.md": ("document", "authored", "metadata:author:Ada Lovelace"),
        "Garden/plain.md": ("document", "authored", "source-default"),
        "Garden/theirs.xlsx": ("document", "reference", "metadata:author:Nick Burch"),
        "Letters/account.docx": ("document", "authored", "metadata:author:alovelace"),
        "Letters/from the council.docx": ("document", "reference", "metadata:author:Town Council"),
        "Letters/generated.docx": ("document", "authored", "source-default"),
        "Letters/to the council.docx": ("document", "authored", "metadata:author:Ada Lovelace"),
        "Mail/in.eml": ("communication", "received", "message-sender:mary@example.net"),
        "Mail/out.eml": ("communication", "authored", "message-sender:self"),
        "Papers/shannon.pdf": ("document", "reference", "path-rule:Papers/"),
        "Projects/clone/LICENSE": ("document", "reference", "git-log:self-commits:0/1"),
        "Projects/clone/README.md": ("document", "reference", "git-log:self-commits:0/1"),
        "Projects/clone/init/main.py": ("code", "reference", "git-log:self-commits:0/1"),
    }
    assert report.counts["attributed"] == len(found)
    parts = garage.parts()
    assert ("Code/own/engine.py", "Ada Lovelace", "author") in parts
    assert ("Code/own/engine.py", "Charles B", "author") in parts
    assert [part for part in parts if part[0] == "Mail/in.eml"] == [
        ("Mail/in.eml", "Charles B", "cc"),
        ("Mail/in.eml", "Ada Lovelace", "recipient"),
        ("Mail/in.eml", "Mary Somerville", "sender"),
    ]
    assert len(garage.rows("select from authors where is_self")) == 1


def test_a_second_run_does_nothing(garage: Garage) -> None:
    furnish(garage.root)
    garage.read()
    first = garage.attribute()
    places = "select sum(hashtext(ctid::text || xmin::text)) from "
    tables = ("documents", "document_authors", "authors", "author_identities")
    before = [garage.rows(places + table) for table in tables]
    second = garage.attribute()
    assert second.counts == {}
    assert second.data_version == first.data_version
    assert [garage.rows(places + table) for table in tables] == before


def test_other_rules_and_another_owner_decide_again_and_nothing_else_is_done(garage: Garage) -> None:
    furnish(garage.root)
    garage.read()
    garage.attribute()
    stored = "select id, document_id, ord, text, input_sha256, ctid::text, xmin::text from chunks order by id"
    chunks = garage.rows(stored)
    outcomes = garage.rows("select uri, at from ingest_outcomes order by 1")
    garage.configure(
        identity={"name": "Mary Somerville", "identities": ["email:mary@example.net"]},
        attribution={"path_rules": {"Garden/": "received"}},
    )
    report = garage.attribute()
    found = garage.decided()
    assert report.counts["attributed"] == len(found)
    assert found["Downloads/survey.pdf"][1:] == ("authored", "metadata:author:Mary Somerville")
    assert found["Letters/to the council.docx"][1] == "reference"
    assert found["Mail/in.eml"][1:] == ("authored", "message-sender:self")
    assert found["Mail/out.eml"][1:] == ("received", "message-sender:ada@example.org")
    assert found["Garden/plain.md"][1:] == ("received", "path-rule:Garden/")
    assert found["Code/own/engine.py"][1:] == ("reference", "git-log:self-commits:0/2")
    assert garage.rows(stored) == chunks
    assert garage.rows("select uri, at from ingest_outcomes order by 1") == outcomes
    names = {name for (name,) in garage.rows("select display_name from authors where is_self")}
    assert names == {"Mary Somerville"}
    garage.configure()
    garage.attribute()
    assert garage.decided()["Mail/out.eml"][1] == "authored"


def test_names_and_addresses_of_any_length_are_stored(garage: Garage) -> None:
    (garage.root / "a.md").write_text(
        f"---\nauthor: {'Ada ' * 2_000}\n---\n# Long\n\nWords of a page.\n", encoding="utf-8"
    )
    (garage.root / "b.eml").write_text(
        f"From: x <{'ß' * 4_000}@example.org>\nTo: {', '.join(f'p{n}@example.org' for n in range(500))}\n"
        "Subject: Long\n\nThe words of a mail.\n",
        encoding="utf-8",
    )
    garage.read()
    assert garage.attribute().counts["attributed"] == 2
    assert {role for _, _, role in garage.parts()} == {"author", "sender", "recipient"}
    assert len(garage.parts()) == 102


def test_a_search_sees_at_once_what_was_decided(garage: Garage) -> None:
    (garage.root / "Books").mkdir()
    (garage.root / "Books/garden.md").write_text("# Garden\n\nThe quince blossoms in April.\n", encoding="utf-8")
    garage.read()

    def found(trust: str, corpus_class: str) -> list[str]:
        results = search(
            garage.database,
            "quince",
            settings=load().search,
            embedder=lambda model: HashEmbedder(slug=model.slug, dims=model.stored_dims),
            mode="keyword",
            filters=Filters(trusts=(trust,), classes=(corpus_class,)),
        )
        return [hit.passage.uri for hit in results.hits]

    assert found("authored", "document") == ["Books/garden.md"]
    garage.attribute()
    assert (found("authored", "document"), found("reference", "document")) == ([], ["Books/garden.md"])
    garage.configure(source={"class": "communication"}, attribution={"path_rules": {"garden.*": "received"}})
    garage.attribute()
    assert (found("reference", "document"), found("received", "communication")) == ([], ["Books/garden.md"])


def test_a_commit_decides_again_about_its_files_alone(garage: Garage) -> None:
    furnish(garage.root)
    garage.read()
    garage.attribute()
    commit(
        garage.root / "Code/own", "Ada Lovelace <ada@work.example>", {"mill.py": "def mill() -> int:\n    return 5\n"}
    )
    report = garage.attribute()
    assert report.counts == {"attributed": 2, "reclassified": 1}  # the draft, committed with it, is the other
    assert garage.decided()["Code/own/mill.py"] == ("code", "authored", "git-log:self-commits:1/2")


def test_a_source_of_communications_holds_nothing_else(garage: Garage) -> None:
    furnish(garage.root)
    garage.configure(source={"class": "communication", "trust": "received"})
    garage.read()
    garage.attribute()
    found = garage.decided()
    assert {corpus_class for corpus_class, _, _ in found.values()} == {"communication"}
    assert found["Garden/plain.md"][1:] == ("received", "source-default")
    garage.configure()
    garage.attribute()
    found = garage.decided()
    assert found["Garden/plain.md"][:2] == ("document", "authored")
    assert found["Mail/in.eml"][:2] == ("communication", "received")


def test_an_edited_document_is_decided_again(garage: Garage) -> None:
    furnish(garage.root)
    garage.read()
    garage.attribute()
    page = garage.root / "Garden/plain.md"
    page.write_text("---\nauthor: Mary Somerville\n---\n# Signed\n\nNow somebody signed this page.\n", encoding="utf-8")
    garage.read()
    assert garage.attribute().counts == {"attributed": 1, "reclassified": 1}
    assert garage.decided()["Garden/plain.md"][1:] == ("reference", "metadata:author:Mary Somerville")


def test_without_an_owner_everything_but_mail_goes_by_folder_and_source(garage: Garage) -> None:
    furnish(garage.root)
    garage.configure(identity={})
    garage.read()
    garage.attribute()
    found = garage.decided()
    assert found["Projects/clone/README.md"][1:] == ("authored", "path-rule:Projects/")
    assert found["Papers/shannon.pdf"][1:] == ("reference", "path-rule:Papers/")
    assert found["Downloads/survey.pdf"][1:] == ("authored", "source-default")
    assert found["Mail/in.eml"][1] == "received"
    assert garage.rows("select from authors where is_self") == []


@pytest.mark.slow
def test_the_real_mails_are_received_but_for_the_owners(garage: Garage, shared: Path) -> None:
    shutil.copytree(shared / "corpus/mail", garage.root / "mail")
    garage.configure(
        identity={"name": "Mikel Lindsaar", "identities": ["email:raasdnil@gmail.com", "email:test@lindsaar.net"]}
    )
    garage.read()
    garage.attribute()
    found = garage.decided()
    assert len(found) > 90
    assert {corpus_class for corpus_class, _, _ in found.values()} == {"communication"}
    senders = dict(garage.rows("select uri, meta->>'from' from documents"))
    for uri, (_, trust, evidence) in found.items():
        sender = senders[uri] or ""
        mine = "raasdnil@gmail.com" in sender or "test@lindsaar.net" in sender
        assert trust == ("authored" if mine or not sender else "received"), (uri, sender)
        assert evidence == ("message-sender:self" if mine else evidence)
    assert sum(trust == "authored" for _, trust, _ in found.values()) >= 6
