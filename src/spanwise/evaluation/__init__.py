"""Scores of any system's output against gold: works on sentences alone, whoever predicted them."""

from spanwise.decoding.thresholds import apply_threshold
from spanwise.evaluation.alignment import Pair
from spanwise.evaluation.attributes import ATTRIBUTES
from spanwise.evaluation.bootstrap import Interval, f1_interval
from spanwise.evaluation.buckets import Bucket, bucketed
from spanwise.evaluation.calibration import Calibration, calibration
from spanwise.evaluation.differences import BucketDifference, bucket_differences, error_differences
from spanwise.evaluation.errors import Errors, errors
from spanwise.evaluation.evaluation import Evaluation, evaluate
from spanwise.evaluation.judging import KINDS, MISTAKES, Judgement
from spanwise.evaluation.pairing import Pairing, pair
from spanwise.evaluation.scores import Macro, Score, Scores
from spanwise.evaluation.significance import Comparison, compare
from spanwise.evaluation.table import print_evaluation
from spanwise.evaluation.train_index import TrainIndex

__all__ = [
    "ATTRIBUTES", "KINDS", "MISTAKES", "Bucket", "BucketDifference", "Calibration", "Comparison", "Errors", "Evaluation",
    "Interval", "Judgement", "Macro", "Pair", "Pairing", "Score", "Scores", "TrainIndex", "apply_threshold",
    "bucket_differences", "bucketed", "calibration", "compare", "error_differences", "errors", "evaluate", "f1_interval",
    "pair", "print_evaluation",
]  # fmt: skip
