"""Statistics of the two stages of a trained ``locate-label`` model, as JSON.

    python bench/locate.py RUN DATA [--splits dev test] [--device cuda] [--json FILE]

``entities_per_sentence`` and ``classified_per_sentence``: gold entities, and spans that reach the second
stage. ``filter_recall``: the share of gold spans for which a seed with enough overlap passed the filter.
``located``: the share of gold spans that the regressor hit exactly. ``offsets``: the number of words by
which it moved the start and the end of the predicted entities (figure 3 of the paper sums both, without
signs). ``by_length``: scores of the entities of 1, 2, … words (table 2) and of three groups (table 3).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

import spanwise
from spanwise.batching.batches import to_device
from spanwise.batching.plan import plan
from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import ensure_dev_split, read_corpus
from spanwise.evaluation.buckets import bucket_scores
from spanwise.heads.locate_label import LocateLabel
from spanwise.heads.locate_parts import Proposals, Text
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.spans.matching import match_spans

LONGEST = 20  # lengths with a separate row, as in table 2


def stages(model: Model, sentences: list[Sentence], everything: list[Sentence]) -> dict[str, Any]:
    """Count the spans of both stages and the offsets."""
    head = model.head.prediction_head.configured_head
    if not isinstance(head, LocateLabel):
        raise SystemExit("expected a locate-label model")
    device = next(model.parameters()).device
    prepared = model.encoder.prepare(sentences, everything)
    costs = np.array([model.encoder.cost(item) for item in prepared], np.int64)
    counts, starts, ends = Counter[str](), Counter[int](), Counter[int]()
    with torch.inference_mode():
        for numbers in plan(costs, 64, None, None):
            chosen = [sentences[number] for number in numbers]
            states = model.encoder(to_device(model.encoder.collate([prepared[number] for number in numbers]), device))
            targets = to_device(head.targets(chosen, gold=False), device)
            proposals, scored = head.propose(Text.of(states), targets), head.score(states, targets)
            counts.update(count_located(head, proposals, chosen))
            is_predicted = scored.score > head.settings.threshold
            for histogram, before, after in (
                (starts, proposals.seeds.start, proposals.spans.start),
                (ends, proposals.seeds.end, proposals.spans.end),
            ):
                histogram.update((after - before)[is_predicted].tolist())
    total, entities = counts["sentences"], max(counts["entities"], 1)
    return {
        **counts,
        "entities_per_sentence": counts["entities"] / total,
        "classified_per_sentence": counts["classified"] / total,
        "classified_per_entity": counts["classified"] / entities,
        "filter_recall": counts["passed"] / entities,
        "located_recall": counts["located"] / entities,
        "offsets": {"start": dict(sorted(starts.items())), "end": dict(sorted(ends.items()))},
        "figure_3": figure_3(starts + ends),
    }


def count_located(head: LocateLabel, proposals: Proposals, sentences: list[Sentence]) -> dict[str, int]:
    """Count the spans of both stages; the counts can be added over batches.

    Of ``entities`` (distinct gold spans), ``passed`` have a proposal after the filter and ``located`` are
    matched exactly after the regressor. ``classified`` is the number of spans in stage 2.
    """
    gold = head.targets(sentences, gold=True)["gold"].to(proposals.passed.device)
    before, after = match_spans(proposals.seeds, gold), match_spans(proposals.spans, gold)
    return {
        "sentences": len(sentences),
        "entities": sum(len({entity.fragments for entity in sentence.entities}) for sentence in sentences),
        "classified": len(proposals.seeds.start),
        "passed": len(set(before.gold_index[before.overlap > head.settings.positive_overlap].tolist())),
        "located": len(set(after.gold_index[(after.overlap == 1) & proposals.passed].tolist())),
    }


def figure_3(offsets: Counter[int]) -> dict[str, int]:
    """Count the boundaries that were moved by 0, 1, 2, 3 and 4 or more words.

    >>> figure_3(Counter({-1: 2, 1: 3, 0: 4, 7: 1}))
    {'0': 4, '1': 5, '2': 0, '3': 0, '>=4': 1}
    """
    bars: Counter[int] = Counter()
    for offset, count in offsets.items():
        bars[min(abs(offset), 4)] += count
    return {">=4" if distance == 4 else str(distance): bars[distance] for distance in range(5)}


def by_length(gold: list[Sentence], predicted: list[Sentence]) -> dict[str, Any]:
    """Score entities by length, and in the groups of table 3."""
    groups = {"lengths": list(range(1, LONGEST)), "groups": [4, 9]}
    return {
        name: [bucket.to_json() for bucket in bucket_scores(gold, predicted, attribute="eLen", cuts=cuts)]
        for name, cuts in groups.items()
    }


def pooled(corpus: Corpus, splits: list[str]) -> list[Sentence]:
    return [sentence for split in splits for sentence in corpus[split]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", nargs="+", default=["dev"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    corpus, _ = ensure_dev_split(read_corpus(arguments.data))
    model = Model.load(arguments.run).to(arguments.device)
    sentences, everything = pooled(corpus, arguments.splits), pooled(corpus, list(corpus))
    predicted = list(predict(model, sentences, context=everything))
    result = {
        "run": str(arguments.run), "data": str(arguments.data), "splits": arguments.splits, "version": spanwise.__version__,
        **stages(model, sentences, everything), "by_length": by_length(sentences, predicted),
    }  # fmt: skip
    text = json.dumps(result, indent=1)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
