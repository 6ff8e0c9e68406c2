"""Counts and lists of names in messages: "1 sentence", "2,000 sentences", "A, B and 3 more"."""

from __future__ import annotations

import re
from collections.abc import Sequence

# The start of the part of a phrase after its noun.
_AFTER_NOUN = re.compile(r"[,;:(]| (?:of|in|with|without|whose|that|dropped|named|other)\b")
_VERBS = re.compile(r"(?<=that )(?:occur|differ|start|are)\b")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, which is given in the singular.

    >>> counted(1, "sentence"), counted(2_000, "entity"), counted(0, "epoch")
    ('1 sentence', '2,000 entities', '0 epochs')
    """
    return f"{count:,} {noun if count == 1 else _plural(noun)}"


def counted_phrase(count: int, phrase: str) -> str:
    """Return a count with a phrase, which is given in the plural.

    >>> counted_phrase(2, "entities that occur in their document")
    '2 entities that occur in their document'
    >>> counted_phrase(1, "entities that occur in their document")
    '1 entity that occurs in its document'
    """
    return f"{count:,} {_singular_phrase(phrase) if count == 1 else phrase}"


def join_names(names: Sequence[str], max_count: int) -> str:
    """Join the first names, and count the rest.

    >>> join_names(["a", "b", "c"], 2), join_names(["a", "b"], 2)
    ('a, b and 1 more', 'a, b')
    """
    rest = len(names) - max_count
    return ", ".join(names[:max_count]) + (f" and {rest:,} more" if rest > 0 else "")


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def _singular(noun: str) -> str:
    return f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")


def _singular_phrase(phrase: str) -> str:
    match = _AFTER_NOUN.search(phrase)
    before, after = (phrase[: match.start()], phrase[match.start() :]) if match else (phrase, "")
    words = before.split(" ")
    noun = next((index for index, word in enumerate(words) if word.endswith("s") and not word.endswith("ss")), None)
    if noun is None:
        return phrase
    words[noun] = _singular(words[noun])
    rest = _VERBS.sub(lambda verb: "is" if verb[0] == "are" else f"{verb[0]}s", " ".join(words) + after)
    return rest.replace(" their ", " its ")
