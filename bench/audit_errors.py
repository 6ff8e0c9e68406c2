"""Inject known annotation errors into sentences, to measure how many of them an audit finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from spanwise.core.types import Entity, Sentence, Span

KINDS = ("dropped", "retyped", "boundary", "spurious")


@dataclass(frozen=True)
class InjectedError:
    """A change: ``before`` is the true entity (None for a spurious one), ``after`` the one in the data (None if dropped)."""

    sentence: int
    kind: str
    before: Entity | None
    after: Entity | None


def inject(sentences: Sequence[Sentence], share: float, seed: int) -> tuple[list[Sentence], list[InjectedError]]:
    """Change ``share`` of the entities, in equal parts for each kind of error; relations are removed.

    *dropped*: an entity is removed. *retyped*: it gets another type, drawn by frequency (corpora with one
    type have no such errors, and more of the others). *boundary*: its start or end moves by one word.
    *spurious*: an entity is added that overlaps no other; its width and type are drawn from the corpus.
    If the corpus has no overlapping entities, the changes create none. An entity is changed at most once.
    """
    random = Random(seed)
    plain = [replace(sentence, relations=(), links=()) for sentence in sentences]
    entities = [(index, entity) for index, sentence in enumerate(plain) for entity in sentence.entities]
    types = [entity.type for _, entity in entities]
    widths = [entity.range.width for _, entity in entities if not entity.is_discontinuous]
    is_flat = not any(_overlaps(entity, sentence.entities) for sentence in plain for entity in sentence.entities)
    kinds = [kind for kind in KINDS if kind != "retyped" or len(set(types)) > 1]
    count = round(share * len(entities))
    quotas = {kind: count // len(kinds) + (position < count % len(kinds)) for position, kind in enumerate(kinds)}

    candidates = [item for item in entities if not item[1].is_discontinuous]
    random.shuffle(candidates)
    errors: list[InjectedError] = []
    for kind in kinds:
        while quotas[kind]:
            index, before = candidates.pop() if kind != "spurious" else (random.randrange(len(plain)), None)
            sentence = plain[index]
            after = None
            if kind == "retyped" and before is not None:
                after = Entity(random.choice([type for type in types if type != before.type]), before.fragments)
            elif kind == "boundary" and before is not None:
                start, end = before.range
                moves = [Span(start - 1, end), Span(start + 1, end), Span(start, end - 1), Span(start, end + 1)]
                moves = [span for span in moves if 0 <= span.start < span.end <= len(sentence.words)]
                after = Entity(before.type, (random.choice(moves),)) if moves else None
            elif kind == "spurious":
                width = random.choice(widths)
                if width > len(sentence.words):
                    continue
                start = random.randrange(len(sentence.words) - width + 1)
                after = Entity(random.choice(types), (Span(start, start + width),))
                if _overlaps(after, (*sentence.entities, *sentences[index].entities)):  # nor one that was dropped
                    continue
            others = tuple(entity for entity in sentence.entities if entity != before)
            if after is None and kind != "dropped":
                continue
            if after is not None and (after in others or (is_flat and _overlaps(after, others))):
                continue
            changed = others if after is None else tuple(sorted((*others, after), key=lambda entity: entity.range))
            plain[index] = replace(sentence, entities=changed)
            errors.append(InjectedError(index, kind, before, after))
            quotas[kind] -= 1
    return plain, errors


def _overlaps(entity: Entity, others: Sequence[Entity]) -> bool:
    return any(entity.range.overlaps(other.range) for other in others if other is not entity)
