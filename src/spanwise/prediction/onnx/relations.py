"""Relations between decoded entities in onnxruntime, as ``heads/relations.py`` predicts them in torch."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from spanwise.decoding.decode import Predictions
from spanwise.decoding.entity_pairs import MAX_PAIRED_ENTITIES, add_relations, all_pairs, entity_columns, highest_scores
from spanwise.decoding.thresholds import MinScore, lowest_threshold
from spanwise.encoders.subword_indexing import Arrays
from spanwise.prediction.onnx.graphs import Graph
from spanwise.prediction.onnx.record import RelationRecord

MAX_PAIRS = 1 << 16  # scored at a time


class RelationScorer:
    """Scores all pairs of a sentence's entities."""

    def __init__(self, graph: Graph, record: RelationRecord, types: Sequence[str]) -> None:
        self.graph, self.record = graph, record
        self.entity_index = {type: index for index, type in enumerate(types)}

    def cutoff(self, threshold: MinScore) -> float:
        """The threshold of relations: the default, or the lowest requested one of any relation type."""
        requested = lowest_threshold(threshold)
        return requested if 0 < requested < self.record.threshold else self.record.threshold

    def predict(self, predictions: Sequence[Predictions], arrays: Arrays, threshold: float) -> list[Predictions]:
        """Add the relations above a threshold to decoded entities; ``arrays`` are the inputs of the head's graph."""
        columns = entity_columns(predictions, self.entity_index)
        paired = highest_scores(columns[0], columns[4], MAX_PAIRED_ENTITIES)
        if not len(paired):
            return list(predictions)
        sentence, start, end, label = columns[:4, paired].astype(np.int64)
        entities = {"sentence": sentence, "start": start, "end": end, "label": label}
        first, second = all_pairs(np.bincount(sentence, minlength=len(predictions)))
        parts = []
        for low in range(0, len(first), MAX_PAIRS):
            pairs = {"pair_first": first[low : low + MAX_PAIRS], "pair_second": second[low : low + MAX_PAIRS]}
            outputs = self.graph.run({**arrays, **entities, **pairs})
            self.graph.check_pairs(outputs, len(pairs["pair_first"]), len(self.record.types))
            parts.append(outputs[0])
        logits = np.concatenate(parts)
        pair, relation = np.nonzero(logits > log(threshold / (1 - threshold)))
        scores = 1 / (1 + np.exp(-logits[pair, relation]))
        first, second = first[pair], second[pair]
        if self.record.has_joint_scores:
            entity_scores = columns[4, paired].astype(np.float32)
            scores = scores * entity_scores[first] * entity_scores[second]
            is_kept = scores > threshold
            first, second, relation, scores = (column[is_kept] for column in (first, second, relation, scores))
        return add_relations(predictions, paired[first], paired[second], relation, scores, self.record.types)
