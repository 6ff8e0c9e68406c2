"""The static encoder."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from spanwise import Sentence, SpanwiseError
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.static import StaticEncoder, StaticSettings
from spanwise.encoders.vocabulary import UNKNOWN
from spanwise.encoders.word_parts import CharacterCNN

WORDS = "Colon cancer arises from the APC gene , the adenomatous polyposis coli tumour suppressor of chromosome 5q21 .".split()
SMALL: dict[str, Any] = {"word_size": 12, "char_size": 5, "char_hidden": 4, "hidden": 7}


def random_sentences(count: int = 12) -> list[Sentence]:
    choose = random.Random(5)
    sentences = [Sentence("empty", ())]
    for index in range(count):
        words = choose.choices(WORDS, k=choose.randint(1, 30))
        sentences.append(Sentence(str(index), tuple(words), pos=tuple(choose.choices("NVDP", k=len(words)))))
    return sentences


SENTENCES = random_sentences()

VARIANTS: dict[str, dict[str, Any]] = {
    "all parts": {"pos_size": 3, "layers": 2},
    "characters by a CNN": {"char_reader": "cnn"},
    "words": {"char_hidden": 0},
    "characters": {"word_size": 0},
    "tags": {"word_size": 0, "char_hidden": 0, "pos_size": 6},
    "no LSTM": {"layers": 0, "pos_size": 3},
}


def built(sentences: list[Sentence] = SENTENCES, **values: Any) -> StaticEncoder:
    torch.manual_seed(0)
    return StaticEncoder.build(StaticSettings(**SMALL | values), sentences).eval()


def encoded(encoder: Encoder, sentences: list[Sentence]) -> TokenStates:
    states: TokenStates = encoder(encoder.collate(encoder.prepare(sentences)))
    return states


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_shapes_and_mask(values: dict[str, Any]) -> None:
    encoder = built(**values)
    states = encoded(encoder, SENTENCES)
    longest = max(len(s.words) for s in SENTENCES)
    assert states.words.shape == (len(SENTENCES), longest, encoder.width)
    assert states.cls.shape == (len(SENTENCES), encoder.width)
    assert states.mask.sum(1).tolist() == [len(s.words) for s in SENTENCES]
    assert states.mask.dtype == torch.bool
    if encoder.settings.layers:
        assert encoder.width == 14
    else:
        assert encoder.width == 12 + 8 + 3


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_a_sentence_has_the_same_states_alone_and_in_any_batch(values: dict[str, Any]) -> None:
    encoder = built(**values)
    prepared = encoder.prepare(SENTENCES)
    with torch.no_grad():
        alone = [encoder(encoder.collate([item])) for item in prepared]
        for size in (2, 3, len(prepared)):
            order = random.Random(size).sample(range(len(prepared)), len(prepared))
            for batch in (order[start : start + size] for start in range(0, len(order), size)):
                states = encoder(encoder.collate([prepared[n] for n in batch]))
                for row, n in enumerate(batch):
                    length = len(SENTENCES[n].words)
                    torch.testing.assert_close(states.words[row, :length], alone[n].words[0, :length], atol=1e-5, rtol=0)
                    torch.testing.assert_close(states.cls[row], alone[n].cls[0], atol=1e-5, rtol=0)


def test_extra_padding_does_not_change_states() -> None:
    encoder = built(pos_size=3, layers=2)
    inputs = encoder.collate(encoder.prepare(SENTENCES))
    with torch.no_grad():
        before = encoder(inputs)
        wider = {name: torch.nn.functional.pad(tensor, (0, 9)) for name, tensor in inputs.items()}
        # The values of padding must not matter either.
        for name in ("words", "tags", "spelling"):
            wider[name] = wider[name].masked_fill(~wider["mask"], 3)
        after = encoder(wider)
    mask = before.mask[:, :, None]
    torch.testing.assert_close(after.words[:, : before.words.shape[1]] * mask, before.words * mask, atol=1e-5, rtol=0)
    torch.testing.assert_close(after.cls, before.cls, atol=1e-5, rtol=0)


def test_the_sentence_state_is_the_maximum_over_its_words() -> None:
    states = encoded(built(), SENTENCES)
    assert (states.cls[0] == 0).all()
    for row, sentence in enumerate(SENTENCES[1:], 1):
        assert torch.equal(states.cls[row], states.words[row, : len(sentence.words)].amax(0))


def test_a_batch_of_empty_sentences() -> None:
    encoder = built(pos_size=3)
    states = encoded(encoder, [Sentence("a", ()), Sentence("b", ())])
    assert states.words.shape == (2, 1, 14)
    assert not states.mask.any()
    assert (states.cls == 0).all()


def test_unknown_words_characters_and_tags() -> None:
    encoder = built(pos_size=3)
    strange = ("水", " ", "\t\n", "x" * 5000, "🧬" * 40, "\ud800", "\u0000", "İ", "cancer")
    sentence = Sentence("s", strange, pos=("?",) * len(strange))
    states = encoded(encoder, [sentence, Sentence("t", strange), SENTENCES[1]])
    assert torch.isfinite(states.words).all()
    indices = encoder.prepare([sentence])[0].words.tolist()
    assert indices[:-1] == [UNKNOWN] * (len(strange) - 1)
    assert indices[-1] != UNKNOWN


def test_an_empty_vocabulary() -> None:
    states = encoded(built([]), SENTENCES)
    assert torch.isfinite(states.words).all()


def test_unknown_words_differ_by_their_characters() -> None:
    encoder = built(layers=0)
    (row,) = encoded(encoder, [Sentence("s", ("cancerous", "colonic", "cancerous"))]).words
    assert torch.equal(row[0, :12], row[1, :12])
    assert not torch.equal(row[0, 12:], row[1, 12:])
    assert torch.equal(row[0], row[2])


def test_case_changes_only_the_characters() -> None:
    encoder = built(layers=0)
    (row,) = encoded(encoder, [Sentence("s", ("colon", "Colon"))]).words
    assert torch.equal(row[0, :12], row[1, :12])
    assert not torch.equal(row[0, 12:], row[1, 12:])


def test_each_spelling_occurs_once_in_a_batch() -> None:
    encoder = built()
    inputs = encoder.collate(
        encoder.prepare([Sentence("s", ("the", "gene", "the", "adenomatous")), Sentence("t", ("gene", "the"))])
    )
    assert len(inputs["short"]) + len(inputs["long"]) == 3
    assert inputs["short"].shape == (2, 4)
    assert inputs["spelling"].tolist() == [[0, 1, 0, 2], [1, 0, 0, 0]]


# --- vectors from a file -------------------------------------------------------------------------------------------------


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2 3\nColon 4 5 6\ncolon 7 8 9\nParis -1 -2 -3\napc 0.5 0.5 0.5\n", encoding="utf-8")
    return path


def word_parts(encoder: StaticEncoder, *words: str) -> Tensor:
    assert encoder.words is not None
    indices = torch.from_numpy(encoder.prepare([Sentence("s", words)])[0].words).long()
    values: Tensor = encoder.words(indices).detach()
    return values


@pytest.mark.parametrize("freeze", [True, False])
def test_words_get_the_vectors_of_the_file(vectors: Path, freeze: bool) -> None:
    encoder = built(vectors=vectors, word_size=None, freeze_words=freeze)
    rows = word_parts(encoder, "the", "THE", "Colon", "colon", "COLON", "Paris", "APC", "cancer", "elsewhere", "paris")
    assert rows[:7].tolist() == [[1, 2, 3], [1, 2, 3], [4, 5, 6], [7, 8, 9], [7, 8, 9], [-1, -2, -3], [0.5, 0.5, 0.5]]
    assert torch.equal(rows[8], rows[9])
    assert not torch.equal(rows[7], rows[8])
    assert encoder.word_size == 3


def test_only_learned_vectors_get_a_gradient(vectors: Path) -> None:
    encoder = built(vectors=vectors, word_size=3, freeze_words=True, dropout=0).train()
    states = encoded(encoder, SENTENCES)
    states.words.sum().backward()
    assert encoder.words is not None
    assert encoder.words.given is not None
    assert encoder.words.given.shape == (5, 3)
    assert not encoder.words.given.requires_grad
    assert encoder.words.given.grad is None
    gradient = encoder.words.learned.weight.grad
    assert gradient is not None
    assert (gradient[0] == 0).all()  # padding
    assert (gradient[1:] != 0).any(1).all()  # including the unknown word, because of word dropout
    assert all(p.grad is not None for p in encoder.parameters() if p.requires_grad)


def test_only_words_of_the_training_sentences_are_trained(vectors: Path) -> None:
    encoder = built(vectors=vectors, word_size=None, freeze_words=False)
    assert encoder.vocabulary.given == ("colon", "Paris")
    assert {"the", "Colon", "apc", "cancer"} <= set(encoder.vocabulary.learned)
    assert encoder.words is not None
    encoded(encoder, [Sentence("s", ("the", "Paris"))]).words.sum().backward()
    gradient = encoder.words.learned.weight.grad
    assert gradient is not None
    index = encoder.vocabulary.word_indices(("the",))[0]
    assert gradient.abs().sum(1).nonzero().flatten().tolist() == [index]


def test_word_dropout_replaces_training_words_by_the_unknown_word() -> None:
    encoder = built(word_dropout=0.5)
    indices = torch.full((40, 50), 5)
    assert torch.equal(encoder._drop_words(indices), indices)
    encoder.train()
    share = (encoder._drop_words(indices) == UNKNOWN).float().mean().item()
    assert share == pytest.approx(0.5, abs=0.05)


def test_dropout_acts_in_training_only() -> None:
    encoder = built().train()
    assert not torch.equal(encoded(encoder, SENTENCES).words, encoded(encoder, SENTENCES).words)
    encoder.eval()
    assert torch.equal(encoded(encoder, SENTENCES).words, encoded(encoder, SENTENCES).words)


# --- saving and errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [*VARIANTS.values(), {"vectors": True, "word_size": None}], ids=[*VARIANTS, "vectors"])
def test_a_saved_encoder_gives_the_same_states(tmp_path: Path, vectors: Path, values: dict[str, Any]) -> None:
    encoder = built(**values | ({"vectors": vectors} if "vectors" in values else {}))
    encoder.save(tmp_path)
    vectors.unlink()
    loaded = StaticEncoder.load(None, tmp_path).eval()
    loaded.load_state_dict(encoder.state_dict())
    before, after = encoded(encoder, SENTENCES), encoded(loaded, SENTENCES)
    assert torch.equal(before.words, after.words)
    assert torch.equal(before.cls, after.cls)
    assert [p.requires_grad for p in loaded.parameters()] == [p.requires_grad for p in encoder.parameters()]
    assert loaded.settings == encoder.settings
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_missing_and_invalid_records(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match=r"static_encoder\.json is missing"):
        StaticEncoder.load(None, tmp_path)
    for text in (
        "{}",
        "[]",
        "no json",
        '{"settings": {}, "vocabulary": [], "word_size": 3}',
        json.dumps({"settings": {"hidden": -1}, "vocabulary": {}, "word_size": 3}),
    ):
        (tmp_path / "static_encoder.json").write_text(text)
        with pytest.raises(SpanwiseError, match=r"static_encoder\.json: "):
            StaticEncoder.load(None, tmp_path)


def test_contradictory_settings(vectors: Path) -> None:
    with pytest.raises(ValidationError, match="word_size, char_hidden and pos_size are all 0"):
        StaticSettings(word_size=0, char_hidden=0)
    with pytest.raises(ValidationError, match="vectors are given, but word_size is 0"):
        StaticSettings(word_size=0, vectors=vectors)
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        StaticSettings(hiden=3)  # type: ignore[call-arg]
    with pytest.raises(SpanwiseError, match=r"vectors\.txt: word_size is 12, but the vectors have 3 values"):
        built(vectors=vectors)
    with pytest.raises(SpanwiseError, match="pos_size is 3, but the training sentences have no part-of-speech tags"):
        built([Sentence("s", ("a",))], pos_size=3)


def test_cost_and_size_of_a_prepared_sentence() -> None:
    encoder = built()
    (item,) = encoder.prepare([SENTENCES[2]])
    assert encoder.cost(item) == len(SENTENCES[2].words)
    assert item.words.dtype == np.int32
    assert item.tags is None


def test_real_sentences_have_the_same_states_in_batches(shared_data: Path) -> None:
    """With the default sizes, and sentences of a real corpus from 1 to 123 words."""
    with (shared_data / "ncbi_disease" / "train.jsonl").open(encoding="utf-8") as file:
        sentences = [Sentence(str(n), tuple(json.loads(line)["tokens"])) for n, line in enumerate(file) if n % 90 == 0]
    encoder = StaticEncoder.build(StaticSettings(), sentences).eval()
    prepared = encoder.prepare(sentences)
    with torch.no_grad():
        together = encoder(encoder.collate(prepared))
        for row, item in enumerate(prepared):
            alone = encoder(encoder.collate([item]))
            torch.testing.assert_close(together.words[row, : len(item.words)], alone.words[0], atol=1e-5, rtol=0)


def test_a_cnn_reads_every_triple_of_characters() -> None:
    reader = CharacterCNN(9, 5, 4)
    short, long = torch.tensor([[3, 0], [4, 5]]), torch.tensor([[2, 6, 7, 8]])
    with torch.no_grad():
        rows = reader(short, long)
        for row, spelling in zip(rows, ([3], [4, 5], [2, 6, 7, 8]), strict=True):
            padded = reader.vectors(torch.tensor([0, *spelling, 0]))
            triples = [padded[start : start + 3].T.flatten() for start in range(len(spelling))]
            values = [reader.convolution.weight.flatten(1) @ triple + reader.convolution.bias for triple in triples]
            torch.testing.assert_close(row, torch.stack(values).relu().amax(0))
