"""What a user should know before training starts, and why a first epoch may have found nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spanwise.heads.base import Head
from spanwise.model import labels_of
from spanwise.types import Corpus, Sentence


def before_training(corpus: Corpus, head: Head) -> list[str]:
    """Sentences about what looks wrong: entities the method cannot reach, labels that differ between splits."""
    found = []
    for split in corpus:
        total = sum(len(set(sentence.entities)) for sentence in corpus[split])
        missed = sum(head.out_of_reach(sentence) for sentence in corpus[split])
        if missed:
            found.append(
                f"{split}: {missed:,} of {total:,} entities ({missed / total:.1%}) are out of reach of this method "
                "(too wide, overlapping or discontinuous for it); they count as misses in every score"
            )
    known = set(labels_of(corpus["train"]))
    for split in corpus:
        counts = Counter(entity.type for sentence in corpus[split] for entity in sentence.entities)
        unknown = {kind: count for kind, count in counts.items() if kind not in known}
        if unknown:
            names = ", ".join(f"{kind} ({count})" for kind, count in sorted(unknown.items()))
            found.append(f"{split} has types that train does not, which no model can learn: {names}")
        if split != "train" and counts and known - counts.keys():
            found.append(f"{split} has no entity of {', '.join(sorted(known - counts.keys()))}")
        if split != "train" and not counts:
            found.append(f"{split} has no entities at all: its scores will be 0")
    return found


def why_nothing(gold: Sequence[Sentence], predicted: Sequence[Sentence], head: Head, rate: float) -> str:
    """The likely cause of an F1 of 0 behind the first epoch."""
    entities = sum(len(set(sentence.entities)) for sentence in gold)
    proposed = [entity for sentence in predicted for entity in sentence.entities]
    if not entities:
        return "dev has no entities, so nothing can be right"
    missed = sum(head.out_of_reach(sentence) for sentence in gold)
    if missed == entities:
        return "every dev entity is out of reach of this method: see the lines before training"
    if not proposed:
        return (
            f"the model proposes no entity yet: normal for very small data, else raise the learning rate (now {rate:g}) "
            "or train longer"
        )
    bounds = {(s.id, e.fragments) for s in gold for e in s.entities}
    near = {(s.id, *f) for s, g in ((s, e) for s in gold for e in s.entities) for f in g.fragments}
    exact = sum((s.id, e.fragments) in bounds for s in predicted for e in s.entities)
    if exact:
        return f"{exact} of {len(proposed)} proposals have a right boundary and a wrong type: has dev the labels of train?"
    shifted = sum((s.id, e.range.start, e.range.end + step) in near for s in predicted for e in s.entities for step in (-1, 1))
    if shifted > len(proposed) / 2:
        return "most proposals end one word early or late: are the ends in one of the files inclusive?"
    return f"the model proposes {len(proposed)} entities for {entities} and none is right yet: train longer or look at the data"
