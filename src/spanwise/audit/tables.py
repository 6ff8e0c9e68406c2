"""Tables on the consistency of gold: strings, near-duplicates and boundary habits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spanwise.analysis.section import Section, Table
from spanwise.audit.duplicates import conflicting_pairs
from spanwise.audit.habits import boundary_habits
from spanwise.audit.inconsistencies import inconsistent_strings
from spanwise.core.counting import join_names
from spanwise.core.types import Entity, Sentence

MAX_EXAMPLES = 5  # sentences that a row names

TEXT = (
    "Strings that are annotated in several ways, sentences that are almost equal but have different entities, and words that "
    "most entities include at their edge or leave outside. These tables count; they use no model."
)


def consistency_section(sentences: Sequence[Sentence], names: Sequence[str]) -> Section:
    """Inconsistencies that counting detects in gold alone. ``names`` are those of the sentences."""
    tables = {
        "strings": _strings(sentences, names),
        "duplicates": _duplicates(sentences, names),
        "habits": _habits(sentences, names),
    }
    return Section("consistency", "Consistency of gold", TEXT, tables)


def _strings(sentences: Sequence[Sentence], names: Sequence[str]) -> Table:
    rows = []
    for string in inconsistent_strings(sentences):
        labels = ", ".join(f"{label} {count}" for label, count in string.labels.most_common())
        examples = _examples(names[index] for index, _, _ in string.exceptions)
        rows.append((" ".join(string.words), string.labels.total(), labels, len(string.exceptions), examples))
    columns = ("string", "occurrences", "annotated_as", "exceptions", "sentences")
    return Table(columns, tuple(rows), "Strings annotated in several ways")


def _duplicates(sentences: Sequence[Sentence], names: Sequence[str]) -> Table:
    rows = []
    for pair in conflicting_pairs(sentences):
        first, second = sentences[pair.first], sentences[pair.second]
        cells = (_entities(first, pair.only_first), _entities(second, pair.only_second))
        rows.append((names[pair.first], names[pair.second], *cells, " ".join(first.text.split())))
    columns = ("first", "second", "only_in_first", "only_in_second", "text")
    return Table(columns, tuple(rows), "Near-duplicate sentences with different entities")


def _habits(sentences: Sequence[Sentence], names: Sequence[str]) -> Table:
    rows = []
    for habit in boundary_habits(sentences):
        rule = "included" if habit.is_included else "left outside"
        examples = "; ".join(
            f"{names[index]}: {' '.join(sentences[index].words_of(entity))}"
            for index, entity in habit.exceptions[:MAX_EXAMPLES]
        )  # fmt: skip
        rows.append((habit.word, habit.side, rule, habit.inside, habit.outside, examples))
    columns = ("word", "side", "mostly", "inside", "outside", "exceptions")
    return Table(columns, tuple(rows), "Words that entities mostly include at an edge, or mostly leave outside")


def _entities(sentence: Sentence, entities: Iterable[Entity]) -> str:
    return ", ".join(f"{entity.type} “{sentence.text_of(entity)}”" for entity in entities)


def _examples(names: Iterable[str]) -> str:
    return join_names(list(dict.fromkeys(names)), MAX_EXAMPLES)
