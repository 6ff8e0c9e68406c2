"""Apply corrections to a corpus, and count what they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spanwise.audit.suggestions import Suggestion
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.evaluation.matching import match_errors

SentenceKeys = Mapping[str, tuple[str, Sentence]]


@dataclass
class Changes:
    """The changes of corrections: counts by kind, and one line for each changed entity."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def add(self, kind: str, sentence: str, text: str) -> None:
        self.counts[kind] += 1
        self.lines.append(f"{sentence}: {kind} {text}")


@dataclass(frozen=True)
class _Replacement:
    """The new entities of a sentence, and the new index of each old entity (None: removed)."""

    entities: tuple[Entity, ...]
    indices: tuple[int | None, ...]


def apply_suggestions(keys: SentenceKeys, suggestions: Iterable[Suggestion]) -> dict[str, tuple[Entity, ...]]:
    """The new entities of every sentence that suggestions refer to."""
    entities: dict[str, list[Entity]] = {}
    for item in suggestions:
        if item.sentence not in keys:
            raise SpanwiseError(f"the data has no sentence {item.sentence!r}; pass the data that was audited")
        sentence = keys[item.sentence][1]
        current = entities.setdefault(item.sentence, list(dict.fromkeys(sentence.entities)))
        _check_words(item, sentence)
        if item.gold is None:
            if item.suggestion is not None and item.suggestion not in current:
                current.append(item.suggestion)
        elif item.gold not in current:
            start, end = item.gold.range
            problem = f"has no {item.gold.type!r} from word {start} to {end}, which a correction replaces"
            raise SpanwiseError(f"{item.sentence}: the data {problem}; were the corrections already applied?")
        else:
            position = current.index(item.gold)
            others = current[:position] + current[position + 1 :]
            is_new = item.suggestion is not None and item.suggestion not in others
            current[position : position + 1] = [replace(item.gold, **_values(item.suggestion))] if is_new else []  # type: ignore[arg-type]
    return {key: tuple(values) for key, values in entities.items()}


def _check_words(item: Suggestion, sentence: Sentence) -> None:
    """Refuse a suggestion for other words than those of the data, which was perhaps changed since the audit."""
    for entity, name in ((item.gold, "gold"), (item.suggestion, "suggested")):
        if entity is None:
            continue
        if entity.range.end > len(sentence.words):
            problem = f"ends at word {entity.range.end}, but the sentence has {counted(len(sentence.words), 'word')}"
            raise SpanwiseError(f"{item.sentence}: the {name} {entity.type!r} {problem}")
        expected, text = item.details.get(f"{name}_text"), sentence.text_of(entity)
        if expected is not None and expected.split() != text.split():
            problem = f"is “{expected}”, but these words of the data are “{text}”"
            advice = "pass the data that was audited; if you moved the entity, remove its text"
            raise SpanwiseError(f"{item.sentence}: the {name} {entity.type!r} {problem}; {advice}")


def _values(entity: Entity | None) -> dict[str, object]:
    return {} if entity is None else {"type": entity.type, "fragments": entity.fragments, "score": None}


def correct_corpus(corpus: Corpus, keys: SentenceKeys, entities: Mapping[str, Sequence[Entity]]) -> tuple[Corpus, Changes]:
    """Replace the entities of the sentences in ``entities``; return the splits of ``keys`` and what changed.

    Relations follow entities that get another type or other words. Those of removed entities are dropped.
    """
    changes = Changes()
    replacements: dict[str, _Replacement] = {}
    for key, new in entities.items():
        replacement = _replace(key, keys[key][1], new, changes)
        if replacement is not None:
            replacements[key] = replacement
    # Links name the entities of other sentences by document and position.
    moved = {
        (split, keys[key][1].document, keys[key][1].position): replacement
        for key, replacement in replacements.items()
        for split in (keys[key][0],)
        if keys[key][1].document is not None
    }
    splits: dict[str, list[Sentence]] = {split: [] for split, _ in keys.values()}
    for key, (split, sentence) in keys.items():
        splits[split].append(_correct(sentence, split, replacements.get(key), moved, changes))
    return Corpus({split: tuple(sentences) for split, sentences in splits.items()}, corpus.name), changes


def _replace(key: str, sentence: Sentence, new: Sequence[Entity], changes: Changes) -> _Replacement | None:
    """Find which old entity became which new one, and note the differences; None if there are none."""
    old = sentence.entities
    removed = {(entity.type, entity.fragments) for entity in set(old) - set(new)}
    added = {(entity.type, entity.fragments) for entity in set(new) - set(old)}
    if not removed and not added:
        return None
    successors = {Entity(*gold): (error, Entity(*item)) for error, gold, item in match_errors(removed, added)}
    by_entity = {entity: entity for entity in new}
    entities: list[Entity] = []
    indices: list[int | None] = []
    for entity in old:
        if entity in by_entity:
            successor = entity
        elif entity in successors:
            error, successor = successors[entity]
            kind = "retyped" if error == "type" else "moved"
            changes.add(kind, key, f"{_describe(entity, sentence)} to {_describe(successor, sentence)}")
        else:
            changes.add("removed", key, _describe(entity, sentence))
            indices.append(None)
            continue
        indices.append(len(entities))
        entities.append(replace(entity, type=successor.type, fragments=successor.fragments))
    known = set(entities)
    for entity in new:
        if entity not in known:
            known.add(entity)
            entities.append(replace(entity, score=None))
            changes.add("added", key, _describe(entity, sentence))
    return _Replacement(tuple(entities), tuple(indices))


def _correct(
    sentence: Sentence, split: str, replacement: _Replacement | None,
    moved: Mapping[tuple[str, str | None, int | None], _Replacement], changes: Changes,
) -> Sentence:  # fmt: skip
    """The sentence with its new entities, and with relations and links that point to the right ones."""
    if replacement is None and not (sentence.links and moved):
        return sentence
    indices = replacement.indices if replacement is not None else tuple(range(len(sentence.entities)))
    relations = []
    for relation in sentence.relations:
        head, tail = indices[relation.head], indices[relation.tail]
        if head is not None and tail is not None:
            relations.append(replace(relation, head=head, tail=tail))
    links = []
    for link in sentence.links:
        other = moved.get((split, sentence.document, link.position))
        head, tail = indices[link.head], link.tail if other is None else other.indices[link.tail]
        if head is not None and tail is not None:
            links.append(replace(link, head=head, tail=tail))
    lost = len(sentence.relations) + len(sentence.links) - len(relations) - len(links)
    if lost:
        changes.counts["relations dropped"] += lost
    entities = sentence.entities if replacement is None else replacement.entities
    return replace(sentence, entities=entities, relations=tuple(relations), links=tuple(links))


def _describe(entity: Entity, sentence: Sentence) -> str:
    return f"{entity.type} “{' '.join(sentence.text_of(entity).split())}”"
