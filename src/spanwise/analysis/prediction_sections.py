"""Sections that need predictions only: scores, errors, confusions, buckets and lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from spanwise.analysis.figures.buckets import buckets_figure
from spanwise.analysis.figures.confusion import MAX_TYPES as MAX_CONFUSED_TYPES
from spanwise.analysis.figures.confusion import confusion_figure
from spanwise.analysis.figures.errors import MAX_TYPES as MAX_ERROR_TYPES
from spanwise.analysis.figures.errors import errors_figure
from spanwise.analysis.figures.lengths import entity_lengths_figure, sentence_lengths_figure
from spanwise.analysis.figures.scores import scores_figure
from spanwise.analysis.figures.style import MAX_BARS
from spanwise.analysis.section import RATES, SCORE_COLUMNS, Cell, Plot, Section, Table, limit_note
from spanwise.core.counting import counted
from spanwise.core.types import Sentence
from spanwise.evaluation.attributes import ATTRIBUTES
from spanwise.evaluation.bootstrap import MIN_UNITS
from spanwise.evaluation.buckets import DEFAULT_BUCKETS, Bucket, bucket_scores
from spanwise.evaluation.errors import ErrorAnalysis
from spanwise.evaluation.evaluation import Evaluation
from spanwise.evaluation.matching import ERROR_TYPES, OUTCOMES, Match, Mention
from spanwise.evaluation.pairing import pair
from spanwise.evaluation.relaxed import RelaxedScore
from spanwise.evaluation.scores import Macro, Score, Scores
from spanwise.evaluation.train_index import TrainIndex
from spanwise.evaluation.typing import TypingScores

BUCKET_COLUMNS = ("attribute", "bucket", "above", "up_to", *SCORE_COLUMNS, "low", "high")
ERROR_COLUMNS = ("error_type", "gold_type", "gold_text", "predicted_type", "predicted_text", "score", "sentence", "text")
TITLES = {
    "eLen": "entity length (words)",
    "tLen": "sentence length (words)",
    "eCon": "label consistency in train",
    "eDen": "share of entity words",
    "oDen": "share of unknown words",
    "frequency": "occurrences in train",
    "seen": "seen in train",
    "nesting": "nesting",
    "discontinuous": "continuity",
}


def scores_section(evaluation: Evaluation) -> Section:
    """Show precision, recall and F1 per type, and overall by several criteria."""
    strict = evaluation.entities
    measures: dict[str, Score | Macro | None] = {
        "micro": strict.micro, "macro": strict.macro, "unlabelled": evaluation.unlabelled, "relaxed": evaluation.relaxed,
        "discontinuous": evaluation.discontinuous, "nested": evaluation.nested,
        "unseen sentences": evaluation.unseen.score if evaluation.unseen and evaluation.unseen.sentences else None,
    }  # fmt: skip
    tables = {
        "summary": Table(
            ("measure", *SCORE_COLUMNS),
            tuple((name, *_cells(score)) for name, score in measures.items() if score),
            "Summary",
            percentages=RATES,
        ),
        "types": _types_table(strict, "Entity types"),
    }
    if evaluation.relations is not None:
        tables["relations"] = _types_table(evaluation.relations.strict, "Relation types")
    text = "A prediction is correct if its type and all its words match a gold entity."
    if (interval := evaluation.interval) is not None:
        row = (strict.micro.f1, interval.low, interval.high, interval.level, interval.resamples, interval.seed)
        columns = ("f1", "low", "high", "level", "resamples", "seed")
        tables["interval"] = Table(columns, (row,), "Bootstrap interval of micro F1", percentages=("f1", "low", "high"))
        text += (
            f" The {interval.level:.0%} bootstrap interval of micro F1 is {100 * interval.low:.1f} to "
            f"{100 * interval.high:.1f}: the range to expect on other samples of such sentences."
        )
    plot = Plot(
        partial(scores_figure, strict.types, strict.micro),
        "F1 of each entity type (bars) with precision (▼) and recall (▲), the most frequent type first. Precision above recall "
        "means that entities are missed; recall above precision, that too many are predicted."
        + limit_note(MAX_BARS, len(strict.types)),
    )
    return Section("scores", "Scores", " ".join([text, *_as_sentences(evaluation.notes)]), tables, {"types": plot})


def typing_section(typing: TypingScores) -> Section:
    """Show the accuracy of a model that types given spans."""
    rows = [("all types", typing.overall), *typing.types.items()]
    if typing.lookup is not None:
        rows.insert(1, ("lookup baseline", typing.lookup))
    columns = ("type", "accuracy", "correct", "entities")
    cells = tuple((name, score.accuracy, score.correct, score.entities) for name, score in rows)
    table = Table(columns, cells, "Entity types", percentages=("accuracy",))
    text = "The spans are given; a prediction is correct if its type is."
    return Section("scores", "Scores", " ".join([text, *_as_sentences(typing.notes)]), {"types": table})


def errors_section(errors: ErrorAnalysis) -> Section:
    """Show the number of errors of each type, and list all, the most confident and the most frequent errors."""
    published = errors.published_rates
    outcomes = tuple(
        (outcome, errors.counts[outcome], errors.rates.get(outcome), published.get(outcome)) for outcome in OUTCOMES
    )
    by_type: dict[str, Counter[str]] = {}
    for match in errors.matches:
        mention = match.gold or match.mention
        by_type.setdefault(mention.type, Counter())[match.outcome] += 1
    types = sorted(by_type, key=lambda name: (-by_type[name].total(), name))
    tables = {
        "outcomes": Table(
            ("outcome", "count", "rate", "published_rate"), outcomes, "Outcomes", percentages=("rate", "published_rate")
        ),
        "types": Table(
            ("type", "correct", "wrong_type", *OUTCOMES[2:]),
            tuple((type, *(by_type[type][outcome] for outcome in OUTCOMES)) for type in types),
            "Outcomes of each entity type",
        ),
        "all": _errors_table(errors.errors, "All errors"),
        "most_confident": _errors_table(errors.most_confident(), "Most confident errors"),
        "most_frequent": Table(
            ("count", *ERROR_COLUMNS),
            tuple((error.count, *_error_row(error.example)) for error in errors.most_frequent()),
            "Most frequent errors",
        ),
    }
    count = sum(errors.counts[type] for type in ERROR_TYPES)
    largest = max(ERROR_TYPES, key=lambda name: errors.counts[name])
    summary = counted(count, "error") + (
        f"; the most frequent type is “{largest}” ({errors.counts[largest]:,})." if count else "."
    )
    text = (
        f"{summary} A wrong prediction is matched with the missed gold entity that it overlaps: “type” errors have its words, "
        "“boundary” errors its type and some of its words, “both” errors only some of its words. A prediction without a match "
        "is “spurious”, a gold entity without a match is “missed”. Rates are relative to all false positives and false "
        "negatives (Bundling Learning for NER, Eq. 24). The published rates count differently, as its Table 7 does: a "
        "boundary error is any wrong prediction that overlaps a gold entity of any type with other boundaries, a type error "
        "one with its boundaries and another type."
    )
    if not errors.has_scores:
        text += " The predictions have no scores, so the most confident errors are unknown."
    plot = Plot(
        partial(errors_figure, errors.counts, by_type, types),
        "Top: number of errors of each error type. Bottom: errors of each entity type (that of the gold entity; of the "
        "prediction if spurious), coloured by error type; “3 of 10” means 3 errors among 10 gold or spurious entities."
        + limit_note(MAX_ERROR_TYPES, len(types)),
    )
    return Section("errors", "Errors", text, tables, {"counts": plot})


def confusion_section(errors: ErrorAnalysis, types: Sequence[str]) -> Section:
    """Show the confusion matrix of gold and predicted types."""
    confusion = errors.confusion
    confused = (type for pair in confusion.counts for type in pair)
    names = list(dict.fromkeys((*types, *confused, *confusion.missed, *confusion.spurious)))
    rows: list[tuple[Cell, ...]] = [(gold, predicted, count) for (gold, predicted), count in confusion.counts.items() if count]
    rows += [(gold, None, count) for gold, count in confusion.missed.items()]
    rows += [(None, predicted, count) for predicted, count in confusion.spurious.items()]
    rows.sort(key=lambda row: (row[0] == row[1], -int(row[2] or 0), str(row[0]), str(row[1])))
    text = "Predicted types of entities with exactly the same words as a gold entity."
    if most_frequent := confusion.type_errors[:3]:
        pairs = ", ".join(f"{gold} predicted as {predicted} ({count:,})" for gold, predicted, count in most_frequent)
        text += f" Most frequent confusions: {pairs}."
    else:
        text += " No type was confused with another."
    plot = Plot(
        partial(confusion_figure, confusion, names),
        "Confusion matrix: rows are gold types, columns are predicted types. Numbers are counts, shades are shares of the row. "
        "Errors are off the diagonal; a wrong boundary counts as one missed and one spurious entity."
        + limit_note(MAX_CONFUSED_TYPES, len(names)),
    )
    table = Table(("gold", "predicted", "count"), tuple(rows), "Pairs of types")
    return Section("confusion", "Type confusions", text, {"counts": table}, {"matrix": plot})


def bucket_attributes(train: TrainIndex | None) -> tuple[list[str], list[str]]:
    """Return the attributes with published cuts or categories, and the numeric attributes.

    Attributes that need the training sentences are omitted without them.
    """
    available = {name: attribute for name, attribute in ATTRIBUTES.items() if train is not None or not attribute.needs_train}
    return (
        [name for name, attribute in available.items() if attribute.published_cuts or attribute.categories],
        [name for name, attribute in available.items() if not attribute.categories],
    )


PAPER_ATTRIBUTES = (
    " Attributes follow Eq. 23 of Bundling Learning for NER literally: label consistency is the share of train entities "
    "with the entity's type (23c), density the number of entities per word (23d)."
)


def buckets_section(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], train: TrainIndex | None, overall: float,
    *, use_paper_definition: bool = False,
) -> Section:  # fmt: skip
    """Show F1 by length, frequency, nesting and other attributes; ``overall`` is the F1 of all entities."""
    published_attributes, numeric_attributes = bucket_attributes(train)
    paired = pair(gold, predicted)
    score = partial(bucket_scores, gold, paired, train, use_paper_definition=use_paper_definition)
    published = {name: score(attribute=name) for name in published_attributes}
    equal = {name: score(attribute=name, cuts=DEFAULT_BUCKETS) for name in numeric_attributes}
    text = "F1 of groups of entities (“buckets”), by attributes of the entity and of its sentence."
    text += PAPER_ATTRIBUTES if use_paper_definition else ""
    if train is None:
        text += (
            " Attributes that need training data are omitted: label consistency, unknown words, occurrences in train, seen in "
            "train."
        )
    reading = (
        f"Bars are F1 with 95% bootstrap intervals (omitted if fewer than {MIN_UNITS} sentences have such entities); the "
        "dashed line is the overall F1. Below each bar: the values of the bucket and its number of gold entities."
    )
    return Section(
        "buckets",
        "F1 by entity attributes",
        text,
        {
            "published": _buckets_table(published, "Published buckets"),
            "equal": _buckets_table(equal, "Buckets of equal size"),
        },
        {
            "published": Plot(
                partial(buckets_figure, _with_several_buckets(published), TITLES, overall),
                f"F1 in the buckets of Bundling Learning for NER, Table 5. {reading}",
            ),
            "equal": Plot(
                partial(buckets_figure, _with_several_buckets(equal), TITLES, overall),
                f"F1 in buckets with equal numbers of gold entities. {reading}",
            ),
        },
    )


def lengths_section(errors: ErrorAnalysis, gold: Sequence[Sentence]) -> Section:
    """Show the lengths of gold and predicted entities, and of sentences."""
    gold_lengths, predicted_lengths = Counter[int](), Counter[int]()
    for match in errors.matches:
        for lengths, mention in ((gold_lengths, match.gold), (predicted_lengths, match.predicted)):
            if mention is not None:
                lengths[sum(span.width for span in mention.spans)] += 1
    sentence_lengths = Counter(len(sentence.words) for sentence in gold)
    tables = {
        "entities": Table(
            ("words", "gold", "predicted"),
            tuple(
                (length, gold_lengths[length], predicted_lengths[length]) for length in sorted(gold_lengths | predicted_lengths)
            ),
            "Entity lengths",
        ),
        "sentences": Table(("words", "sentences"), tuple(sorted(sentence_lengths.items())), "Sentence lengths"),
    }
    figures = {
        "entities": Plot(
            partial(entity_lengths_figure, gold_lengths, predicted_lengths),
            "Number of gold and predicted entities by length in words. Lower bars for predictions at large lengths mean that "
            "long entities are missed or cut short.",
        ),
        "sentences": Plot(partial(sentence_lengths_figure, sentence_lengths), "Number of gold sentences by length in words."),
    }
    text = "Lengths of gold entities compared with those of the predictions, and lengths of the sentences."
    return Section("lengths", "Lengths", text, tables, figures)


def _error_row(match: Match) -> tuple[Cell, ...]:
    def type_and_text(mention: Mention | None) -> tuple[Cell, Cell]:
        return (None, None) if mention is None else (mention.type, mention.text)

    score = match.predicted.score if match.predicted else None
    mentions = (*type_and_text(match.gold), *type_and_text(match.predicted))
    return (match.outcome, *mentions, score, match.sentence.id, match.sentence.text.strip())


def _errors_table(matches: Sequence[Match], title: str) -> Table:
    return Table(ERROR_COLUMNS, tuple(map(_error_row, matches)), title)


def _types_table(scores: Scores, title: str) -> Table:
    rows = tuple((type, *_cells(score)) for type, score in scores.types.items())
    return Table(("type", *SCORE_COLUMNS), rows, title, percentages=RATES)


def _buckets_table(attributes: Mapping[str, list[Bucket]], title: str) -> Table:
    rows = []
    for attribute, buckets in attributes.items():
        for bucket in buckets:
            low, high = (bucket.interval.low, bucket.interval.high) if bucket.interval else (None, None)
            rows.append((attribute, bucket.name, bucket.above, bucket.up_to, *_cells(bucket.score), low, high))
    return Table(BUCKET_COLUMNS, tuple(rows), title, percentages=(*RATES, "low", "high"))


def _with_several_buckets(attributes: Mapping[str, list[Bucket]]) -> dict[str, list[Bucket]]:
    """Return the attributes with entities in at least two buckets; all attributes if there is none."""
    several = {name: buckets for name, buckets in attributes.items() if sum(not bucket.is_empty for bucket in buckets) > 1}
    return several or dict(attributes)


def _cells(score: Score | Macro) -> tuple[Cell, ...]:
    values = score.to_json()
    if isinstance(score, RelaxedScore):
        values["correct"] = None  # it has two counts, in gold and in the predictions
    return tuple(values.get(name) for name in SCORE_COLUMNS)


def _as_sentences(notes: Sequence[str]) -> list[str]:
    return [f"{note[:1].upper()}{note[1:]}." for note in notes]
