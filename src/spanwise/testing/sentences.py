"""Sentences of all lengths for checks of scoring."""

from __future__ import annotations

import random

from spanwise.core.types import Entity, Sentence, Span
from spanwise.testing.corpus import DRUGS, FILLERS, PLACES, random_sentences

EMPTY = Sentence("empty", ())
ONE_WORD = Sentence("one", ("quito",), (Entity("Place", (Span(0, 1),)),))
_WORDS = random.Random(1).choices([*FILLERS, *PLACES, *DRUGS, "zebra"], k=90)  # longer than the window of the tiny BERT
LONG = Sentence(
    "long", tuple(_WORDS), tuple(Entity("Place", (Span(n, n + 1),)) for n, word in enumerate(_WORDS) if word in PLACES)
)
WIDE = Sentence("wide", ("oslo",) * 9, (Entity("Place", (Span(0, 9),)),))

TEST_SENTENCES = (*random_sentences(6, seed=7), EMPTY, LONG, ONE_WORD, WIDE)
