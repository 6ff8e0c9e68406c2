"""Deep and shallow spans, compared with a reference that computes one width after another."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deep_spans import SENTENCES, build_head, check_batch_invariance, encode_batch, overfits, random_encoder, span_logits
from literal_spans import LiteralSpan
from tiny import assert_close, model, sentences, transformer
from torch import Tensor

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence, Span
from spanwise.encoders.base import TokenStates
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.encoders.transformer_settings import TransformerSettings
from spanwise.heads.abilities import HasParameterGroups, heads_with
from spanwise.heads.base import Labels
from spanwise.heads.deep_settings import DeepSpanSettings
from spanwise.heads.deep_span import DeepSpan, ShallowSpan
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.prediction.span_vectors import span_vectors

ARCHITECTURES = ("bert", "roberta", "electra", "mpnet")


def both(head: DeepSpan) -> tuple[DeepSpan, LiteralSpan]:
    """A head and its reference with the same parameters."""
    reference = copy.copy(head)
    reference.__class__ = LiteralSpan
    return head, reference


OPTIONS: list[dict[str, Any]] = [
    {},
    {"depth": 1},
    {"depth": 2, "aggregation": "mean"},
    {"depth": 0},
    {"depth": 0, "aggregation": "mean", "lstm": 0},
    {"depth": 0, "aggregation": "multiplicative"},
    {"depth": 0, "aggregation": "additive"},
    {"aggregation": "multiplicative"},
    {"aggregation": "additive", "lstm": 0},
    {"share_weights": True},
    {"lstm": 0},
    {"max_width": 1},
    {"max_width": 13},
    {"max_width": 40, "lstm": 0, "depth": 1},
    {"unit": "subwords"},
    {"unit": "subwords", "max_width": 9, "lstm": 0},
    {"chunk": 1},
    {"chunk": 4},
    {"chunk": 100},
    {"width_size": 3},
    {"single_lstm": True},
    {"single_lstm": True, "max_width": 1},
]


def test_logits_match_the_reference(tiny_bert: Path) -> None:
    for options in OPTIONS:
        encoder = random_encoder("bert", tiny_bert)
        head, reference = both(build_head(encoder, **options))
        with torch.no_grad():
            states, targets = encode_batch(encoder, head)
            actual, expected = span_logits(head, states, targets), span_logits(reference, states, targets)
        lengths = [head.length(sentence) for sentence in SENTENCES]
        spans = {
            (n, start, end)
            for n, length in enumerate(lengths)
            for start in range(length)
            for end in range(start + 1, min(length, start + head.widest) + 1)
        }
        assert actual.keys() == expected.keys() == spans, options
        assert_close(torch.stack(list(actual.values())), torch.stack([expected[span] for span in actual]))
        assert torch.stack(list(actual.values())).std(0).min() > 1e-3, options  # not all equal


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("pooling", ["max", "mean", "first"])
def test_all_supported_architectures(tiny_bert: Path, architecture: str, pooling: str) -> None:
    encoder = random_encoder(architecture, tiny_bert, pooling=pooling)
    head, reference = both(build_head(encoder))
    with torch.no_grad():
        states, targets = encode_batch(encoder, head)
        ours, theirs = span_logits(head, states, targets), span_logits(reference, states, targets)
    assert_close(torch.stack(list(ours.values())), torch.stack([theirs[place] for place in ours]))


@pytest.mark.parametrize(
    "options",
    [{}, {"share_weights": True}, {"chunk": 3}, {"aggregation": "additive", "depth": 2}, {"single_lstm": True}],
)
def test_losses_and_gradients_match_the_reference(tiny_bert: Path, options: dict[str, Any]) -> None:
    encoder = random_encoder("bert", tiny_bert)
    results = []
    for head in both(build_head(encoder, **options)):
        encoder.zero_grad()
        head.zero_grad()
        states, targets = encode_batch(encoder, head, gold=True)
        losses = head.loss(states, targets)
        losses.mean.backward()
        parameters = [*encoder.model.named_parameters(), *head.named_parameters()]
        results.append((losses.sums, {name: p.grad.clone() for name, p in parameters if p.grad is not None}))
    (sums, ours), (literal_sums, theirs) = results
    torch.testing.assert_close(sums, literal_sums, rtol=1e-5, atol=1e-4)
    assert ours.keys() == theirs.keys()
    assert all(name in ours for name, _ in head.named_parameters())
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-3, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


def test_training_in_bfloat16_is_close_to_float32(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_head(encoder, start_dropout=0.0, dropout=0.0, hidden_dropout=0.0, lstm_dropout=0.0).train()
    head.transformer._layers = tuple(replace(layer, dropout=0.0, attention_dropout=0.0) for layer in head.transformer._layers)
    states, targets = encode_batch(encoder, head, gold=True)
    losses = []
    for trains_in_bfloat16 in (False, True):
        head.transformer.trains_in_bfloat16 = trains_in_bfloat16
        head.zero_grad()
        _, vectors = head.represent(states, targets)
        assert vectors.dtype == torch.float32
        head.loss(states, targets).mean.backward(retain_graph=True)
        losses.append((vectors, head.transformer.copies[0]["inner"].weight.grad.clone()))
    for single, mixed in zip(*losses, strict=True):
        assert not torch.equal(single, mixed)
        assert (single - mixed).norm() < 0.05 * single.norm()


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_chunks_change_neither_loss_nor_gradients(tiny_bert: Path, chunk: int) -> None:
    encoder = random_encoder("bert", tiny_bert)
    whole = build_head(encoder, start_dropout=0.0)
    parts = build_head(encoder, start_dropout=0.0, chunk=chunk)
    parts.load_state_dict(whole.state_dict())
    gradients = []
    for head in (whole, parts):
        states, targets = encode_batch(encoder, head, gold=True)
        assert sum(name.startswith("chunk") for name in targets) == (-(-len(SENTENCES) // chunk) if head is parts else 0)
        losses = head.loss(states, targets)
        actual = torch.autograd.grad(losses.mean, [*head.parameters(), *encoder.model.encoder.parameters()])
        gradients.append((losses.mean, *actual))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_single_words_keep_their_top_state(tiny_bert: Path, depth: int) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_head(encoder, depth=depth, lstm=0)
    seen: list[Tensor] = []
    head.hidden.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    states, targets = encode_batch(encoder, head)
    places, _ = head.represent(states, targets)
    single = places.is_span & (places.width == 1)
    torch.testing.assert_close(seen[0][single, : encoder.width], states.words[places.sentence[single], places.start[single]])
    assert int(single.sum()) == sum(len(sentence.words) for sentence in SENTENCES)


def test_lower_layers_are_pooled_to_words(tiny_bert: Path) -> None:
    """Each layer equals the output of an encoder with that layer on top."""
    encoder = random_encoder("bert", tiny_bert, pooling="mean")
    plain = random_encoder("bert", tiny_bert, pooling="mean")
    encoder.request_outputs(layers=3)
    inputs = encoder.collate(encoder.prepare(SENTENCES))
    with torch.no_grad():
        states = encoder(inputs)
        assert len(states.layers) == 3
        assert_close(states.words, plain(inputs).words)
        assert_close(states.cls, plain(inputs).cls)
        assert plain(inputs).layers == ()
        hidden = plain.model(input_ids=inputs["ids"], attention_mask=inputs["seen"], output_hidden_states=True).hidden_states
        for layer, below in zip(states.layers, hidden[:3], strict=True):
            assert_close(layer, plain._words(below.flatten(0, 1), inputs))


def test_spans_of_subwords(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_head(encoder, unit="subwords", max_width=4)
    one = Sentence(
        "s", ("the", "xyz", "oslo", "ab"), (Entity("Drug", ((1, 2),)), Entity("Place", ((2, 4),)), Entity("Drug", ((0, 3),)))
    )
    assert encoder.subword_counts(one).tolist() == [1, 3, 1, 2]
    assert head.length(one) == 7
    states, targets = encode_batch(encoder, head, sentences=[one], gold=True)
    assert states.mask.tolist() == [[True] * 7]
    assert head._gold(one).tolist() == [[1, 4, 0], [4, 7, 1]]  # five subwords are too wide
    assert head.count_unreachable(one) == 1
    with torch.no_grad():
        head.classifier.weight.zero_()
        head.classifier.bias.copy_(torch.tensor([2.0, 1.0, 0.0]))  # all spans are drugs
        states, targets = encode_batch(encoder, head, sentences=[one])
        actual = head.score(states, targets)
    spans = set(zip(actual.start.tolist(), actual.end.tolist(), strict=True))
    assert spans == {(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (1, 3), (2, 4)}  # words, at most four subwords


def test_loss_uses_smoothed_gold(tiny_bert: Path) -> None:
    """Compute the loss from dense soft labels, span by span."""
    encoder = random_encoder("bert", tiny_bert)
    head = build_head(encoder, max_width=3, smoothing=0.2)
    one = Sentence("s", ("the", "oslo", "was", "seen"), (Entity("Place", ((1, 3),)), Entity("Drug", ((0, 1),))))
    states, targets = encode_batch(encoder, head, gold=True, sentences=[one])
    soft = {
        (1, 3): {1: 0.8}, (0, 3): {1: 0.05}, (2, 3): {1: 0.05}, (1, 2): {1: 0.05}, (1, 4): {1: 0.05},
        (0, 1): {0: 0.95}, (0, 2): {0: 0.05},
    }  # fmt: skip
    total = torch.zeros(())
    for (_, start, end), row in span_logits(head, states, targets).items():
        masses = soft.get((start, end), {})
        probabilities = [masses.get(0, 0.0), masses.get(1, 0.0)]
        total = total - (torch.tensor([*probabilities, 1 - sum(probabilities)]) * row.log_softmax(0)).sum()
    losses = head.loss(states, targets)
    torch.testing.assert_close(losses.sums, total[None], rtol=1e-5, atol=1e-5)
    assert losses.counts.tolist() == [1]
    assert losses.instance_counts is not None
    assert losses.instance_counts.tolist() == [9]


@pytest.mark.parametrize(
    "options", [{}, {"unit": "subwords", "max_width": 6}, {"lstm": 0, "aggregation": "additive"}, {"chunk": 2}]
)
def test_results_do_not_depend_on_the_batch(tiny_bert: Path, options: dict[str, Any]) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build_head(encoder, **options)
    with torch.no_grad():
        head.classifier.weight.mul_(5)
        check_batch_invariance(encoder, head)


def test_empty_sentences_and_sentences_without_spans(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert)
    for options in ({}, {"chunk": 1}, {"unit": "subwords"}):
        head = build_head(encoder, **options)
        for chosen in ([Sentence("a", ())], [Sentence("a", ("the",)), Sentence("b", ())]):
            losses = head.loss(*encode_batch(encoder, head, gold=True, sentences=chosen))
            assert losses.counts.tolist() == [float(bool(s.words)) for s in chosen]
            assert bool(losses.sums.isfinite().all())
            head.score(*encode_batch(encoder, head, sentences=chosen))


def test_scoring_synchronises_once_and_training_never(tiny_bert: Path, synchronisations: Any) -> None:
    encoder = random_encoder("bert", tiny_bert)
    for options in ({}, {"unit": "subwords"}, {"chunk": 2}, {"aggregation": "additive"}):
        head = build_head(encoder, **options).train()
        states, targets = encode_batch(encoder, head, gold=True)
        with synchronisations() as actual:
            head.loss(states, targets).mean.backward()
        assert not actual
        states, targets = encode_batch(encoder, head)
        with synchronisations() as actual:
            head.score(states, targets)
        assert sum(actual.values()) == 1


def test_copied_layers_are_pretrained_and_shared_layers_are_not_copied(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert, frozen_layers=1)
    head = build_head(encoder, depth=3)
    copied = list(head.pretrained_parameters())
    block = encoder.model.encoder.layer[1]
    assert len(copied) == 3 * len(list(block.parameters()))
    assert all(parameter.requires_grad for parameter in copied)
    ours = head.transformer.copies[1]["query"].weight
    assert torch.equal(ours, block.attention.self.query.weight)
    assert ours is not block.attention.self.query.weight
    shared = build_head(encoder, depth=3, share_weights=True)
    assert list(shared.pretrained_parameters()) == []
    assert not any("copies" in name for name, _ in shared.named_parameters())
    assert shared.transformer._layers[1].modules["query"] is block.attention.self.query


@pytest.mark.parametrize(
    ("options", "millions"), [({"single_lstm": True}, 212.9), ({}, 211.4), ({"share_weights": True}, 126.3)]
)
def test_parameters_of_the_published_size(tiny_bert: Path, options: dict[str, Any], millions: float) -> None:
    """Table 7, with GENIA's width and types. The table counts RoBERTa's unused pooler."""
    from transformers import AutoTokenizer, RobertaConfig, RobertaModel

    with torch.device("meta"):
        roberta = RobertaModel(RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1))
        encoder = TransformerEncoder(TransformerSettings(name="roberta"), roberta, AutoTokenizer.from_pretrained(tiny_bert))
        settings = DeepSpanSettings(max_width=18, decoding="nested", **options)
        head = DeepSpan.build(encoder, Labels(("DNA", "RNA", "cell_line", "cell_type", "protein")), settings)
    assert round(sum(p.numel() for p in [*roberta.parameters(), *head.parameters()]) / 1e6, 1) == millions


def test_unsupported_depths_and_encoders_are_refused(tiny_bert: Path) -> None:
    from transformers import AutoModel, AutoTokenizer, DistilBertConfig

    encoder = random_encoder("bert", tiny_bert)
    with pytest.raises(SpanwiseError, match="expected at most 3, the layers of the encoder, found 4"):
        build_head(encoder, depth=4)
    config = DistilBertConfig(vocab_size=100, dim=32, n_layers=2, n_heads=2, hidden_dim=64)
    distil = AutoModel.from_config(config)
    other = TransformerEncoder(TransformerSettings(name="x"), distil, AutoTokenizer.from_pretrained(tiny_bert))
    with pytest.raises(SpanwiseError, match=r"cannot copy the layers of a distilbert .* shallow-span"):
        build_head(other)
    build_head(other, ShallowSpan)
    with pytest.raises(SpanwiseError, match="shallow-span"):
        model("static", "deep-span")
    assert model("static", "shallow-span").head.widest == 2
    with pytest.raises(SpanwiseError, match="use a transformer encoder"):
        model("static", "shallow-span", ["head.unit=subwords", "head.max_width=4"])
    with pytest.raises(SpanwiseError, match="requires max_width"):
        model(tiny_bert, "deep-span", ["head.unit=subwords"])
    with pytest.raises(SpanwiseError, match="depth"):
        model(tiny_bert, "shallow-span", ["head.depth=2"])


def test_automatic_width_covers_almost_all_entities_and_is_bounded() -> None:
    def of(*widths: int) -> list[Sentence]:
        return [Sentence(str(n), ("w",) * 40, (Entity("A", ((0, width),)),)) for n, width in enumerate(widths)]

    assert DeepSpanSettings().resolve(of(*[2] * 999, 7)).max_width == 2
    assert DeepSpanSettings().resolve(of(*[2] * 997, 3, 7, 7)).max_width == 7
    assert DeepSpanSettings().resolve(of(2, 40)).max_width == 25
    assert DeepSpanSettings(max_width=30).resolve(of(2, 40)).max_width == 30


@pytest.mark.parametrize("kind", [DeepSpan, ShallowSpan])
def test_overfits_a_few_sentences(tiny_bert: Path, kind: type[DeepSpan]) -> None:
    encoder = transformer(tiny_bert)
    nested = Sentence("n", ("new", "york", "later"), (Entity("Place", ((0, 2),)), Entity("Drug", ((1, 2),))))
    head = build_head(encoder, kind, max_width=3, lstm=16, hidden=32, dropout=0.1, lstm_dropout=0.1, hidden_dropout=0.0)
    assert overfits(encoder, head, [*sentences(6), nested])


@pytest.mark.parametrize("recipe", ["deep-span", "shallow-span", "deep-span-pruned"])
@pytest.mark.parametrize("options", [(), ("head.share_weights=true", "head.unit=subwords", "head.max_width=5")])
def test_save_and_load(tiny_bert: Path, tmp_path: Path, recipe: str, options: tuple[str, ...]) -> None:
    built = model(tiny_bert, recipe, options)
    with torch.no_grad():  # weights that differ from the pretrained ones
        for parameter in built.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    built.save(tmp_path / "run")
    again = Model.load(tmp_path / "run")
    assert again.head.settings == built.head.settings
    assert [s.entities for s in predict(again, SENTENCES)] == [s.entities for s in predict(built, SENTENCES)]
    for one, other in zip(span_vectors(built, SENTENCES), span_vectors(again, SENTENCES), strict=True):
        np.testing.assert_array_equal(one.vectors, other.vectors)


@pytest.mark.parametrize("recipe", ["deep-span", "deep-span-pruned"])
@pytest.mark.parametrize("unit", [[], ["head.unit=subwords", "head.max_width=40"]])
def test_span_vectors_are_the_input_of_the_last_layer(tiny_bert: Path, recipe: str, unit: list[str]) -> None:
    pruned = recipe == "deep-span-pruned"  # it has vectors of kept spans only, here of all
    built = model(
        tiny_bert, recipe, [*unit, *([] if unit else ["head.max_width=3"]), *(["head.budget=1000"] if pruned else [])]
    )
    chosen = sentences(5)
    every = span_vectors(built, chosen, batch_size=2)
    for sentence, (spans, vectors) in zip(chosen, every, strict=True):
        words = len(sentence.words)
        actual = {tuple(span) for span in spans.tolist()}
        widest = words if unit else 3
        assert actual == {(s, e) for s in range(words) for e in range(s + 1, min(words, s + widest) + 1)}
        assert spans.tolist() == sorted(spans.tolist())
        assert vectors.shape == (len(spans), 300)
    some = span_vectors(built, chosen, [[Span(0, 2), Span(0, 99)] for _ in chosen])
    for (spans, vectors), (all_spans, all_vectors) in zip(some, every, strict=True):
        assert spans.tolist() == [[0, 2]]
        np.testing.assert_allclose(vectors[0], all_vectors[all_spans.tolist().index([0, 2])], atol=1e-5)
    if pruned:
        return
    # Classifying the vectors gives the predictions.
    head: Any = built.head
    with torch.no_grad():
        scores = head.class_logits(torch.from_numpy(every[0].vectors)).softmax(-1).amax(-1)
        actual = head.score(*encode_batch(built.encoder, head, sentences=chosen[:1]))
    by_span = {tuple(span): float(score) for span, score in zip(every[0].spans.tolist(), scores, strict=True)}
    assert len(actual.start)
    for start, end, score in zip(actual.start.tolist(), actual.end.tolist(), actual.score.tolist(), strict=True):
        assert score == pytest.approx(by_span[start, end], abs=1e-5)


def test_heads_without_span_vectors_are_refused(tiny_bert: Path) -> None:
    with pytest.raises(SpanwiseError, match="seqner has no span vectors"):
        span_vectors(model(tiny_bert, "seqner"), sentences(2))


@pytest.mark.parametrize("recipe", ["deep-span", "shallow-span", "deep-span-pruned"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_losses_and_gradients_are_finite(tiny_bert: Path, recipe: str, dtype: torch.dtype) -> None:
    built = model(tiny_bert, recipe, ["head.max_width=4"])
    head = built.head
    short = [sentence for sentence in SENTENCES if len(sentence.words) < 50]  # half precision is slow on the CPU
    states, targets = encode_batch(built.encoder, head, gold=True, sentences=short)  # type: ignore[arg-type]
    single = head.loss(states, targets)
    half = copy.deepcopy(head).to(dtype)
    layers = tuple(layer.detach().to(dtype).requires_grad_() for layer in states.layers)
    words = states.words.detach().to(dtype).requires_grad_()
    losses = half.loss(TokenStates(words, states.cls, states.mask, layers), targets)
    assert losses.sums.dtype == torch.float32
    torch.testing.assert_close(losses.mean, single.mean, rtol=0.1, atol=0.5)
    losses.mean.backward()
    assert all(bool(values.grad.isfinite().all()) for values in (words, *layers, *half.parameters()) if values.grad is not None)


def test_recorded_encoders_return_the_same_layers(tiny_bert: Path) -> None:
    """Run the function that CUDA graphs record without recording."""
    encoder = random_encoder("bert", tiny_bert)
    encoder.request_outputs(layers=2)
    inputs = encoder.collate(encoder.prepare(SENTENCES))
    with torch.no_grad():
        recorded = encoder._read_recordable(inputs["ids"], inputs["seen"])
        plain = encoder.subwords(inputs["ids"], inputs["seen"])
    assert recorded.shape[-1] == 3 * encoder.width
    assert_close(recorded[inputs["seen"]], plain[inputs["seen"]])


def test_deep_span_in_a_bundle(tiny_bert: Path) -> None:
    built = model(tiny_bert, "bl-spanner", ["head.span={kind: deep-span, max_width: 3}"])
    states, targets = encode_batch(built.encoder, built.head, gold=True)  # type: ignore[arg-type]
    branch = built.head.branches["span"]
    losses = built.head.loss(states, targets)
    torch.testing.assert_close(
        losses.parts["span"], branch.loss(states, branch.targets(SENTENCES, gold=True)).mean_per_instance
    )
    assert sum(len(list(head.pretrained_parameters())) for head in heads_with(built.head, HasParameterGroups)) == 3 * 16
    assert len(span_vectors(built, sentences(2))) == 2
    with pytest.raises(SpanwiseError, match="trained together read words"):
        model(tiny_bert, "bl-spanner", ["head.span={kind: deep-span, max_width: 3, unit: subwords}"])
