"""The encoder of several encoders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from pydantic import BaseModel, ValidationError
from torch import Tensor, nn

from spanwise import Sentence
from spanwise.batching.batches import to_device
from spanwise.encoders import ENCODERS, concat, resolve_encoder, static
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.concat import ConcatEncoder, ConcatSettings
from spanwise.encoders.recurrent import masked_max
from spanwise.encoders.transformer_settings import MASKING, MASKING_SENTENCES

SENTENCES = [
    Sentence("a", ("colon", "cancer")),
    Sentence("b", ("the", "APC", "gene", ".")),
    Sentence("c", ()),
    Sentence("d", ("gene",)),
]
STATIC = {"kind": "static", "word_size": 6, "char_size": 3, "char_hidden": 2, "hidden": 5, "layers": 0, "dropout": 0.0}
LENGTHS = {"kind": "lengths"}


class LengthSettings(BaseModel):
    kind: Literal["lengths"] = "lengths"


class WordLengths(Encoder):
    """A substitute for a pretrained encoder: a word's state is its length times a vector. Pads two steps too many."""

    settings_class = LengthSettings

    def __init__(self) -> None:
        super().__init__()
        self.width = 3
        self.weight = nn.Parameter(torch.tensor([1.0, -1.0, 0.5]))
        self.context: tuple[Sentence, ...] = ()

    @classmethod
    def build(cls, settings: LengthSettings, sentences: Sequence[Sentence], log: Callable[[str], None]) -> WordLengths:
        return cls()

    @classmethod
    def load(cls, settings: LengthSettings, folder: Path) -> WordLengths:
        assert (folder / "lengths.txt").exists()
        return cls()

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[list[int]]:
        self.context = tuple(context)
        return [list(map(len, sentence.words)) for sentence in sentences]

    def collate(self, prepared: Sequence[list[int]]) -> dict[str, Tensor]:
        steps = max(map(len, prepared)) + 2
        lengths = torch.tensor([item + [0] * (steps - len(item)) for item in prepared])
        return {"lengths": lengths, "mask": lengths > 0}

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates:
        words = inputs["lengths"][:, :, None] * self.weight
        return TokenStates(words, words.sum(1), inputs["mask"])

    def cost(self, prepared: list[int]) -> int:
        return 2 * len(prepared)

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        return self.parameters()

    def save(self, folder: Path) -> None:
        (folder / "lengths.txt").write_text("no settings")


@pytest.fixture(autouse=True)
def _register_word_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENCODERS._loaded, "lengths", WordLengths)


def built(**values: Any) -> ConcatEncoder:
    torch.manual_seed(0)
    settings = ConcatSettings(**{"parts": (LENGTHS, STATIC)} | values)
    return ConcatEncoder.build(settings, SENTENCES).eval()


def encoded(encoder: Encoder, sentences: list[Sentence] = SENTENCES) -> TokenStates:
    states: TokenStates = encoder(encoder.collate(encoder.prepare(sentences)))
    return states


def test_states_are_concatenated() -> None:
    encoder = built()
    states = encoded(encoder)
    assert encoder.width == 3 + 6 + 4
    assert states.words.shape == (4, 4, 13)
    assert states.mask.sum(1).tolist() == [2, 4, 0, 1]
    first, second = (encoded(part) for part in encoder.parts)  # type: ignore[arg-type]
    assert torch.equal(states.words, torch.cat([first.words[:, :4], second.words], dim=2))
    assert torch.equal(states.cls, torch.cat([first.cls, second.cls], dim=1))


@pytest.mark.parametrize("hidden", [0, 8])
def test_sentences_are_pooled_only_if_a_head_reads_them(monkeypatch: pytest.MonkeyPatch, hidden: int) -> None:
    pooled: list[Tensor] = []

    def record(words: Tensor, mask: Tensor) -> Tensor:
        pooled.append(words)
        return masked_max(words, mask)

    for module in (concat, static):
        monkeypatch.setattr(module, "masked_max", record)
    states = encoded(built(hidden=hidden))
    assert not pooled
    assert states.cls is states.cls  # computed once
    assert len(pooled) == 1


def test_a_bilstm_reads_the_states() -> None:
    encoder = built(hidden=8, layers=2)
    states = encoded(encoder)
    assert encoder.width == 16
    assert states.words.shape == (4, 4, 16)
    assert states.cls.shape == (4, 16)
    assert torch.equal(states.cls[1], states.words[1].amax(0))
    assert (states.cls[2] == 0).all()


@pytest.mark.parametrize("hidden", [0, 8])
def test_a_sentence_has_the_same_states_alone_and_in_a_batch(hidden: int) -> None:
    encoder = built(hidden=hidden)
    together = encoded(encoder)
    for row, sentence in enumerate(SENTENCES):
        alone = encoded(encoder, [sentence])
        length = len(sentence.words)
        torch.testing.assert_close(together.words[row, :length], alone.words[0, :length], atol=1e-5, rtol=0)
        torch.testing.assert_close(together.cls[row], alone.cls[0], atol=1e-5, rtol=0)


def test_two_parts_of_the_same_kind() -> None:
    encoder = built(parts=(STATIC, STATIC | {"word_size": 2}))
    assert encoded(encoder).words.shape == (4, 4, 6 + 4 + 2 + 4)


def test_context_cost_and_pretrained_parameters_of_the_parts() -> None:
    encoder = built(hidden=8)
    (prepared,) = encoder.prepare(SENTENCES[1:2], context=SENTENCES)
    assert encoder.cost(prepared) == 8
    lengths = encoder.parts[0]
    assert isinstance(lengths, WordLengths)
    assert lengths.context == tuple(SENTENCES)
    assert list(encoder.pretrained_parameters()) == [lengths.weight]


@pytest.mark.parametrize("hidden", [0, 8])
def test_a_saved_encoder_gives_the_same_states(tmp_path: Path, hidden: int) -> None:
    encoder = built(hidden=hidden)
    encoder.save(tmp_path)
    loaded = ConcatEncoder.load(encoder.settings, tmp_path).eval()
    loaded.load_state_dict(encoder.state_dict())
    before, after = encoded(encoder), encoded(loaded)
    assert torch.equal(before.words, after.words)
    assert torch.equal(before.cls, after.cls)


def test_an_encoder_without_parts_is_refused() -> None:
    with pytest.raises(ValidationError, match="at least 1 item"):
        ConcatSettings(parts=())


def test_automatic_masking_of_a_part_follows_the_number_of_sentences() -> None:
    parts = [{"kind": "transformer", "name": "some", "masking": "auto"}, {"kind": "static", "layers": 0}]
    values = {"kind": "concat", "parts": parts, "hidden": 16}
    for sentences, masking in ((20, 0.0), (MASKING_SENTENCES - 1, 0.0), (MASKING_SENTENCES, MASKING)):
        resolved = resolve_encoder(values, sentences)
        assert resolved == {**values, "parts": [{**parts[0], "masking": masking}, parts[1]]}
    assert resolve_encoder({"kind": "static"}, 20) == {"kind": "static"}


def test_parts_of_equal_length_share_a_mask() -> None:
    encoder = built(parts=(STATIC, LENGTHS, {**STATIC, "word_size": 0}))
    inputs = encoder.collate(encoder.prepare(SENTENCES))
    assert inputs["0.mask"] is inputs["2.mask"] is inputs["mask"]
    assert inputs["1.mask"].shape[1] == inputs["mask"].shape[1] + 2
    on_device = to_device(inputs, torch.device("meta"))
    assert on_device["0.mask"] is on_device["2.mask"] is on_device["mask"]  # copied once
    assert {name: tensor.shape for name, tensor in on_device.items()} == {name: t.shape for name, t in inputs.items()}
