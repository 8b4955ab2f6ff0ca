"""`garage models`: the catalogue, a third model, and which one answers."""

from pathlib import Path
from typing import Any

import pytest

from garage.config import Config, load
from garage.store import embeddings, sources
from garage.store.database import Database

MINILM, Q8 = "all-minilm-l6-v2", "all-minilm-l6-v2-q8_0"


@pytest.fixture
def one_model(garage_home: Any, stocked: Config) -> Config:
    """The home of `stocked`, with only the default model enabled."""
    config: Config = garage_home.configure(
        {"name": "garden", "root": stocked.sources[0].root}, embedding={"models": [MINILM]}
    )
    return config


def test_the_list_says_what_is_fetched_enabled_and_answering(garage: Any, one_model: Config) -> None:
    found = {model["slug"]: model for model in garage("models", "list", "--json").data["models"]}
    assert set(found) >= {MINILM, Q8, "embeddinggemma-300m"}
    first = found[MINILM]
    assert (first["fetched"], first["enabled"], first["default"], first["serving"]) == (True, True, True, True)
    assert (first["vectors"], first["missing"]) == (3, 0)
    second = found[Q8]
    assert (second["fetched"], second["enabled"], second["serving"], second["vectors"]) == (True, False, False, 0)
    text = garage("models", "list").out
    assert "fetched, enabled, default, answers searches" in text


def test_looking_at_the_models_starts_no_database(garage: Any, plain_home: Path) -> None:
    answer = garage("models", "list", "--json")
    assert answer.code == 0
    assert {model["vectors"] for model in answer.data["models"]} == {None}
    assert not plain_home.exists()


def test_adding_a_model_of_the_catalogue_enables_it(garage: Any, one_model: Config) -> None:
    answer = garage("models", "add", Q8)
    assert answer.code == 0
    assert load().embedding.models == (MINILM, Q8)
    assert load().embedding.default == MINILM
    assert "garage update" in answer.out
    assert f"garage models default {Q8}" in answer.out


def test_adding_it_again_changes_nothing(garage: Any, garage_home: Any, one_model: Config) -> None:
    garage("models", "add", Q8)
    before = garage_home.config_path.read_bytes()
    answer = garage("models", "add", Q8, "--json")
    assert (answer.code, answer.data["added"]) == (0, False)
    assert garage_home.config_path.read_bytes() == before


def test_a_model_that_nobody_knows_is_a_bad_argument(garage: Any, one_model: Config) -> None:
    for command in ("add", "default"):
        answer = garage("models", command, "all-minilm")
        assert answer.code == 2
        assert "all-minilm-l6-v2" in answer.err


def test_a_file_of_one_s_own_becomes_a_model(garage: Any, one_model: Config, models_dir: Path) -> None:
    file = models_dir / f"{MINILM}.gguf"
    answer = garage("models", "add", "mine", "--file", file, "--dims", "384", "--context", "512", "--pooling", "mean")
    assert answer.code == 0, answer.err
    config = load()
    assert config.embedding.models == (MINILM, "mine")
    assert (config.models["mine"].file, config.models["mine"].dims, config.models["mine"].pooling) == (
        file,
        384,
        "mean",
    )


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--dims", "100", "--context", "512"], 1, "Set `dims` to 384."),
        (["--dims", "384", "--context", "4096"], 1, "Set `context` to 512 or less."),
        (["--dims", "384"], 2, "context"),
        (["--dims", "384", "--context", "512", "--stored-dims", "100"], 2, "Matryoshka"),
        (["--dims", "384", "--context", "512", "--document-template", "{txt}"], 2, "{text}"),
    ],
)
def test_what_the_file_contradicts_is_refused_before_anything_is_written(
    garage: Any, garage_home: Any, one_model: Config, models_dir: Path, options: list[str], code: int, said: str
) -> None:
    before = garage_home.config_path.read_bytes()
    answer = garage("models", "add", "mine", "--file", models_dir / f"{MINILM}.gguf", *options)
    assert answer.code == code
    assert said in answer.err
    assert garage_home.config_path.read_bytes() == before


def test_a_file_that_is_not_there_is_refused(garage: Any, one_model: Config, tmp_path: Path) -> None:
    answer = garage("models", "add", "mine", "--file", tmp_path / "no.gguf", "--dims", "384", "--context", "512")
    assert answer.code == 1
    assert "there is no such file" in answer.err
    assert load().embedding.models == (MINILM,)


def test_the_name_of_a_built_in_model_is_not_given_to_a_file(garage: Any, one_model: Config, models_dir: Path) -> None:
    file = models_dir / f"{MINILM}.gguf"
    answer = garage("models", "add", Q8, "--file", file, "--dims", "384", "--context", "512")
    assert answer.code == 1
    assert "already" in answer.err


def test_options_that_describe_a_file_need_one(garage: Any, one_model: Config) -> None:
    answer = garage("models", "add", Q8, "--dims", "384")
    assert answer.code == 2
    assert "--file" in answer.err


def test_a_model_without_vectors_cannot_be_the_default(garage: Any, one_model: Config) -> None:
    answer = garage("models", "default", Q8)
    assert answer.code == 1
    assert f"garage models add {Q8}" in answer.err
    assert load().embedding.default == MINILM


def test_the_old_model_answers_until_the_new_one_is_complete(
    garage: Any, one_model: Config, database: Database
) -> None:
    garage("models", "add", Q8)
    answer = garage("models", "default", Q8)
    assert answer.code == 0
    assert f"{Q8} is the default; {MINILM} answers searches until it is complete: it lacks 3 vectors" in answer.out
    assert load().embedding.default == Q8
    with database.connection() as conn:
        serving = embeddings.serving(conn)
    assert serving is not None
    assert serving.slug == MINILM
    assert garage("search", "greenhouse", "--json").data["model"] == MINILM


def test_a_model_that_is_complete_answers_at_once(
    garage: Any, garage_home: Any, one_model: Config, database: Database
) -> None:
    garage("models", "add", Q8)
    with database.connection() as conn:
        row = sources.source(conn, "garden")
        old = embeddings.model(conn, MINILM)
        assert old is not None
        new = embeddings.register(conn, Q8, dims=384, stored_dims=384, storage="vector", fingerprint=old.fingerprint)
    copy = f"insert into garage.{new.table_name} select * from garage.{old.table_name}"
    with database.transaction() as conn:
        conn.execute(copy.encode())
        assert embeddings.count_pending(conn, new, row.id) == 0
    answer = garage("models", "default", Q8, "--json")
    assert answer.data == {"default": Q8, "serving": Q8, "missing": 0}
