"""What a user should know before training starts, and why a first epoch may have found nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from spanwise.core.types import Corpus, Entity, Sentence, Span
from spanwise.heads.base import Head
from spanwise.heads.discontinuous import Discontinuous
from spanwise.models.model import labels_of


def before_training(corpus: Corpus, head: Head) -> list[str]:
    """Sentences about what looks wrong: entities the method cannot reach, labels that differ between splits."""
    found = []
    for split in corpus:
        total = sum(len(set(sentence.entities)) for sentence in corpus[split])
        causes = sum((out_of_reach(sentence, head) for sentence in corpus[split]), Counter[str]())
        missed = causes.total()
        if missed:
            why = ", ".join(f"{count:,} {cause}" for cause, count in causes.most_common())
            found.append(
                f"{split}: {missed:,} of {total:,} entities ({missed / total:.1%}) are out of reach of this method ({why}); "
                "they count as misses in every score"
            )
    relations = sum(len(sentence.relations) for sentence in corpus["train"])
    if relations and not head.finds_relations:
        found.append(f"train has {relations:,} relations, which this method does not learn; gp-relations and span-relations do")
    if head.finds_relations:
        found.extend(f"{split}: {line}" for split in corpus if (line := _relations_out_of_reach(corpus[split], head)))
    known = set(labels_of(corpus["train"]))
    for split in corpus:
        counts = Counter(entity.type for sentence in corpus[split] for entity in sentence.entities)
        unseen_types = {kind: count for kind, count in counts.items() if kind not in known}
        if unseen_types:
            names = ", ".join(f"{kind} ({count})" for kind, count in sorted(unseen_types.items()))
            found.append(f"{split} has types that train does not, which no model can learn: {names}")
        if split != "train" and counts and known - counts.keys():
            found.append(f"{split} has no entity of {', '.join(sorted(known - counts.keys()))}")
        if split != "train" and not counts:
            found.append(f"{split} has no entities at all: its scores will be 0")
    return found


def out_of_reach(sentence: Sentence, head: Head) -> Counter[str]:
    """Why a head can never predict some entities of a sentence, and how many: what it says of fewer of them tells the cause."""
    missed = head.out_of_reach(sentence)
    causes: Counter[str] = Counter()
    if not missed:
        return causes
    spans: dict[tuple[Span, ...], list[Entity]] = {}
    for entity in dict.fromkeys(sentence.entities):
        if head.out_of_reach(replace(sentence, entities=(entity,), relations=(), links=())):
            causes[_alone(entity, head)] += 1
        else:
            spans.setdefault(entity.fragments, []).append(entity)
    second = sum(
        head.out_of_reach(replace(sentence, entities=tuple(same), relations=(), links=()))
        for same in spans.values()
        if len(same) > 1
    )
    causes["of a second type on their span"] = second
    causes["overlapping another"] = missed - causes.total()
    return +causes


def _relations_out_of_reach(sentences: Sequence[Sentence], head: Head) -> str | None:
    """How many relations can never be found, and why."""
    causes: Counter[str] = Counter()
    for sentence in sentences:
        causes["between sentences"] += len(set(sentence.links))
        lost = set()
        if head.out_of_reach(sentence):
            alone = [replace(sentence, entities=(entity,), relations=(), links=()) for entity in sentence.entities]
            lost = {number for number, one in enumerate(alone) if head.out_of_reach(one)}
        for relation in set(sentence.relations):
            if relation.type not in head.labels.relations:
                causes["of a type that train does not have"] += 1
            elif lost & {relation.head, relation.tail}:
                causes["of entities out of reach"] += 1
    total, missed = sum(len(set(s.relations)) + len(set(s.links)) for s in sentences), causes.total()
    if not missed:
        return None
    why = ", ".join(f"{count:,} {cause}" for cause, count in causes.most_common() if count)
    return f"{missed:,} of {total:,} relations ({missed / total:.1%}) are out of reach ({why}); they count as misses"


def _alone(entity: Entity, head: Head) -> str:
    """Why an entity is out of reach even where there is no other."""
    if entity.type not in head.labels.entities:
        return "of a type that train does not have"
    if not entity.is_discontinuous:
        return "too wide"
    parts = [part for part in head.modules() if isinstance(part, Discontinuous)]
    return "with a fragment too wide" if any(entity.type in part.types for part in parts) else "discontinuous"


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
