"""Drop the predictions that a partially annotated gold sentence leaves open: they are neither right nor wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanwise.core.partial import kept_entities, without_open
from spanwise.core.types import Entity, Link, Sentence


def drop_open(gold: Sequence[Sentence], predicted: Sequence[Sentence | None]) -> list[Sentence | None]:
    """Return the predictions without open entities, relations and links.

    Both sides are in the same order and have the same words; a prediction may be missing. The position
    of a link is the index of the sentence with its tail, or larger if there is none. A link stays if
    both its entities do, and if gold has it or both sentences were annotated completely.

    >>> words, one, two = ("in", "Oslo"), Entity("Place", ((1, 2),)), Entity("Word", ((0, 1),))
    >>> gold = [Sentence("1", words, (one,), document="d", position=0), Sentence("2", words, (one,), annotated=((1, 2),))]
    >>> predicted = [replace(gold[0], links=(Link("same", 0, 1, 1),)), Sentence("2", words, (two, one))]
    >>> [len(sentence.entities) for sentence in drop_open(gold, predicted)]
    [1, 1]
    """
    if all(sentence.annotated is None for sentence in gold):
        return list(predicted)
    pairs = list(zip(gold, predicted, strict=True))
    kept = [{} if prediction is None else kept_entities(sentence, prediction) for sentence, prediction in pairs]
    gold_links = {_ends(gold, index, link) for index, sentence in enumerate(gold) for link in sentence.links}

    def keep(index: int, link: Link) -> Link | None:
        """The link with the new indices of its entities; None if it is open."""
        position = link.position
        has_tail = position < len(gold)
        if link.head not in kept[index] or (has_tail and link.tail not in kept[position]):
            return None
        is_complete = gold[index].annotated is None and (not has_tail or gold[position].annotated is None)
        if not is_complete and _ends(predicted, index, link) not in gold_links:
            return None
        return replace(link, head=kept[index][link.head], tail=kept[position][link.tail] if has_tail else link.tail)

    result: list[Sentence | None] = []
    for index, (sentence, prediction) in enumerate(pairs):
        if prediction is None:
            result.append(None)
            continue
        links = [new for link in prediction.links if (new := keep(index, link)) is not None]
        known = without_open(sentence, prediction)
        result.append(replace(known, links=tuple(links)) if known.links or links else known)
    return result


def _ends(sentences: Sequence[Sentence | None], index: int, link: Link) -> tuple[str, int, Entity, int, Entity] | None:
    """The type of a link, and the sentence and entity of both ends; None if it has no tail."""
    head = sentences[index]
    tail = sentences[link.position] if link.position < len(sentences) else None
    if head is None or tail is None:
        return None
    return link.type, index, head.entities[link.head], link.position, tail.entities[link.tail]
