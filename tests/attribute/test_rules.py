"""What folders say: paths as people have them."""

import re
from importlib.resources import files

import pytest
import yaml

from garage.attribute.rules import TRUSTS, PathRule, path_rules


@pytest.mark.parametrize(
    ("path", "trust"),
    [
        ("Reference/arduino/pinout.pdf", "reference"),
        ("reference/pinout.pdf", "reference"),
        ("Work/REFERENCE/pinout.pdf", "reference"),
        ("Electronics/Datasheets/lm317.pdf", "reference"),
        ("Projects/boiler/Datasheets/valve.pdf", "reference"),
        ("House/Manuals/dishwasher.pdf", "reference"),
        ("Books/Knuth/taocp-1.pdf", "reference"),
        ("Personal/Books/emma.epub", "reference"),
        ("Books/Knuth/Notes/chapter 1.md", "authored"),
        ("Papers/1948 shannon.pdf", "reference"),
        ("Papers/Drafts/my own.tex", "authored"),
        ("Notes/papers/attention.md", "authored"),
        ("Specs/usb.pdf", "reference"),
        ("RFCs/rfc2616.txt", "reference"),
        ("RFC/rfc2616.txt", "reference"),
        ("Personal/letters/to-mary.docx", "authored"),
        ("Projects/thesis/chapter.md", "authored"),
        ("Reference/Projects/example/readme.md", "reference"),
        ("Documents/Research/bees.md", "authored"),
        ("home/ada/Documents/Research/2024/bees.md", "authored"),
        ("Research/Documents/bees.md", None),
        ("Research/bees.md", None),
        ("Documents/Old Research/bees.md", None),
        ("Bookkeeping/2024.xlsx", None),
        ("Paperwork/tax.pdf", None),
        ("Specials/menu.pdf", None),
        ("Release Notes/1.0.md", None),
        ("reference.md", None),
        ("Books", None),
        ("a.txt", None),
        ("Projects/site/node_modules/left-pad/README.md", "reference"),
        ("Notes/app/vendor/lib/guide.md", "reference"),
        ("third_party/zlib/ChangeLog.txt", "reference"),
        ("Vendor/contract.pdf", None),
        ("External/contract.pdf", None),
        ("venv/lib/python3.12/site-packages/x/readme.txt", "reference"),
    ],
)
def test_a_path_is_judged_as_a_person_would(path: str, trust: str | None) -> None:
    rule = path_rules().match(path)
    assert (rule.trust if rule else None) == trust


def test_there_are_sixteen_rules_and_each_can_decide() -> None:
    rules = [rule for rule in path_rules().rules if not rule.vendored]
    assert len(rules) == 16
    for rule in rules:
        example = re.sub(r"[*?]", "s", rule.glob) + "file.txt"
        assert path_rules().match(example) == rule


def test_every_folder_and_trust_of_the_data_is_sound() -> None:
    data = yaml.safe_load(files("garage.attribute").joinpath("path_rules.yaml").read_text(encoding="utf-8"))
    assert set(data) == {"vendored", "rules"}
    for rule in path_rules().rules:
        assert rule.glob.endswith("/")
        assert rule.trust in TRUSTS


def test_own_rules_go_before_the_built_in_ones_but_not_before_vendored_code() -> None:
    own = [PathRule("Clients/*/In/", "received"), PathRule("Books/", "authored"), PathRule("vendor/", "authored")]
    rules = path_rules(own)
    assert rules.match("Clients/ACME/in/brief.pdf") == own[0]
    assert rules.match("Books/mine.md") == own[1]
    found = rules.match("vendor/x.md")
    assert found is not None
    assert found.trust == "reference"


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.rfc.txt", "a/b/2616.rfc.txt", True),
        ("*.rfc.txt", "a/b.rfc.txt/c", False),
        ("/Inbox/", "Inbox/a.txt", True),
        ("/Inbox/", "old/Inbox/a.txt", False),
        ("Clients/**/signed/", "Clients/a/b/signed/x.pdf", True),
        ("Clients/**/signed/", "Clients/signed/x.pdf", True),
        ("Scan?/", "Scan1/x.pdf", True),
        ("Scan?/", "Scan12/x.pdf", False),
        ("a+b (c)/", "a+b (c)/x", True),
        ("R\u00e9sum\u00e9s/", "Re\u0301sume\u0301s/x.pdf", True),
    ],
)
def test_globs_mean_what_they_say(glob: str, path: str, matches: bool) -> None:
    assert (path_rules([PathRule(glob, "received")]).match(path) is not None) is matches
