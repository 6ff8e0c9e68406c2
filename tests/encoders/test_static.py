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

WORDS = "Colon cancer arises from the APC gene , the adenomatous polyposis coli tumour suppressor of chromosome 5q21 .".split()
SMALL: dict[str, Any] = {"word_size": 12, "char_size": 5, "char_hidden": 4, "hidden": 7}


def some_sentences(count: int = 12) -> list[Sentence]:
    choose = random.Random(5)
    sentences = [Sentence("empty", ())]
    for number in range(count):
        words = choose.choices(WORDS, k=choose.randint(1, 30))
        sentences.append(Sentence(str(number), tuple(words), pos=tuple(choose.choices("NVDP", k=len(words)))))
    return sentences


SENTENCES = some_sentences()

VARIANTS: dict[str, dict[str, Any]] = {
    "everything": {"pos_size": 3, "layers": 2},
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
            for batch in (order[at : at + size] for at in range(0, len(order), size)):
                states = encoder(encoder.collate([prepared[n] for n in batch]))
                for row, n in enumerate(batch):
                    length = len(SENTENCES[n].words)
                    torch.testing.assert_close(states.words[row, :length], alone[n].words[0, :length], atol=1e-5, rtol=0)
                    torch.testing.assert_close(states.cls[row], alone[n].cls[0], atol=1e-5, rtol=0)


def test_more_padding_changes_nothing() -> None:
    encoder = built(pos_size=3, layers=2)
    inputs = encoder.collate(encoder.prepare(SENTENCES))
    with torch.no_grad():
        before = encoder(inputs)
        wider = {name: torch.nn.functional.pad(tensor, (0, 9)) for name, tensor in inputs.items()}
        # Rubbish where no word is must not be read either.
        for name in ("words", "tags", "spelling"):
            wider[name] = wider[name].masked_fill(~wider["mask"], 3)
        after = encoder(wider)
    real = before.mask[:, :, None]
    torch.testing.assert_close(after.words[:, : before.words.shape[1]] * real, before.words * real, atol=1e-5, rtol=0)
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


def test_nothing_that_was_never_seen_is_a_problem() -> None:
    encoder = built(pos_size=3)
    strange = ("水", " ", "\t\n", "x" * 5000, "🧬" * 40, "\ud800", "\u0000", "İ", "cancer")
    sentence = Sentence("s", strange, pos=("?",) * len(strange))
    states = encoded(encoder, [sentence, Sentence("t", strange), SENTENCES[1]])
    assert torch.isfinite(states.words).all()
    numbers = encoder.prepare([sentence])[0].words.tolist()
    assert numbers[:-1] == [UNKNOWN] * (len(strange) - 1)
    assert numbers[-1] != UNKNOWN


def test_a_vocabulary_of_nothing_works() -> None:
    states = encoded(built([]), SENTENCES)
    assert torch.isfinite(states.words).all()


def test_unknown_words_differ_by_their_characters() -> None:
    encoder = built(layers=0)
    (row,) = encoded(encoder, [Sentence("s", ("cancerous", "colonic", "cancerous"))]).words
    assert torch.equal(row[0, :12], row[1, :12])
    assert not torch.equal(row[0, 12:], row[1, 12:])
    assert torch.equal(row[0], row[2])


def test_case_counts_in_characters_alone() -> None:
    encoder = built(layers=0)
    (row,) = encoded(encoder, [Sentence("s", ("colon", "Colon"))]).words
    assert torch.equal(row[0, :12], row[1, :12])
    assert not torch.equal(row[0, 12:], row[1, 12:])


def test_each_distinct_spelling_is_read_once() -> None:
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
    numbers = torch.from_numpy(encoder.prepare([Sentence("s", words)])[0].words).long()
    values: Tensor = encoder.words(numbers).detach()
    return values


@pytest.mark.parametrize("freeze", [True, False])
def test_words_have_the_vectors_of_the_file(vectors: Path, freeze: bool) -> None:
    encoder = built(vectors=vectors, word_size=None, freeze_words=freeze)
    found = word_parts(encoder, "the", "THE", "Colon", "colon", "COLON", "Paris", "APC", "cancer", "elsewhere", "paris")
    assert found[:7].tolist() == [[1, 2, 3], [1, 2, 3], [4, 5, 6], [7, 8, 9], [7, 8, 9], [-1, -2, -3], [0.5, 0.5, 0.5]]
    assert torch.equal(found[8], found[9])
    assert not torch.equal(found[7], found[8])
    assert encoder.word_size == 3


def test_frozen_vectors_get_no_gradient_and_learned_ones_do(vectors: Path) -> None:
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
    assert (gradient[1:] != 0).any(1).all()  # the unknown word among them, by word dropout
    assert all(p.grad is not None for p in encoder.parameters() if p.requires_grad)


def test_only_words_of_the_training_sentences_learn_when_not_frozen(vectors: Path) -> None:
    encoder = built(vectors=vectors, word_size=None, freeze_words=False)
    assert encoder.vocabulary.given == ("colon", "Paris")
    assert {"the", "Colon", "apc", "cancer"} <= set(encoder.vocabulary.learned)
    assert encoder.words is not None
    encoded(encoder, [Sentence("s", ("the", "Paris"))]).words.sum().backward()
    gradient = encoder.words.learned.weight.grad
    assert gradient is not None
    number = encoder.vocabulary.word_numbers(("the",))[0]
    assert gradient.abs().sum(1).nonzero().flatten().tolist() == [number]


def test_word_dropout_reads_training_words_as_unknown() -> None:
    encoder = built(word_dropout=0.5)
    numbers = torch.full((40, 50), 5)
    assert torch.equal(encoder._some_unknown(numbers), numbers)
    encoder.train()
    share = (encoder._some_unknown(numbers) == UNKNOWN).float().mean().item()
    assert share == pytest.approx(0.5, abs=0.05)


def test_dropout_acts_in_training_only() -> None:
    encoder = built().train()
    assert not torch.equal(encoded(encoder, SENTENCES).words, encoded(encoder, SENTENCES).words)
    encoder.eval()
    assert torch.equal(encoded(encoder, SENTENCES).words, encoded(encoder, SENTENCES).words)


# --- saving and mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [*VARIANTS.values(), {"vectors": True, "word_size": None}], ids=[*VARIANTS, "vectors"])
def test_saved_and_loaded_it_gives_the_same_states(tmp_path: Path, vectors: Path, values: dict[str, Any]) -> None:
    encoder = built(**values | ({"vectors": vectors} if "vectors" in values else {}))
    encoder.save(tmp_path)
    vectors.unlink()
    loaded = StaticEncoder.load(tmp_path).eval()
    loaded.load_state_dict(encoder.state_dict())
    before, after = encoded(encoder, SENTENCES), encoded(loaded, SENTENCES)
    assert torch.equal(before.words, after.words)
    assert torch.equal(before.cls, after.cls)
    assert [p.requires_grad for p in loaded.parameters()] == [p.requires_grad for p in encoder.parameters()]
    assert loaded.settings == encoder.settings
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_a_folder_without_the_encoder_or_with_another_record(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match=r"static_encoder\.json of the static encoder is missing"):
        StaticEncoder.load(tmp_path)
    for text in (
        "{}",
        "[]",
        "no json",
        '{"settings": {}, "vocabulary": [], "word_size": 3}',
        json.dumps({"settings": {"hidden": -1}, "vocabulary": {}, "word_size": 3}),
    ):
        (tmp_path / "static_encoder.json").write_text(text)
        with pytest.raises(SpanwiseError, match="not the record of a static encoder"):
            StaticEncoder.load(tmp_path)


def test_settings_that_make_no_sense(vectors: Path) -> None:
    with pytest.raises(ValidationError, match="nothing is left to make a word of"):
        StaticSettings(word_size=0, char_hidden=0)
    with pytest.raises(ValidationError, match="vectors are given, but word_size is 0"):
        StaticSettings(word_size=0, vectors=vectors)
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        StaticSettings(hiden=3)  # type: ignore[call-arg]
    with pytest.raises(SpanwiseError, match=r"vectors\.txt: vectors of 3 values, but word_size is 12"):
        built(vectors=vectors)
    with pytest.raises(SpanwiseError, match="pos_size is 3, but no training sentence has part-of-speech tags"):
        built([Sentence("s", ("a",))], pos_size=3)


def test_what_is_prepared_is_small_and_costs_its_words() -> None:
    encoder = built()
    (item,) = encoder.prepare([SENTENCES[2]])
    assert encoder.cost(item) == len(SENTENCES[2].words)
    assert item.words.dtype == np.int32
    assert item.tags is None


def test_real_sentences_keep_their_states_in_batches(shared_data: Path) -> None:
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
