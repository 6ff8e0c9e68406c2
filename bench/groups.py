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
from sentence_groups import density, longest, score_groups

from spanwise.core.types import Sentence
from spanwise.corpora.splits import open_splits
from spanwise.evaluation.buckets import bucket_scores
from spanwise.evaluation.scores import Score

Runs = dict[str, list[list[Sentence]]]
Measure = Callable[[Sentence], float]


def of_entities(gold: list[Sentence], predicted: list[Sentence], cuts: Sequence[float]) -> list[Score]:
    return [bucket.score for bucket in bucket_scores(gold, predicted, attribute="eLen", cuts=cuts)]


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

            def score(predicted: list[Sentence], measure: Measure = measure, cuts: list[float] = cuts) -> list[Score]:
                return [score for score, _ in score_groups(gold, predicted, measure, cuts)]

            counts = [count for _, count in score_groups(gold, gold, measure, cuts)]
            print(f"\n{measure.__name__}: " + ", ".join(f"{count} sentences" for count in counts))
            table(measure.__name__, runs, cuts, score, False)


if __name__ == "__main__":
    main()
