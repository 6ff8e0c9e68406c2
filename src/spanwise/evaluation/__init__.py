"""Scores of any system's output against gold: works on sentences alone, whoever predicted them."""

from spanwise.evaluation.alignment import Pair
from spanwise.evaluation.attributes import ATTRIBUTES
from spanwise.evaluation.bootstrap import Interval, f1_interval
from spanwise.evaluation.buckets import Bucket, bucketed
from spanwise.evaluation.evaluation import Evaluation, evaluate
from spanwise.evaluation.pairing import Pairing, pair
from spanwise.evaluation.scores import Macro, Score, Scores
from spanwise.evaluation.significance import Comparison, compare
from spanwise.evaluation.table import print_evaluation
from spanwise.evaluation.threshold import at_least
from spanwise.evaluation.train_index import TrainIndex

__all__ = [
    "ATTRIBUTES", "Bucket", "Comparison", "Evaluation", "Interval", "Macro", "Pair", "Pairing", "Score", "Scores", "TrainIndex",
    "at_least", "bucketed", "compare", "evaluate", "f1_interval", "pair", "print_evaluation",
]  # fmt: skip
