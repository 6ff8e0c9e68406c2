"""bench/locate.py: counts of the spans of both stages."""

from __future__ import annotations

from typing import Any

import torch
from locate import count_located

from spanwise import Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads.base import Labels
from spanwise.heads.locate_label import LocateLabel
from spanwise.heads.locate_parts import Text
from spanwise.heads.locate_settings import LocateSettings

WIDTH = 12


def sentence(*entities: tuple[Any, ...]) -> Sentence:
    return Sentence("s", ("w",) * 6, tuple(Entity(kind, fragments) for kind, *fragments in entities))


def test_the_results_of_both_stages_are_counted() -> None:
    sentences = [sentence(("A", (0, 2)), ("B", (0, 2)), ("B", (1, 6)), ("A", (0, 1), (3, 4))), sentence(("A", (0, 6)))]
    states = TokenStates(torch.randn(2, 6, WIDTH), torch.zeros(2, WIDTH), torch.ones(2, 6, dtype=torch.bool))

    def count(threshold: float, move: float = 0.0) -> dict[str, int]:
        torch.manual_seed(3)
        settings = LocateSettings(lengths=(1, 2, 3, 4), decoding="nested", proposal_threshold=threshold)
        head = LocateLabel(WIDTH, Labels(("A", "B")), settings).eval()
        assert head.regressor is not None
        with torch.no_grad():
            head.regressor.out.bias.copy_(torch.tensor([move, 0.0]))
            proposals = head.propose(Text.of(states), head.targets(sentences, gold=False))
        return count_located(head, proposals, sentences)

    # The entity of 5 words overlaps a seed of 4 enough, but is not a seed; that of 6 words overlaps none enough.
    assert count(0.0) == {"sentences": 2, "entities": 4, "classified": 2 * (6 + 5 + 4 + 3), "passed": 2, "located": 1}
    assert count(0.0, move=-1.0)["located"] == 2
    empty = count(0.999)
    assert (empty["classified"], empty["passed"], empty["located"]) == (0, 0, 0)
