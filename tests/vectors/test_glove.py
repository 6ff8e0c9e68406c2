"""GloVe training, compared with a reference implementation."""

from __future__ import annotations

import copy
import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cooccurrence import random_text, reference_counts

from spanwise import Sentence, SpanwiseError
from spanwise.data import FOLDER
from spanwise.encoders.static import StaticEncoder, StaticSettings
from spanwise.formats import write
from spanwise.inputs.vector_text import corpus_text
from spanwise.training.vectors import train_vectors
from spanwise.vectors import read_vectors
from spanwise.vectors.compiled import compiled
from spanwise.vectors.cooccurrence import Memory, count_pairs
from spanwise.vectors.glove import Glove, GloveSettings, Optimizer, learn_vectors
from spanwise.vectors.indexing import IndexedText, index_text
from spanwise.vectors.tiles import make_tiles

pytest.importorskip("numba")

SMALL = GloveSettings(dim=6, window=5, iterations=8)
SENTENCES = random_text()


def small_model(folder: Path, dim: int = 6, optimizer: Optimizer = "adagrad") -> tuple[Glove, IndexedText]:
    text = index_text(SENTENCES, 1, folder)
    pairs, random = count_pairs(text, 5, folder), np.random.default_rng(2)
    tiles = make_tiles(pairs, len(text.words), 10, 64, random, folder)
    return Glove(len(text.words), dim, tiles, random, optimizer), text


def run_iteration(model: Glove, threads: int = 1) -> None:
    with ThreadPoolExecutor(threads) as pool:
        list(model.iteration(pool, threads))


@pytest.mark.parametrize("dim", [1, 6, 14, 15, 40])
def test_the_objective_matches_a_direct_sum(tmp_path: Path, dim: int) -> None:
    model, text = small_model(tmp_path, dim)
    biases = np.random.default_rng(7).normal(size=(2, len(text.words))).astype(np.float32)
    model.words[:, dim], model.contexts[:, dim + 1] = biases
    before = model.words.copy(), model.contexts.copy()
    model._visit(np.arange(model.tiles.blocks**2), rate=0)
    row = dict(zip(text.words, model.tiles.positions.tolist(), strict=True))
    counts = reference_counts(SENTENCES, 5)
    expected = 0.0
    for (word, context), count in counts.items():
        i, j = row[word], row[context]
        product = float(before[0][i, :dim].astype(float) @ before[1][j, :dim].astype(float))
        error = product + float(biases[0][i]) + float(biases[1][j]) - math.log(count)
        expected += min(1.0, (count / 10) ** 0.75) * error**2
    assert model.loss == pytest.approx(expected / len(counts), rel=1e-5)
    half = model.words.shape[1] // 2
    assert np.array_equal(model.words[:, :half], before[0][:, :half])
    assert np.array_equal(model.contexts[:, :half], before[1][:, :half])


@pytest.mark.parametrize("optimizer", ["adagrad", "published"])
def test_an_iteration_matches_a_reference_loop(tmp_path: Path, optimizer: Optimizer) -> None:
    model, _ = small_model(tmp_path, optimizer=optimizer)
    scale, bias_rate = (1.0, 0.05) if optimizer == "adagrad" else (0.05, 1.0)
    tiles, dim = model.tiles, model.dim
    w, c = model.words[:, :dim].astype(float), model.contexts[:, :dim].astype(float)
    state = {name: np.ones_like(values) for name, values in {"w": w, "c": c}.items()}
    bias, bias_state = np.zeros((2, len(w))), np.ones((2, len(w)))
    loss = 0.0
    for number in copy.deepcopy(model.random).permutation(tiles.blocks):
        for tile in tiles.round(number):
            for n in range(tiles.starts[tile], tiles.starts[tile + 1]):
                i, j = tiles.rows[n], tiles.columns[n]
                error = w[i] @ c[j] + bias[0, i] + bias[1, j] - tiles.targets[n]
                slope = tiles.weights[n] * error
                loss += slope * error
                w_gradient, c_gradient = slope * c[j], slope * w[i]
                w[i] -= 0.05 * w_gradient / np.sqrt(state["w"][i])
                c[j] -= 0.05 * c_gradient / np.sqrt(state["c"][j])
                state["w"][i] += (scale * w_gradient) ** 2
                state["c"][j] += (scale * c_gradient) ** 2
                for side, row in ((0, i), (1, j)):
                    bias[side, row] -= bias_rate * slope / math.sqrt(bias_state[side, row])
                    bias_state[side, row] += slope**2
    run_iteration(model)
    assert model.loss == pytest.approx(loss / len(tiles), rel=1e-5)
    np.testing.assert_allclose(model.words[:, :dim], w, atol=1e-5)
    np.testing.assert_allclose(model.contexts[:, :dim], c, atol=1e-5)
    np.testing.assert_allclose(model.words[:, dim], bias[0], atol=1e-5)
    np.testing.assert_allclose(model.contexts[:, dim + 1], bias[1], atol=1e-5)
    assert (model.words[:, dim + 1] == 1).all()
    assert (model.contexts[:, dim] == 1).all()
    np.testing.assert_allclose(model.vectors(), (w + c)[tiles.positions], atol=1e-5)


def test_the_loss_decreases_on_the_bundled_corpus() -> None:
    learned = learn_vectors(corpus_text(FOLDER), GloveSettings(dim=20, iterations=12))
    assert len(learned.losses) == 12
    assert all(after < before for before, after in zip(learned.losses, learned.losses[1:], strict=False))
    assert learned.losses[-1] < 0.6 * learned.losses[0]  # biases learn quickly, so the first iteration is already good
    assert np.isfinite(learned.vectors.table).all()


def test_the_result_does_not_depend_on_threads_or_memory() -> None:
    expected = learn_vectors(SENTENCES, SMALL)
    for result in (
        learn_vectors(SENTENCES, SMALL),
        learn_vectors(SENTENCES, SMALL, threads=2),
        learn_vectors(SENTENCES, SMALL, threads=40),
        learn_vectors(iter(SENTENCES), SMALL, memory=Memory(1 << 16, 100)),
    ):
        assert np.array_equal(result.vectors.table, expected.vectors.table)
        assert result.losses == expected.losses
    other = learn_vectors(SENTENCES, GloveSettings(dim=6, window=5, iterations=8, seed=2))
    assert not np.array_equal(other.vectors.table, expected.vectors.table)


def test_words_in_similar_contexts_get_similar_vectors() -> None:
    """Animals and metals in two sentence frames: the nearest neighbours are of the same kind."""
    from spanwise.vectors.neighbours import Lookup

    kinds = {"dog cat horse cow": "the {} eats grass and sleeps", "iron gold zinc lead": "a bar of {} melts when heated"}
    text = [frame.format(word).split() for words, frame in kinds.items() for word in words.split() for _ in range(5)]
    lookup = Lookup(learn_vectors(text, GloveSettings(dim=10, iterations=60)).vectors)
    for words in kinds:
        for word in words.split():
            best = [near for near, _ in lookup.similar(word, 20) if any(near in k.split() for k in kinds)]
            assert set(best[:3]) == set(words.split()) - {word}


@pytest.mark.parametrize(
    "values", [{"dim": 0}, {"window": -1}, {"x_max": 0}, {"iterations": 0}, {"seed": -1}, {"x_max": math.nan}]
)
def test_invalid_settings_are_rejected(values: dict[str, Any]) -> None:
    with pytest.raises(SpanwiseError, match=f"{next(iter(values))}: expected more than 0, found "):
        GloveSettings(**values)
    with pytest.raises(SpanwiseError, match=r"unknown optimizer 'publishd'.*did you mean 'published'"):
        GloveSettings(optimizer="publishd")  # type: ignore[arg-type]


def test_vectors_of_a_model_depend_on_the_seed_of_the_training() -> None:
    def table(training_seed: int, **glove: Any) -> Any:
        torch.manual_seed(training_seed)
        vectors = GloveSettings(dim=4, iterations=1, **glove)
        settings = StaticSettings(glove=vectors, freeze_words=True, char_hidden=0, layers=0)
        words = StaticEncoder.build(settings, [Sentence("s", tuple(text)) for text in SENTENCES[:20]]).words
        assert words is not None
        assert words.given is not None
        return words.given.numpy()

    assert not np.allclose(table(1), table(2))
    assert np.array_equal(table(1), table(1))
    assert np.array_equal(table(1, seed=7), table(2, seed=7))


def test_the_error_without_numba_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(SpanwiseError, match=r"training word vectors requires numba; run pip install 'spanwise\[vectors\]'"):
        compiled(lambda: 1)()


# --- corpora and folders ------------------------------------------------------------------------------------------------


def test_a_folder_contains_vectors_and_training_record(tmp_path: Path) -> None:
    lines: list[str] = []
    learned = train_vectors([FOLDER], tmp_path / "v", GloveSettings(dim=5, iterations=2), threads=1, log=lines.append)
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == ["training.json", "vectors.safetensors", "words.json"]
    vectors = read_vectors(tmp_path / "v")
    assert vectors.words == learned.vectors.words
    assert np.array_equal(vectors.table, learned.vectors.table)
    record = json.loads((tmp_path / "v" / "training.json").read_text())
    assert record["losses"] == list(learned.losses)
    assert record["settings"] == {
        "dim": 5,
        "window": 15,
        "x_max": 10,
        "min_count": 1,
        "iterations": 2,
        "optimizer": "published",
        "seed": 1,
    }
    assert sum("loss" in line for line in lines) == 2


@pytest.mark.parametrize("stage", ["different", "counted", "iteration 2"])
def test_an_interrupted_training_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))

    def interrupt(line: str) -> None:
        if stage in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_vectors([FOLDER], tmp_path / "v", GloveSettings(dim=5, iterations=4), log=interrupt)
    assert [path.name for path in tmp_path.rglob("*")] == ["scratch"]


def test_only_the_train_split_of_a_folder_is_read(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write([Sentence("s", ("in", split))], tmp_path / f"{split}.jsonl")
    assert list(corpus_text(tmp_path)) == [("in", "train")]
    assert list(corpus_text(tmp_path / "test.jsonl")) == [("in", "test")]
    (tmp_path / "train.jsonl").rename(tmp_path / "dev.jsonl")
    with pytest.raises(SpanwiseError, match="no train split; found dev, test"):
        list(corpus_text(tmp_path))


def test_plain_text_and_annotated_text_with_the_same_extension(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("IL-2 binds. It works\n\n北京 is big", encoding="utf-8")
    (tmp_path / "columns.txt").write_text("Paris B-LOC\nis O\n\nbig O\n", encoding="utf-8")
    assert [" ".join(s) for s in corpus_text(tmp_path / "plain.txt")] == ["IL - 2 binds .", "It works", "北 京 is big"]
    assert list(corpus_text(tmp_path / "columns.txt")) == [("Paris", "is"), ("big",)]
    assert next(corpus_text(tmp_path / "columns.txt", "text")) == ("Paris", "B", "-", "LOC")
    (tmp_path / "plain.txt").rename(tmp_path / "letter")
    assert len(list(corpus_text(tmp_path / "letter", "text"))) == 3
    with pytest.raises(SpanwiseError, match=r"letter: cannot detect the format; pass the format \(text, jsonl, "):
        next(corpus_text(tmp_path / "letter"))
    with pytest.raises(SpanwiseError, match="expected a file for --from text, found a folder"):
        list(corpus_text(tmp_path, "text"))
    with pytest.raises(SpanwiseError, match=r"unknown format 'txt' .*did you mean 'text'"):
        list(corpus_text(tmp_path / "letter", "txt"))
    assert list(corpus_text(tmp_path / "columns.txt", unit="characters")) == ["Parisis", "big"]


def test_the_static_encoder_reads_a_folder_and_accepts_unknown_words(tmp_path: Path) -> None:
    learned = train_vectors([FOLDER], tmp_path / "v", GloveSettings(dim=5, iterations=1))
    word = learned.vectors.words[3]
    sentence = Sentence("s", (word, "neverseenbefore", "水"))
    encoder = StaticEncoder.build(StaticSettings(vectors=tmp_path / "v", char_hidden=0, layers=0), [sentence]).eval()
    states = encoder(encoder.collate(encoder.prepare([sentence, Sentence("t", ("unheardof",))])))
    assert encoder.word_size == 5
    assert states.words[0, 0].tolist() == learned.vectors.table[3].tolist()
    assert np.isfinite(states.words.detach().numpy()).all()
