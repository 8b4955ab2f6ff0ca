from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import pytest

from garage.inference import native
from garage.inference.catalogue import ModelEntry, builtin, model_entry
from garage.inference.embedder import Embedder
from garage.inference.errors import ModelUnusable
from garage.inference.gguf_convert import convert
from garage.inference.llama import LlamaEmbedder, _share_out

if TYPE_CHECKING:
    from tests.inference.conftest import TinyOrigins

CLS, SEP = 101, 102
LONG = "The archive describes how the machines were built and who paid for them. " * 200
TEXTS = [
    "Installing the program on Debian takes one command.",
    "",
    "x",
    "Čeština, français, español: Latin letters with accents.",
    "数据库里有很多文件。",
    "emoji 🙂🚀 and [SEP] in a text",
    "def embed(texts):\n    return [model(t) for t in texts]\n",
    LONG,
]


@pytest.fixture(scope="module")
def bare(models_dir: Path, minilm: LlamaEmbedder) -> Iterator[Any]:
    """llama-cpp-python's own embedding class on the same file."""
    native.library()
    from llama_cpp import Llama

    model = Llama(
        str(models_dir / f"{minilm.slug}.gguf"), embedding=True, n_ctx=512, n_batch=512, n_ubatch=512, verbose=False
    )
    yield model
    model.close()


def test_vectors_are_unit_length_float32_in_the_order_of_the_texts(minilm: LlamaEmbedder) -> None:
    vectors = minilm.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.array_equal(minilm.embed_documents(TEXTS[::-1])[::-1], vectors)


def test_a_vector_does_not_depend_on_what_it_is_embedded_with(minilm: LlamaEmbedder) -> None:
    together = minilm.embed_documents(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert np.array_equal(minilm.embed_documents([text])[0], vector)


def test_no_texts_give_no_vectors(minilm: LlamaEmbedder) -> None:
    assert minilm.embed_documents([]).shape == (0, 384)


@pytest.mark.parametrize("text", TEXTS[:-1], ids=range(len(TEXTS) - 1))
def test_vectors_are_those_of_llama_cpp_itself(text: str, minilm: LlamaEmbedder, bare: Any) -> None:
    expected = np.asarray(bare.embed(text, normalize=True))
    assert minilm.embed_documents([text])[0] @ expected > 0.99999


def test_a_paraphrase_is_nearer_than_another_subject(minilm: LlamaEmbedder) -> None:
    text, paraphrase, other = minilm.embed_documents(
        [
            "The cat chased the mouse through the kitchen.",
            "A feline ran after a rodent where meals are cooked.",
            "Interest rates rose again in the third quarter.",
        ]
    )
    assert text @ paraphrase > 0.4
    assert text @ other < 0.1


def test_a_question_finds_its_answer(minilm: LlamaEmbedder) -> None:
    passages = ["Run make run to start everything.", "The heart pumps blood.", "Paris is the capital of France."]
    scores = minilm.embed_documents(passages) @ minilm.embed_query("what does the heart do?")
    assert int(scores.argmax()) == 1


def test_eight_bits_give_nearly_the_same_vectors(minilm: LlamaEmbedder, minilm_q8: LlamaEmbedder) -> None:
    cosines = (minilm.embed_documents(TEXTS) * minilm_q8.embed_documents(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.99
    assert cosines.max() < 1 - 1e-7
    assert minilm.fingerprint != minilm_q8.fingerprint


def test_a_long_text_is_cut_to_the_context_and_keeps_its_closing_token(minilm: LlamaEmbedder) -> None:
    tokens = minilm._model.tokens(LONG)
    assert len(tokens) == 512
    assert (tokens[0], tokens[-1]) == (CLS, SEP)
    whole = minilm._model._tokenize(LONG, special=True)
    assert np.array_equal(tokens[:-1], whole[:511])
    one, longer = minilm.embed_documents([LONG, LONG + "and then something else entirely"])
    assert np.array_equal(one, longer)


def test_a_text_that_just_fits_is_not_cut(minilm: LlamaEmbedder) -> None:
    fits, over = "a " * 510, "a " * 511
    assert len(minilm._model.tokens(fits)) == len(minilm._model.tokens(over)) == 512
    assert len(minilm._model._tokenize(over, special=True)) == 513


def test_special_tokens_spelled_out_in_a_text_are_text(minilm: LlamaEmbedder) -> None:
    tokens = minilm._model.tokens("a [SEP] b [CLS] c").tolist()
    assert tokens.count(SEP) == tokens.count(CLS) == 1


@pytest.mark.parametrize(
    "text", ["\0", "a\0b", "\ud800 lone surrogate", " \n\t ", "\u0301", "\ufffd" * 50, "🏳️‍🌈" * 300]
)
def test_odd_texts_have_vectors(text: str, minilm: LlamaEmbedder) -> None:
    assert np.isclose(np.linalg.norm(minilm.embed_query(text)), 1, atol=1e-6)


def test_threads_share_one_model(minilm: LlamaEmbedder) -> None:
    expected = minilm.embed_documents(TEXTS)
    questions = [minilm.embed_query(text) for text in TEXTS[:4]]

    def documents(_: int) -> bool:
        return np.array_equal(minilm.embed_documents(TEXTS), expected)

    def query(number: int) -> bool:
        return np.array_equal(minilm.embed_query(TEXTS[number % 4]), questions[number % 4])

    with ThreadPoolExecutor(6) as pool:
        results = [*pool.map(documents, range(4)), *pool.map(query, range(40))]
    assert all(results)


def test_a_query_does_not_wait_for_a_batch(minilm: LlamaEmbedder) -> None:
    minilm.embed_query("made before the clock starts")
    batch = threading.Thread(target=minilm.embed_documents, args=([LONG] * 8,))
    batch.start()
    time.sleep(0.1)
    minilm.embed_query("short question")
    assert batch.is_alive()
    batch.join()


def test_the_query_template_is_applied_to_queries_alone(tiny: TinyOrigins, tiny_gguf: Path) -> None:
    entry = tiny.entry(query_template="ask {text}")
    with_template = LlamaEmbedder(entry, tiny_gguf, weights_sha256="0" * 64)
    assert np.array_equal(with_template.embed_query("abc"), with_template.embed_documents(["ask abc"])[0])
    with_template.close()


@pytest.fixture(scope="session")
def tiny_gguf(tiny: TinyOrigins, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    convert(tiny.folder, path, name="tests/tiny", licence="CC0-1.0", kind="f16")
    return path


def opened(entry: ModelEntry, path: Path, threads: int = 1) -> LlamaEmbedder:
    return LlamaEmbedder(entry, path, weights_sha256="0" * 64, threads=threads)


def test_a_closed_model_says_so(tiny: TinyOrigins, tiny_gguf: Path) -> None:
    embedder: Embedder = opened(tiny.entry(), tiny_gguf)
    embedder.embed_query("abc")
    embedder.close()
    embedder.close()
    with pytest.raises(RuntimeError, match="'tiny' is closed"):
        embedder.embed_query("abc")
    with pytest.raises(RuntimeError, match="'tiny' is closed"):
        embedder.embed_documents(["abc"])


def test_a_matryoshka_vector_is_cut_and_brought_back_to_length_one(tiny: TinyOrigins, tiny_gguf: Path) -> None:
    whole = opened(tiny.entry(), tiny_gguf)
    short = opened(tiny.entry(matryoshka=True, stored_dims=8), tiny_gguf)
    expected = whole.embed_query("abc")[:8]
    assert short.dims == 8
    assert np.allclose(short.embed_documents(["abc"])[0], expected / np.linalg.norm(expected), atol=1e-6)
    whole.close()
    short.close()


def test_pooling_of_the_entry_overrides_that_of_the_file(tiny: TinyOrigins, tiny_gguf: Path) -> None:
    vectors = []
    for pooling in ("file", "mean", "cls", "last"):
        embedder = opened(tiny.entry(pooling=pooling), tiny_gguf)
        vectors.append(embedder.embed_query("abcdef"))
        embedder.close()
    by_file, mean, cls, last = vectors
    assert np.array_equal(by_file, mean)
    assert mean @ cls < 0.999
    assert cls @ last < 0.999


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_no_vector(threads: int, tiny: TinyOrigins, tiny_gguf: Path) -> None:
    embedder = opened(tiny.entry(), tiny_gguf, threads)
    texts = ["abc" * at for at in range(9)]
    vectors = embedder.embed_documents(texts)
    assert np.array_equal(vectors, np.array([embedder.embed_documents([text])[0] for text in texts]))
    assert len(embedder._batch_contexts) == min(threads, 9)
    embedder.close()


@pytest.mark.parametrize(
    ("threads", "context_bytes", "expected"),
    [(0, 1, (8, 1)), (0, 1 << 30, (4, 2)), (0, 3 << 30, (1, 8)), (0, 1 << 40, (1, 8)), (3, 1 << 40, (3, 1))],
)
def test_contexts_share_the_cores_and_a_quarter_of_the_memory(
    threads: int, context_bytes: int, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A machine with 8 cores and 16 GiB.
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 22}.__getitem__)
    assert _share_out(threads, context_bytes) == expected


def test_a_failing_text_stops_the_batch_and_leaves_the_model_usable(
    tiny: TinyOrigins, tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = opened(tiny.entry(), tiny_gguf, 2)
    whole, read = embedder._model.tokens, []

    def tokens(text: str) -> Any:
        if text == "longest text of all":
            # No text can do this; an input without tokens is what llama.cpp itself refuses.
            return np.empty(0, np.int32)
        read.append(text)
        time.sleep(0.05)
        return whole(text)

    with monkeypatch.context() as patch:
        patch.setattr(embedder._model, "tokens", tokens)
        with pytest.raises(RuntimeError, match="could not embed 0 tokens"):
            embedder.embed_documents(["longest text of all", *["abc"] * 30])
        stopped_at = len(read)
        time.sleep(0.2)
    assert stopped_at == len(read) < 10
    assert embedder.embed_documents(["abc"]).shape == (1, 32)
    embedder.close()


@pytest.mark.parametrize(
    ("changes", "said", "hint"),
    [
        ({"context": 65}, "it reads at most 64 tokens, its entry says 65", "Set `context` to 64 or less."),
        ({"dims": 33}, "its vectors have 32 dimensions, its entry says 33", "Set `dims` to 32."),
    ],
)
def test_an_entry_that_the_file_contradicts_is_refused(
    changes: dict[str, Any], said: str, hint: str, tiny: TinyOrigins, tiny_gguf: Path
) -> None:
    with pytest.raises(ModelUnusable) as refused:
        opened(tiny.entry(**changes), tiny_gguf)
    assert (refused.value.reason, refused.value.hint) == (said, hint)


@pytest.mark.parametrize("keep", [0, 1000, 20_000])
def test_a_damaged_file_is_refused_with_the_engines_reason(
    keep: int, tiny: TinyOrigins, tiny_gguf: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(tiny_gguf.read_bytes()[:keep])
    with pytest.raises(ModelUnusable, match=r"it does not load: (gguf_init|llama_model_load)") as refused:
        opened(tiny.entry(), damaged)
    assert str(damaged) in str(refused.value)


def test_a_model_that_does_not_pool_is_refused(
    tiny: TinyOrigins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf.GGUFWriter, "add_pooling_type", lambda *args: None)
    path = tmp_path / "unpooled.gguf"
    convert(tiny.folder, path, name="tests/tiny", licence="CC0-1.0", kind="f16")
    embedder = opened(tiny.entry(), path)
    with pytest.raises(ModelUnusable, match="probably not an embedding model"):
        embedder.embed_query("abc")
    embedder.close()
    with_pooling = opened(tiny.entry(pooling="mean"), path)
    assert with_pooling.embed_query("abc").shape == (32,)
    with_pooling.close()


def run(code: str, *, cwd: Path | None = None, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    done = run("""
        import sys
        import garage.inference.catalogue, garage.inference.embedder, garage.inference.fetch, garage.inference.native
        print([name for name in ("llama_cpp", "numpy", "gguf", "httpx", "filelock") if name in sys.modules])
    """)
    assert done.stdout.strip() == "[]"


def test_a_cold_query_prints_nothing_of_its_own(models_dir: Path, minilm: LlamaEmbedder) -> None:
    done = run(
        f"""
        from pathlib import Path
        from garage.inference.catalogue import builtin
        from garage.inference.embedder import open_embedder
        embedder = open_embedder(builtin()["{minilm.slug}"], Path({str(models_dir)!r}))
        print(embedder.embed_query("hello").shape, embedder.embed_documents(["hello"] * 3).shape)
        """
    )
    assert done.stdout == "(384,) (3, 384)\n"
    assert done.stderr == ""


def test_a_file_that_does_not_load_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"not a model")
    done = run(
        f"""
        from pathlib import Path
        from garage.inference.catalogue import model_entry
        from garage.inference.embedder import open_embedder
        from garage.inference.errors import ModelUnusable
        entry = model_entry({{"slug": "broken", "role": "embed", "file": "broken.gguf", "dims": 8, "context": 64}})
        try:
            open_embedder(entry, Path({str(tmp_path)!r}))
        except ModelUnusable as error:
            print(error.reason)
        """,
        cwd=tmp_path,
    )
    assert "it does not load" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(("given", "used"), [({}, "passive"), ({"OMP_WAIT_POLICY": "active"}, "active")])
def test_idle_threads_do_not_spin_unless_asked_to(given: dict[str, str], used: str) -> None:
    code = "import os; from garage.inference import native; native.library(); print(os.environ['OMP_WAIT_POLICY'])"
    cleared = {"OMP_WAIT_POLICY": "", **given}
    prelude = "" if given else "import os; del os.environ['OMP_WAIT_POLICY']; "
    assert run(prelude + code, env=cleared).stdout.strip() == used


def test_messages_of_the_engine_go_to_logging(
    tiny: TinyOrigins, tiny_gguf: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG, "garage.inference.llama"):
        opened(tiny.entry(), tiny_gguf).close()
    assert any("loaded meta data" in record.getMessage() for record in caplog.records)
    assert max(record.levelno for record in caplog.records) <= logging.INFO
    assert capfd.readouterr() == ("", "")


def test_models_are_given_back_when_nobody_holds_them(tiny: TinyOrigins, tiny_gguf: Path) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cycle() -> None:
        embedder = opened(tiny.entry(), tiny_gguf, 2)
        embedder.embed_documents(["abc", "def"])
        embedder.embed_query("abc")

    for _ in range(5):
        cycle()
    before = resident()
    for _ in range(40):
        cycle()
    assert resident() - before < 40 * (1 << 20)


def test_the_catalogue_describes_its_files_rightly(minilm: LlamaEmbedder, minilm_q8: LlamaEmbedder) -> None:
    for embedder in (minilm, minilm_q8):
        assert embedder.dims == builtin()[embedder.slug].dims
        assert embedder.slug in builtin()


def test_a_person_can_use_a_gguf_of_their_own(tiny_gguf: Path, tmp_path: Path) -> None:
    from garage.inference.embedder import open_embedder

    described = {"slug": "mine", "role": "embed", "file": str(tiny_gguf), "dims": 32, "context": 64}
    embedder = open_embedder(model_entry(described), tmp_path)
    assert embedder.embed_documents(["abc"]).shape == (1, 32)
    embedder.close()
