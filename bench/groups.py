"""Scores of a table's rows (``bench/table.py``, rows with ``keep``) in groups, as Markdown; means over seeds.

    python bench/groups.py table.json --data DATA --rows litbank-locate-label litbank-spanner --splits dev test --lengths 5 7 9
    python bench/groups.py table.json --data DATA --rows conll04-global-pointer --longest 2 5 --density 0.1 0.3

``--lengths``: entities by their number of words; F1, then recall. ``--longest`` and ``--density``: whole
sentences, by the words of their longest entity and by the share of their words inside entities (Table 6
of GlobalPointer). The arguments are the highest values of all groups except the last.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from compare import outputs

from spanwise.core.types import Sentence
from spanwise.corpora.splits import open_splits
from spanwise.evaluation.buckets import bucket_scores
from spanwise.evaluation.scores import Score, Tally, entity_items

Runs = dict[str, list[list[Sentence]]]


def longest(sentence: Sentence) -> float:
    return max((sum(fragment.width for fragment in entity.fragments) for entity in sentence.entities), default=0)


def density(sentence: Sentence) -> float:
    inside = {word for entity in sentence.entities for fragment in entity.fragments for word in range(*fragment)}
    return len(inside) / max(len(sentence.words), 1)


def of_entities(gold: list[Sentence], predicted: list[Sentence], cuts: Sequence[float]) -> list[Score]:
    return [bucket.score for bucket in bucket_scores(gold, predicted, attribute="eLen", cuts=cuts)]


def of_sentences(
    gold: list[Sentence], predicted: list[Sentence], cuts: Sequence[float], measure: Callable[[Sentence], float]
) -> list[Score]:
    tallies = [Tally() for _ in range(len(cuts) + 1)]
    for expected, actual in zip(gold, predicted, strict=True):
        tallies[sum(measure(expected) > cut for cut in cuts)].add(entity_items(expected), entity_items(actual))
    return [tally.scores.micro for tally in tallies]


def names(cuts: Sequence[float]) -> list[str]:
    """Return the names of groups.

    >>> names([2, 5])
    ['≤ 2', '(2, 5]', '> 5']
    """
    middle = [f"({low:g}, {high:g}]" for low, high in pairwise(cuts)]
    return [f"≤ {cuts[0]:g}", *middle, f"> {cuts[-1]:g}"]


def table(
    title: str, runs: Runs, cuts: Sequence[float], score: Callable[[list[Sentence]], list[Score]], with_recall: bool
) -> None:
    scores = {name: [score(predicted) for predicted in runs_of_row] for name, runs_of_row in runs.items()}
    first = next(iter(scores.values()))[0]
    print(f"\n| {title} | " + " | ".join(names(cuts)) + " |\n|---|" + "---|" * len(first))
    print("| entities | " + " | ".join(f"{group.support:,}" for group in first) + " |")
    for name, runs_scores in scores.items():
        columns = [
            (fmean(score.f1 for score in group), fmean(score.recall for score in group))
            for group in zip(*runs_scores, strict=True)
        ]
        cells = [f"{100 * f1:.2f}" + (f" ({100 * recall:.1f})" if with_recall else "") for f1, recall in columns]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of corpora")
    parser.add_argument("--rows", nargs="+", required=True, metavar="NAME", help="rows of one corpus")
    parser.add_argument("--splits", nargs="+", default=["test"], help="splits with predictions")
    for option in ("--lengths", "--longest", "--density"):
        parser.add_argument(option, type=float, nargs="+")
    arguments = parser.parse_args()
    records = json.loads(arguments.table.read_text())
    corpora = {record["corpus"] for record in records if record["name"] in arguments.rows}
    if len(corpora) != 1:
        parser.error(f"expected rows of one corpus, found {sorted(corpora)}")
    splits = open_splits(arguments.data / corpora.pop())
    gold = [sentence for split in arguments.splits for sentence in splits[split]]
    runs = {name: outputs(records, name, gold, arguments.splits) for name in arguments.rows}
    if cuts := arguments.lengths:
        table("words of the entity: F1 (recall)", runs, cuts, lambda predicted: of_entities(gold, predicted, cuts), True)
    for measure, cuts in ((longest, arguments.longest), (density, arguments.density)):
        if cuts:
            groups = [sum(measure(sentence) > cut for cut in cuts) for sentence in gold]
            print(f"\n{measure.__name__}: " + ", ".join(f"{groups.count(n)} sentences" for n in range(len(cuts) + 1)))
            table(
                measure.__name__, runs, cuts,
                lambda predicted, cuts=cuts, measure=measure: of_sentences(gold, predicted, cuts, measure), False,
            )  # fmt: skip


if __name__ == "__main__":
    main()
