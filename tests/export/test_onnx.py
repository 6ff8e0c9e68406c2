"""Models exported to ONNX predict the same entities with the same scores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import discontinuous_corpus as reports
import numpy as np
import pytest
import torch
from tiny import WINDOW, mixed_sentences, model, sentences

from spanwise.core.types import Sentence
from spanwise.corpora.splits import read_corpus
from spanwise.encoders.base import TokenStates
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.evaluation import evaluate
from spanwise.heads.seqner import SeqNer, SeqnerSettings
from spanwise.models.model import Model
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.load import load
from spanwise.prediction.predictor import Predictor
from spanwise.recipes.catalog import configure

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")
onnx = pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")

from spanwise.export.onnx import export_onnx, write  # noqa: E402
from spanwise.export.simplification import simplify_graphs  # noqa: E402
from spanwise.prediction.onnx.predictor import OnnxPredictor, candidate_spans  # noqa: E402
from spanwise.prediction.onnx.record import ENCODER, Transitions  # noqa: E402
from spanwise.prediction.onnx.tags import best_tags, decode_tags, entities_from_tags, marginals  # noqa: E402

# With a width below the rows of a tile, above them, and without maximum.
RECIPES: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "tags": [("seqner", ()), ("seqner", ("head.constrained=false",)), ("seqner-crf", ()), ("bl-seqner", ())],
    "spans": [
        ("spanner", ()),
        ("spanner", ("head.max_width=9", "head.representation=pooling")),
        ("biaffine", ()),
        ("biaffine", ("head.max_width=5", "head.width_size=0")),
        ("grid", ()),
        ("grid", ("head.max_width=1", "head.rank=0", "head.pooling=false")),
        ("grid", ("head.type_sets=[[Drug, Place]]",)),
        ("bl-spanner", ()),
    ],
    "pointers": [
        ("global-pointer", ()),
        ("global-pointer", ("head.max_width=3",)),
        ("efficient-global-pointer", ("head.max_width=20",)),
        ("efficient-global-pointer", ("head.rotation=false", "head.max_width=2")),
    ],
    "deep": [
        ("shallow-span", ("head.max_width=4", "head.lstm=16")),
        ("deep-span", ("head.lstm=16",)),
        ("deep-span", ("head.max_width=7", "head.chunk=2", "head.lstm=0")),
        ("deep-span", ("head.max_width=1", "head.lstm=16")),
        ("deep-span-pruned", ("head.max_width=6", "head.lstm=16")),
    ],
    "two-stage": [("locate-label", ()), ("locate-label", ("head.lengths=[2, 4]",))],  # no seeds in sentences of one word
}


def both(built: Model, folder: Path, **options: Any) -> tuple[Predictor, OnnxPredictor]:
    built = built.for_prediction()
    write(built, folder, **options)
    simplify_graphs(folder)
    return Predictor(built, "cpu"), OnnxPredictor(folder, "cpu")


def check(torch_model: BasePredictor, onnx_model: BasePredictor, given: Sequence[Any], **options: Any) -> int:
    return same(torch_model.predict(given, **options), onnx_model.predict(given, **options))


def same(expected: Sequence[Sentence], actual: Sequence[Sentence]) -> int:
    """Compare entities and their scores; return the number of entities."""
    assert actual == expected
    for expected_sentence, actual_sentence in zip(expected, actual, strict=True):
        for entity, exported in zip(expected_sentence.entities, actual_sentence.entities, strict=True):
            assert exported.score == pytest.approx(entity.score, abs=1e-4)
    return sum(len(sentence.entities) for sentence in actual)


@pytest.mark.parametrize("group", RECIPES)
def test_same_entities_for_all_batch_sizes(tiny_bert: Path, tmp_path: Path, group: str) -> None:
    given = [*mixed_sentences(), *sentences(12, seed=4)]  # empty, one word, more than a window, words of many subwords
    for number, (recipe, overrides) in enumerate(RECIPES[group]):
        folder = tmp_path / str(number)
        folder.mkdir()
        torch_model, onnx_model = both(model(tiny_bert, recipe, overrides, seed=3), folder)
        expected = torch_model.predict(given)
        for size in (64, 3, 1):
            assert same(expected, onnx_model.predict(given, batch_size=size)) > 10
        assert onnx_model.types == torch_model.types
        assert onnx_model.default_threshold == torch_model.default_threshold


@pytest.mark.parametrize(
    "overrides",
    [
        ["encoder.pooling=first"],
        ["encoder.pooling=mean", "encoder.layers=2"],
        ["encoder.context=document"],
        ["encoder.window=20"],
    ],
)
def test_encoder_options(tiny_bert: Path, tmp_path: Path, overrides: list[str]) -> None:
    torch_model, onnx_model = both(model(tiny_bert, "spanner", overrides), tmp_path)
    assert check(torch_model, onnx_model, [*mixed_sentences(), *sentences(12, seed=4)]) > 20


@pytest.mark.parametrize("recipe", ["seqner-crf", "spanner", "global-pointer", "shallow-span"])
def test_static_encoder(tmp_path: Path, recipe: str) -> None:
    """Some batches have words of one length only, and therefore no table of shorter words."""
    torch_model, onnx_model = both(model("static", recipe), tmp_path)
    given = [*mixed_sentences(), *sentences(12, seed=4)]
    expected = torch_model.predict(given)
    for size in (64, 3, 1):
        assert same(expected, onnx_model.predict(given, batch_size=size)) > 20


def test_static_encoder_without_characters_and_lstm(tmp_path: Path) -> None:
    built = model("static", "spanner", ["encoder.char_hidden=0", "encoder.layers=0"])
    torch_model, onnx_model = both(built, tmp_path)
    assert check(torch_model, onnx_model, [*mixed_sentences(), *sentences(12, seed=4)]) > 20


@pytest.mark.parametrize("name", ["DistilBert", "ModernBert", "DebertaV2"])
def test_other_architectures(tiny_bert: Path, tmp_path: Path, name: str) -> None:
    import transformers

    torch.manual_seed(1)
    built = model(tiny_bert, "spanner")
    assert isinstance(built.encoder, TransformerEncoder)
    tokenizer = built.encoder.tokenizer
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    if name == "DistilBert":
        sizes = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
    special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "max_position_embeddings": WINDOW}
    config = getattr(transformers, f"{name}Config")(vocab_size=len(tokenizer), **sizes, **special)
    built.encoder = TransformerEncoder(built.encoder.settings, transformers.AutoModel.from_config(config), tokenizer).eval()
    torch_model, onnx_model = both(built, tmp_path)
    assert check(torch_model, onnx_model, [*mixed_sentences(), *sentences(12, seed=4)]) > 20


def test_other_tokenizers(tiny_roberta: Path, tmp_path: Path) -> None:
    torch_model, onnx_model = both(model(tiny_roberta, "seqner"), tmp_path)
    assert check(torch_model, onnx_model, ["Oslo naïve 🙂 ﬁne. \u200d İzmir", *sentences(20)]) > 10


@pytest.mark.parametrize("recipe", ["biaffine", "locate-label"])
def test_sentences_longer_than_a_window(tiny_bert: Path, tmp_path: Path, recipe: str) -> None:
    torch_model, onnx_model = both(model(tiny_bert, recipe, ["head.max_width=5"] if recipe == "biaffine" else ()), tmp_path)
    words = tuple(word for sentence in sentences(220, seed=2) for word in sentence.words)
    assert len(words) > 1200
    assert check(torch_model, onnx_model, [Sentence("long", words), Sentence("some", words[:512])]) > 20


@pytest.mark.parametrize("recipe", ["spanner", "global-pointer"])
def test_discontinuous_entities(tiny_bert: Path, tmp_path: Path, recipe: str) -> None:
    torch.manual_seed(0)
    data = reports.corpus(60, 5, 6)
    built = Model.build(configure(recipe, encoder=str(tiny_bert)), data).eval()
    with torch.no_grad():  # many fragments and links
        built.head.get_parameter("links.grid.classifier.bias").fill_(1.0)
    torch_model, onnx_model = both(built, tmp_path)
    assert check(torch_model, onnx_model, data["test"]) > 20
    assert any(entity.is_discontinuous for actual in onnx_model.predict(data["test"]) for entity in actual.entities)


@pytest.mark.parametrize("recipe", ["global-pointer", "locate-label", "spanner"])
def test_thresholds(tiny_bert: Path, tmp_path: Path, recipe: str) -> None:
    torch_model, onnx_model = both(model(tiny_bert, recipe, seed=3), tmp_path)
    given = sentences(30, seed=4)
    counts = [
        check(torch_model, onnx_model, given, threshold=threshold)
        for threshold in (0.05, 0.55, {"Drug": 0.2}, {"Drug": 0.6, "Place": 0.1}, 0.0)
    ]
    assert min(counts) > 0
    assert (counts[0] > counts[-1]) == (recipe != "spanner")  # it only predicts the best type of each span
    assert counts[1] < counts[-1]


def test_data_whose_words_and_sentences_depend_on_its_annotations(tmp_path: Path) -> None:
    """Brat has no words: gold has a boundary inside "Rome" and none after "Oslo.", the predictions are the reverse."""
    model("static").save(tmp_path / "run")
    (tmp_path / "data" / "test").mkdir(parents=True)
    (tmp_path / "data" / "test" / "a.txt").write_text("They left Oslo. Lima and Rome came later.\n")
    (tmp_path / "data" / "test" / "a.ann").write_text("T1\tPlace 10 20\tOslo. Lima\nT2\tPlace 25 27\tRo\n")
    exported = export_onnx(tmp_path / "run", tmp_path / "onnx", data=tmp_path / "data")
    gold = read_corpus(tmp_path / "data")["test"]
    predicted = load(tmp_path / "onnx").predict(Path(tmp_path / "data" / "test" / "a.txt").read_text())
    f1 = evaluate(gold, predicted).f1
    assert (exported.sentences, exported.f1) == (2, (f1, f1))


def test_export_does_not_change_the_model(tiny_bert: Path, tmp_path: Path) -> None:
    for number, recipe in enumerate(("global-pointer", "deep-span")):
        built = model(tiny_bert, recipe, ["head.chunk=2"] if recipe == "deep-span" else ())
        before, state = built.head.settings, {name: value.clone() for name, value in built.state_dict().items()}
        (tmp_path / str(number)).mkdir()
        write(built, tmp_path / str(number))
        assert built.head.settings == before
        assert not any(isinstance(value, torch.Tensor) for value in vars(built.head).values())  # no graph input remains
        assert all(torch.equal(value, state[name]) for name, value in built.state_dict().items())


def test_the_encoder_returns_no_layers_for_a_dropped_branch(tiny_bert: Path, tmp_path: Path) -> None:
    model(tiny_bert, "bl-seqner", ["head.span={kind: deep-span, max_width: 3}"]).save(tmp_path / "bundle")
    model(tiny_bert, "seqner").save(tmp_path / "alone")
    widths = []
    for name in ("bundle", "alone"):
        export_onnx(tmp_path / name, tmp_path / f"{name}.onnx")
        (given,) = onnx.load(tmp_path / f"{name}.onnx" / ENCODER).graph.output
        widths.append(given.type.tensor_type.shape.dim[-1].dim_value)
    assert widths == [32, 32]


def test_load_detects_the_kind_of_folder(tiny_bert: Path, tmp_path: Path) -> None:
    built = model(tiny_bert, "spanner")
    built.save(tmp_path / "run")
    (tmp_path / "onnx").mkdir()
    write(built, tmp_path / "onnx")
    assert isinstance(load(tmp_path / "run", "cpu"), Predictor)
    assert isinstance(load(tmp_path / "onnx", "cpu"), OnnxPredictor)


# --- NumPy code, compared with torch ----------------------------------------------------------------------------------


def test_candidate_spans() -> None:
    actual = candidate_spans(np.array([3, 0, 1]), [1, 3])
    assert list(zip(*(actual[name].tolist() for name in ("sentence", "start", "end")), strict=True)) == [
        (0, 0, 1), (0, 0, 3), (0, 1, 2), (0, 2, 3), (2, 0, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("tagging", ["crf", "softmax"])
def test_tags_in_numpy_match_torch(tagging: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    built = model("static", "seqner")
    head = SeqNer(8, built.labels, SeqnerSettings(tagging=tagging)).eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(3 * torch.randn(parameter.shape, generator=generator))
    words, mask = (
        torch.randn(9, 11, 8, generator=generator),
        torch.arange(11) < torch.tensor([11, 0, 1, 2, 5, 7, 9, 10, 3])[:, None],
    )
    states = TokenStates(words, words[:, 0], mask)
    with torch.no_grad():
        expected, scores = head.score(states, {}), head.emissions(states)[0].numpy()
    if head.crf is not None:
        rows = [part.tolist() for part in head.crf.clamped()]
        near = marginals(scores.astype(np.float64), mask.numpy(), *(np.array(row) for row in rows))
        torch.testing.assert_close(
            torch.from_numpy(near)[mask].float(), head.crf.marginals(torch.from_numpy(scores), mask)[mask]
        )
    else:
        rows = [head.transitions.tolist(), head.transitions[0].tolist(), [0.0] * 5]
    actual = decode_tags(
        scores, mask.numpy(), Transitions(transitions=rows[0], start=rows[1], end=rows[2], is_crf=head.crf is not None)
    )
    assert len(actual[0]) > 10
    for got, want in zip(actual, expected.columns, strict=True):
        np.testing.assert_allclose(got, want.numpy(), atol=1e-5)


def test_best_tags_match_an_enumeration() -> None:
    rng = np.random.default_rng(3)
    scores, moves = rng.normal(size=(4, 5, 3)), rng.normal(size=(3, 3))
    start, end = rng.normal(size=3), rng.normal(size=3)
    lengths = [5, 1, 4, 2]
    actual = best_tags(scores, np.arange(5) < np.array(lengths)[:, None], moves, start, end)
    for row, length, tags in zip(scores, lengths, actual, strict=True):
        every = np.stack(np.meshgrid(*[range(3)] * length, indexing="ij"), -1).reshape(-1, length)
        totals = [
            start[way[0]] + end[way[-1]] + sum(row[step, tag] for step, tag in enumerate(way))
            + sum(moves[one, other] for one, other in pairwise(way))
            for way in every
        ]  # fmt: skip
        assert tags.tolist() == [*every[int(np.argmax(totals))].tolist(), *[0] * (5 - length)]


def test_entities_from_tags() -> None:
    tags = np.array([[2, 2, 1, 1, 4, 3], [0, 3, 4, 0, 1, 2], [2, 0, 0, 0, 0, 0]])
    mask = np.ones((3, 6), bool)
    mask[1, 4:] = False
    actual = entities_from_tags(tags, np.full(tags.shape, 0.25), mask)
    assert list(zip(*(column.tolist() for column in actual[:4]), strict=True)) == [
        (0, 0, 2, 0), (0, 2, 3, 0), (0, 3, 4, 0), (0, 4, 5, 1), (0, 5, 6, 1), (1, 1, 3, 1), (2, 0, 1, 0),
    ]  # fmt: skip
    np.testing.assert_allclose(actual[4], 0.25)
