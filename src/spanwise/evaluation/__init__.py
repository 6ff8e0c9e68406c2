"""Score any system's predictions against gold annotations."""

from spanwise.decoding.thresholds import apply_threshold
from spanwise.evaluation.alignment import SentencePair
from spanwise.evaluation.attributes import ATTRIBUTES
from spanwise.evaluation.bootstrap import Interval, f1_interval
from spanwise.evaluation.buckets import Bucket, bucket_scores
from spanwise.evaluation.calibration import Calibration, calibration
from spanwise.evaluation.differences import BucketDifference, bucket_differences, error_differences
from spanwise.evaluation.errors import ErrorAnalysis, analyze_errors
from spanwise.evaluation.evaluation import Evaluation, evaluate
from spanwise.evaluation.matching import ERROR_TYPES, OUTCOMES, Match
from spanwise.evaluation.pairing import Pairing, pair
from spanwise.evaluation.scores import Macro, Score, Scores
from spanwise.evaluation.significance import PairedTest, compare
from spanwise.evaluation.table import print_evaluation
from spanwise.evaluation.train_index import TrainIndex

__all__ = [
    "ATTRIBUTES", "ERROR_TYPES", "OUTCOMES", "Bucket", "BucketDifference", "Calibration", "ErrorAnalysis", "Evaluation",
    "Interval", "Macro", "Match", "PairedTest", "Pairing", "Score", "Scores", "SentencePair", "TrainIndex", "analyze_errors",
    "apply_threshold", "bucket_differences", "bucket_scores", "calibration", "compare", "error_differences", "evaluate",
    "f1_interval", "pair", "print_evaluation",
]  # fmt: skip
