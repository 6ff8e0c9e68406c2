"""Fixtures for the tests of heads: random states, an encoder of word vectors, and common checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Head, ScoredSpans

SIZE = 12


class TableEncoder(Encoder):
    """An embedding per word; the state of a sentence is their mean."""

    def __init__(self, sentences: Sequence[Sentence], width: int = SIZE) -> None:
        super().__init__()
        self.width = width
        self.vocabulary = {word: index for index, word in enumerate(sorted({w for s in sentences for w in s.words}))}
        self.table = nn.Embedding(len(self.vocabulary), width)

    def prepare(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        return [[self.vocabulary[word] for word in sentence.words] for sentence in sentences]

    def collate(self, prepared: Sequence[list[int]]) -> dict[str, Tensor]:
        longest = max(map(len, prepared))
        return {
            "words": torch.tensor([row + [0] * (longest - len(row)) for row in prepared]),
            "mask": torch.tensor([[True] * len(row) + [False] * (longest - len(row)) for row in prepared]),
        }

    def forward(self, inputs: Mapping[str, Tensor]) -> TokenStates:
        words, mask = self.table(inputs["words"]), inputs["mask"]
        return TokenStates(words, (words * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1), mask)

    def cost(self, prepared: list[int]) -> int:
        return len(prepared)

    def save(self, folder: Path) -> None:
        raise NotImplementedError


@pytest.fixture
def encoder() -> TableEncoder:
    return TableEncoder([Sentence("s", ("a",))])


@pytest.fixture
def overfit() -> Callable[..., bool]:
    """Trains a head and word vectors until they predict exactly the entities of a few sentences; False if they never do."""

    @torch.no_grad()
    def is_exact(head: Head, states: TokenStates, sentences: Sequence[Sentence]) -> bool:
        actual = decode_entities(head, head.score(states, head.targets(sentences, gold=False)), len(sentences))
        return [set(entities) for entities in actual] == [set(sentence.entities) for sentence in sentences]

    def run(head_class: type[Head], labels: Any, settings: Any, sentences: Sequence[Sentence], steps: int = 150) -> bool:
        torch.manual_seed(0)
        encoder = TableEncoder(sentences)
        head = head_class.build(encoder, labels, settings)
        inputs = encoder.collate(encoder.prepare(sentences))
        generator = np.random.default_rng(0)
        optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=0.03)
        for step in range(1, steps + 1):
            losses = head.loss(encoder(inputs), head.targets(sentences, gold=True, generator=generator))
            optimizer.zero_grad()
            losses.mean.backward()
            optimizer.step()
            if (step % 25 == 0 or step == steps) and is_exact(head.eval(), encoder(inputs), sentences):
                return True
            head.train()
        return False

    return run


@pytest.fixture
def nested_sentences() -> list[Sentence]:
    """Learnable sentences with nested entities of types A and B of at most 3 words."""
    fillers = ["the", "yield", "of", "rose", "near", "while", "and", "fell"]
    rng = np.random.default_rng(0)
    sentences = []
    for number in range(20):
        before, between, after = (list(rng.choice(fillers, int(rng.integers(0, 4)))) for _ in range(3))
        works = ["zinc", "oxide", "works"] if number % 4 else []
        words = [*before, *works, *between, "acetic", "acid", *after]
        first, second = len(before), len(before) + len(works) + len(between)
        nested = [Entity("A", ((first, first + 3),)), Entity("B", ((first, first + 2),))] if works else []
        entities = (*nested, Entity("B", ((second, second + 2),)))
        sentences.append(Sentence(f"s{number}", tuple(map(str, words)), entities))
    return sentences


@pytest.fixture
def random_batch() -> Callable[..., tuple[list[Sentence], list[TokenStates]]]:
    """Random sentences with random (also overlapping, discontinuous, wide) entities, and the states of each."""

    def make(count: int = 9, seed: int = 0, longest: int = 13, widest: int = 13) -> tuple[list[Sentence], list[TokenStates]]:
        rng, torch_rng = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        sentences, states = [], []
        for number in range(count):
            length = int(rng.integers(1, longest + 1))
            entities = set()
            for _ in range(int(rng.integers(0, 5))):
                start = int(rng.integers(0, length))
                end = int(rng.integers(start + 1, min(length, start + widest) + 1))
                fragments = ((start, start + 1), (end - 1, end)) if rng.random() < 0.2 and end - start > 2 else ((start, end),)
                entities.add(Entity("AB"[int(rng.integers(0, 2))], fragments))
            sentences.append(Sentence(f"s{number}", ("w",) * length, tuple(sorted(entities, key=lambda e: e.fragments))))
            words, cls = (torch.randn(1, *shape, generator=torch_rng) for shape in ((length, SIZE), (SIZE,)))
            states.append(TokenStates(words, cls, torch.ones(1, length, dtype=torch.bool)))
        return sentences, states

    return make


@pytest.fixture
def joined() -> Callable[..., TokenStates]:
    """Joins the states of single sentences to a batch; the padding holds large numbers."""

    def join(states: Sequence[TokenStates], extra: int = 0) -> TokenStates:
        longest = max(state.words.shape[1] for state in states) + extra
        words = torch.full((len(states), longest, SIZE), 1e4)
        mask = torch.zeros(len(states), longest, dtype=torch.bool)
        for number, state in enumerate(states):
            length = state.words.shape[1]
            words[number, :length], mask[number, :length] = state.words[0], True
        return TokenStates(words, torch.cat([state.cls for state in states]), mask)

    return join


def decode_entities(head: Head, scored: ScoredSpans, count: int) -> list[tuple[Entity, ...]]:
    return [prediction.entities for prediction in head.decode(scored, count)]


@pytest.fixture
def check_batches(
    random_batch: Callable[..., tuple[list[Sentence], list[TokenStates]]], joined: Callable[..., TokenStates]
) -> Callable[..., None]:
    """Checks that loss, entities and scores of a sentence are the same in batches of any size and order."""

    def check(head: Head, **batch_options: int) -> None:
        head.eval()
        sentences, states = random_batch(**batch_options)
        single = []
        for sentence, state in zip(sentences, states, strict=True):
            losses = head.loss(state, head.targets([sentence], gold=True))
            actual = decode_entities(head, head.score(state, head.targets([sentence], gold=False)), 1)[0]
            single.append((losses.sums[0], losses.counts[0], actual))
        assert any(actual for *_, actual in single)
        rng = np.random.default_rng(7)
        for size in (2, 3, 5, 9):
            order = rng.permutation(len(sentences))
            for extra, first in enumerate(range(0, len(order), size)):
                chosen = order[first : first + size].tolist()
                batch = joined([states[number] for number in chosen], extra)
                batch_sentences = [sentences[number] for number in chosen]
                losses = head.loss(batch, head.targets(batch_sentences, gold=True))
                actual = decode_entities(
                    head, head.score(batch, head.targets(batch_sentences, gold=False)), len(batch_sentences)
                )
                for row, number in enumerate(chosen):
                    sums, counts, entities = single[number]
                    torch.testing.assert_close(losses.sums[row], sums, rtol=1e-5, atol=1e-5)
                    assert losses.counts[row] == counts
                    assert actual[row] == entities
                    scores = [[entity.score for entity in some] for some in (actual[row], entities)]
                    assert scores[0] == pytest.approx(scores[1], abs=1e-5)

    return check


@pytest.fixture
def check_half_precision() -> Callable[..., None]:
    """Checks losses, gradients and scores of states (and, with ``with_weights``, weights) in half precision."""

    def check(
        head: Head, sentences: Sequence[Sentence], states: TokenStates, dtype: torch.dtype, with_weights: bool, scale: float
    ) -> None:
        targets = head.targets(sentences, gold=True)
        expected = head.loss(TokenStates(states.words * scale, states.cls, states.mask), targets).sums.detach()
        head = head.to(dtype) if with_weights else head
        words = (states.words * scale).to(dtype).requires_grad_()
        half = TokenStates(words, states.cls.to(dtype), states.mask)
        losses = head.loss(half, targets)
        losses.mean.backward()
        assert losses.sums.dtype == torch.float32
        torch.testing.assert_close(losses.sums, expected, rtol=0.05, atol=0.5)
        for values in (words, *head.parameters()):
            assert values.grad is not None
            assert bool(values.grad.isfinite().all())
            assert bool(values.grad.any())
        assert not words.grad[~states.mask].any()  # type: ignore[index]
        assert bool(head.score(half, {}).score.isfinite().all())

    return check


class Operations(TorchDispatchMode):
    """Counts the operations that would make the CPU wait for a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.synchronisations: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func.overloadpacket)
        has_mask_index = name == "aten.index" and any(i is not None and i.dtype == torch.bool for i in args[1])
        if has_mask_index or name in {
            "aten.nonzero", "aten._local_scalar_dense", "aten.masked_select", "aten.bincount", "aten._unique2", "aten.equal",
        }:  # fmt: skip
            self.synchronisations[name] += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture
def synchronisations() -> Callable[[], Any]:
    @contextmanager
    def count() -> Iterator[Counter[str]]:
        with Operations() as mode:
            yield mode.synchronisations

    return count
