"""Scores of any system's output against gold: works on sentences alone, whoever predicted them."""

from spanwise.evaluation.alignment import Pair
from spanwise.evaluation.bootstrap import Interval, f1_interval
from spanwise.evaluation.evaluation import Evaluation, evaluate
from spanwise.evaluation.pairing import Pairing, pair
from spanwise.evaluation.scores import Macro, Score, Scores
from spanwise.evaluation.table import print_evaluation
from spanwise.evaluation.threshold import at_least

__all__ = [
    "Evaluation", "Interval", "Macro", "Pair", "Pairing", "Score", "Scores", "at_least", "evaluate", "f1_interval", "pair",
    "print_evaluation",
]  # fmt: skip
