import re
from importlib.resources import files
from typing import Any

import pytest
import yaml

from garage.walk.exclusions import exclusions

FAMILIES: dict[str, dict[str, Any]] = yaml.safe_load(files("garage.walk").joinpath("exclusions.yaml").read_text())


def folder(path: str) -> str | None:
    return exclusions().folder_reason(path.rpartition("/")[2], b"/home/someone/" + path.encode())


def file(name: str) -> str | None:
    globs = exclusions().file_globs(name[name.rfind(".") :])
    return globs.reason(name) if globs else None


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_a_reason_and_lists_names_of_three_kinds(family: str) -> None:
    rules = FAMILIES[family]
    assert re.fullmatch(r"[a-z_]+", rules["reason"])
    kinds = rules.keys() - {"reason"}
    assert kinds
    assert kinds <= {"folders", "paths", "files"}
    for kind in kinds:
        assert all(isinstance(name, str) and name.strip() == name != "" for name in rules[kind])
        assert len(set(rules[kind])) == len(rules[kind])


def test_no_name_stands_in_two_families() -> None:
    for kind in ("folders", "paths", "files"):
        names = [name for rules in FAMILIES.values() for name in rules.get(kind, ())]
        assert sorted(names) == sorted(set(names))


def test_names_that_are_compared_without_case_are_written_in_lower_case() -> None:
    assert [n for rules in FAMILIES.values() for n in rules.get("files", ()) if n != n.lower()] == []


def test_the_list_is_long_enough_to_keep_a_developers_folders_out() -> None:
    names = [name for rules in FAMILIES.values() for name in rules.get("folders", ())]
    assert len([name for name in names if "*" not in name]) >= 40
    assert len(FAMILIES["diagnostic files"]["files"]) >= 20


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("project/.git", "version_control"),
        ("project/node_modules", "dependency"),
        ("lib/python3.12/site-packages", "dependency"),
        ("garage.egg-info", "dependency"),
        ("app/Pods", "dependency"),
        ("work/DerivedData", "build"),
        ("project/__pycache__", "cache"),
        ("cmake-build-debug", "build"),
        ("tests/fixtures", "test_data"),
        ("third_party", "dependency"),
        ("Notes.app", "application"),
        ("disk/lost+found", "system"),
        ("sysdiagnose_2026.01.02", "diagnostic"),
        ("today.logarchive", "diagnostic"),
        ("Library/Logs", "diagnostic"),
        ("Library/Logs/DiagnosticReports", "diagnostic"),
        ("go/pkg/mod", "dependency"),
        (".cargo/registry", "dependency"),
        ("Library/Caches", "cache"),
    ],
)
def test_a_folder_that_holds_nobodys_writing_is_left_out(path: str, reason: str) -> None:
    assert folder(path) == reason


@pytest.mark.parametrize(
    "path",
    ["Vendor", "Build", "letters", "mod", "pkg/mod", "ergo/pkg/mod", "registry", "Caches", "Targets", "app", "git"],
)
def test_a_folder_with_a_similar_name_stays(path: str) -> None:
    assert folder(path) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("~$report.docx", "temporary"),
        (".~lock.report.docx#", "temporary"),
        (".#notes.md", "temporary"),
        ("notes.md~", "temporary"),
        ("film.mp4.part", "temporary"),
        ("._notes.md", "system"),
        ("thumbs.db", "system"),
        ("package-lock.json", "generated"),
        ("jquery.min.js", "generated"),
        ("spindump.txt", "diagnostic"),
        ("spindump-2.txt", "diagnostic"),
        ("netstat.txt", "diagnostic"),
        ("ps.txt", "diagnostic"),
        ("mail-2026.ips", "diagnostic"),
        ("kernel.panic", "diagnostic"),
        ("sha256sums", "diagnostic"),
        ("sha256sums.txt", "diagnostic"),
        ("manifest-sha512.txt", "diagnostic"),
    ],
)
def test_a_file_that_nobody_wrote_is_left_out(name: str, reason: str) -> None:
    assert file(name) == reason


@pytest.mark.parametrize(
    "name",
    ["notes.md", "netstat.md", "psalms.txt", "manifest.txt", "md5 explained.md", "report~1.docx", "lock.docx", "a.txt"],
)
def test_a_file_with_a_similar_name_stays(name: str) -> None:
    assert file(name) is None


@pytest.mark.parametrize("ending", [".md", ".txt", ".json", ".docx", "readme", ".md~", ".part"])
def test_narrowing_by_suffix_loses_no_rule(ending: str) -> None:
    everything = exclusions().file_globs("")
    assert everything is not None
    for rules in FAMILIES.values():
        for glob in rules.get("files", ()):
            name = glob.replace("*", "x") if glob.endswith(ending) else glob.replace("*", "x") + ending
            narrowed = exclusions().file_globs(ending)
            assert (narrowed.reason(name) if narrowed else None) == everything.reason(name)
