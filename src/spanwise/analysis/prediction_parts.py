"""What predictions alone can tell: scores, mistakes, buckets and lengths, whichever system made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from spanwise.analysis.figures.buckets import buckets_figure
from spanwise.analysis.figures.confusion import confusion_figure
from spanwise.analysis.figures.errors import errors_figure
from spanwise.analysis.figures.lengths import entity_lengths_figure, sentence_lengths_figure
from spanwise.analysis.figures.scores import scores_figure
from spanwise.analysis.part import Cell, Part, Table
from spanwise.core.types import Sentence
from spanwise.evaluation.attributes import ATTRIBUTES
from spanwise.evaluation.bootstrap import FEWEST
from spanwise.evaluation.buckets import PARTS, Bucket, bucketed
from spanwise.evaluation.errors import Errors
from spanwise.evaluation.evaluation import Evaluation
from spanwise.evaluation.judging import KINDS, MISTAKES, Claim, Judgement
from spanwise.evaluation.pairing import pair
from spanwise.evaluation.relaxed import RelaxedScore
from spanwise.evaluation.scores import Macro, Score, Scores
from spanwise.evaluation.train_index import TrainIndex
from spanwise.evaluation.typing import Typing

SCORE = ("precision", "recall", "f1", "support", "predicted", "correct")
TITLES = {
    "eLen": "words of the entity",
    "tLen": "words of the sentence",
    "eCon": "label consistency",
    "eDen": "share of entity words",
    "oDen": "share of unknown words",
    "frequency": "occurrences in train",
    "seen": "entity in train",
    "nesting": "nesting",
    "discontinuous": "fragments",
}


def scores_part(evaluation: Evaluation) -> Part:
    """Precision, recall and F1: of each type, and of all entities in several senses."""
    strict = evaluation.entities
    named: dict[str, Score | Macro | None] = {
        "micro": strict.micro, "macro": strict.macro, "unlabelled": evaluation.unlabelled, "relaxed": evaluation.relaxed,
        "discontinuous": evaluation.discontinuous, "nested": evaluation.nested,
        "unseen sentences": evaluation.unseen.score if evaluation.unseen else None,
    }  # fmt: skip
    tables = {
        "summary": Table(("measure", *SCORE), tuple((name, *_cells(score)) for name, score in named.items() if score)),
        "types": _types_table(strict),
    }
    if evaluation.relations is not None:
        tables["relations"] = _types_table(evaluation.relations.strict)
    interval = evaluation.interval
    if interval is not None:
        row = (strict.micro.f1, interval.low, interval.high, interval.level, interval.resamples, interval.seed)
        tables["interval"] = Table(("f1", "low", "high", "level", "resamples", "seed"), (row,))
    text = "An entity is right when its type and all its words are."
    if interval is not None:
        text += (
            f" With other sentences of the kind, micro F1 would lie between {100 * interval.low:.1f} and "
            f"{100 * interval.high:.1f} in {interval.level:.0%} of cases."
        )
    draw = partial(scores_figure, strict.types, strict.micro)

    return Part("scores", "Scores", " ".join([text, *_as_sentences(evaluation.notes)]), tables, {"types": draw})


def typing_part(typing: Typing) -> Part:
    """The accuracy of a model that types given spans."""
    rows = [("all types", typing.every), *typing.types.items()]
    if typing.lookup is not None:
        rows.insert(1, ("looked up in train", typing.lookup))
    columns = ("type", "accuracy", "correct", "entities")
    table = Table(columns, tuple((name, own.accuracy, own.correct, own.entities) for name, own in rows))
    text = "The spans were given; a span is right when its type is."
    return Part("scores", "Scores", " ".join([text, *_as_sentences(typing.notes)]), {"types": table})


def errors_part(errors: Errors) -> Part:
    """How many mistakes of each kind there are, all of them, the surest ones and the commonest."""
    published = {"boundary": errors.published_rates["boundary"], "type": errors.published_rates["type"]}
    kinds = tuple((kind, errors.counts[kind], errors.rates.get(kind), published.get(kind)) for kind in KINDS)
    by_type: dict[str, Counter[str]] = {}
    for judgement in errors.judgements:
        claim = judgement.gold or judgement.claim
        by_type.setdefault(claim.type, Counter())[judgement.kind] += 1
    commonest = sorted(by_type, key=lambda name: (-by_type[name].total(), name))
    tables = {
        "kinds": Table(("kind", "count", "rate", "published_rate"), kinds),
        "types": Table(
            ("type", "correct", "wrong_type", *KINDS[2:]),
            tuple((type, *(by_type[type][kind] for kind in KINDS)) for type in commonest),
        ),
        "mistakes": _mistakes_table(errors.mistakes),
        "most_confident": _mistakes_table(errors.most_confident()),
        "confused_strings": Table(
            ("count", *_MISTAKE),
            tuple((string.count, *_mistake(string.example)) for string in errors.confused_strings()),
        ),
    }
    wrong = sum(errors.counts[kind] for kind in MISTAKES)
    worst = max(MISTAKES, key=lambda kind: errors.counts[kind])
    said = f"{wrong:,} mistakes" + (f", most of them of the kind “{worst}” ({errors.counts[worst]:,})." if wrong else ".")
    text = (
        f"{said} A wrong prediction is counted with the gold entity that it could be mended into: “type” has its words, "
        "“boundary” its type and some of its words, “both” only some of its words. What has no such partner is “spurious” if "
        "predicted and “missed” if not. Rates are over all false positives and false negatives (Eq. 24 of Bundling Learning)."
    )
    if not errors.has_scores:
        text += " The predictions have no scores, so that the most confident mistakes are not known."
    draw = partial(errors_figure, errors.counts, by_type, commonest)

    return Part("errors", "Mistakes", text, tables, {"kinds": draw})


def confusion_part(errors: Errors, types: Sequence[str]) -> Part:
    """Gold types against predicted types."""
    confusion = errors.confusion
    names = list(
        dict.fromkeys((*types, *(t for pair in confusion.counts for t in pair), *confusion.missed, *confusion.spurious))
    )
    rows: list[tuple[Cell, ...]] = [(gold, found, count) for (gold, found), count in confusion.counts.items() if count]
    rows += [(gold, None, count) for gold, count in confusion.missed.items()]
    rows += [(None, found, count) for found, count in confusion.spurious.items()]
    rows.sort(key=lambda row: (row[0] == row[1], -int(row[2] or 0), str(row[0]), str(row[1])))
    text = (
        "Rows are gold types, columns what was predicted for the very same words; a row's shades are shares of its type. Wrong "
        "boundaries count as missed and as spurious."
    )
    if worst := confusion.mistakes[:3]:
        pairs = ", ".join(f"{gold} taken for {found} ({count:,})" for gold, found, count in worst)
        text += f" Most often: {pairs}."
    draw = partial(confusion_figure, confusion, names)

    table = Table(("gold", "predicted", "count"), tuple(rows))
    return Part("confusion", "Types taken for others", text, {"counts": table}, {"matrix": draw})


BUCKET = ("attribute", "bucket", "above", "up_to", *SCORE, "low", "high")


def asked_attributes(train: TrainIndex | None) -> tuple[list[str], list[str]]:
    """The attributes with published cuts or categories, and those with numbers, which buckets of equal size can divide.

    Without training sentences, some cannot be asked.
    """
    known = {name: kind for name, kind in ATTRIBUTES.items() if train is not None or not kind.needs_train}
    return (
        [name for name, kind in known.items() if kind.published or kind.categories],
        [name for name, kind in known.items() if not kind.categories],
    )


def buckets_part(gold: Sequence[Sentence], predicted: Sequence[Sentence], train: TrainIndex | None, overall: float) -> Part:
    """F1 of short and long, rare and frequent, nested and flat entities; ``overall`` is that of all."""
    with_cuts, with_numbers = asked_attributes(train)
    paired = pair(gold, predicted)
    published = {name: bucketed(gold, paired, train, attribute=name) for name in with_cuts}
    equal = {name: bucketed(gold, paired, train, attribute=name, cuts=PARTS) for name in with_numbers}
    text = (
        f"F1 of the entities whose attribute lies in a bucket, with its 95% bootstrap interval where {FEWEST} sentences or "
        "more have such; below a bar, its values and the gold entities in it. The dashed line is the F1 of all. First with the "
        "published cuts, then in buckets of equal size."
    )
    if train is None:
        text += (
            " Without training data, what depends on it is left out: label consistency, unknown words, frequency, seen or not."
        )
    return Part(
        "buckets",
        "Where it is good and where not",
        text,
        {"published": _buckets_table(published), "equal": _buckets_table(equal)},
        {
            "published": partial(buckets_figure, _worth_drawing(published), TITLES, overall),
            "equal": partial(buckets_figure, _worth_drawing(equal), TITLES, overall),
        },
    )


def lengths_part(errors: Errors, gold: Sequence[Sentence]) -> Part:
    """How long entities are in gold and as predicted, and how long sentences are."""
    sides = {"gold": Counter[int](), "predicted": Counter[int]()}
    for judgement in errors.judgements:
        for side, claim in (("gold", judgement.gold), ("predicted", judgement.predicted)):
            if claim is not None:
                sides[side][sum(span.width for span in claim.spans)] += 1
    sentences = Counter(len(sentence.words) for sentence in gold)
    tables = {
        "entities": Table(
            ("words", "gold", "predicted"),
            tuple((n, sides["gold"][n], sides["predicted"][n]) for n in sorted(sides["gold"] | sides["predicted"])),
        ),
        "sentences": Table(("words", "sentences"), tuple(sorted(sentences.items()))),
    }
    figures = {
        "entities": partial(entity_lengths_figure, sides["gold"], sides["predicted"]),
        "sentences": partial(sentence_lengths_figure, sentences),
    }
    text = "A system that shuns long entities, or runs on over their ends, shows it here."
    return Part("lengths", "Lengths", text, tables, figures)


_MISTAKE = ("kind", "gold_type", "gold_text", "predicted_type", "predicted_text", "score", "sentence", "text")


def _mistake(judgement: Judgement) -> tuple[Cell, ...]:
    def named(claim: Claim | None) -> tuple[Cell, Cell]:
        return (None, None) if claim is None else (claim.type, claim.text)

    score = judgement.predicted.score if judgement.predicted else None
    sentence = judgement.sentence
    return (judgement.kind, *named(judgement.gold), *named(judgement.predicted), score, sentence.id, sentence.text.strip())


def _mistakes_table(judgements: Sequence[Judgement]) -> Table:
    return Table(_MISTAKE, tuple(map(_mistake, judgements)))


def _types_table(scores: Scores) -> Table:
    return Table(("type", *SCORE), tuple((type, *_cells(score)) for type, score in scores.types.items()))


def _buckets_table(buckets: Mapping[str, list[Bucket]]) -> Table:
    rows = []
    for attribute, own in buckets.items():
        for bucket in own:
            low, high = (bucket.interval.low, bucket.interval.high) if bucket.interval else (None, None)
            rows.append((attribute, bucket.name, bucket.above, bucket.up_to, *_cells(bucket.score), low, high))
    return Table(BUCKET, tuple(rows))


def _worth_drawing(buckets: Mapping[str, list[Bucket]]) -> dict[str, list[Bucket]]:
    """The attributes of which two buckets or more have entities; without any, all."""
    several = {name: own for name, own in buckets.items() if sum(not bucket.is_empty for bucket in own) > 1}
    return several or dict(buckets)


def _cells(score: Score | Macro) -> tuple[Cell, ...]:
    values = score.to_json()
    if isinstance(score, RelaxedScore):
        values["correct"] = None  # two counts are right, that of gold and that of the predictions
    return tuple(values.get(name) for name in SCORE)


def _as_sentences(notes: Sequence[str]) -> list[str]:
    return [f"{note[:1].upper()}{note[1:]}." for note in notes]
