"""The training sentences of a student: labelled and unlabelled text with the probabilities of its teachers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Entity, Relation, Sentence, Span
from spanwise.decoding.decode import Predictions
from spanwise.decoding.soft_nms import SoftNms
from spanwise.files.reading import read_json
from spanwise.files.writing import atomic_output
from spanwise.formats import Ledger
from spanwise.heads import head_class, head_settings, head_values
from spanwise.heads.abilities import LearnsProbabilities, find_ability
from spanwise.heads.base import Labels
from spanwise.inputs.sources import read_inputs
from spanwise.losses.teaching import TaughtSentence, decide_open_spans
from spanwise.models.model import Model
from spanwise.prediction.load import model_folder
from spanwise.prediction.windows import MAX_WORDS, split_into_windows
from spanwise.runs.folder import RunFolder
from spanwise.training.data import all_sentences
from spanwise.training.teachers import MIN_VOTE, Opinion, ask_teachers, to_spans

UNLABELLED = "unlabelled"  # the split of a corpus with the sentences without gold


def find_teachers(sources: Iterable[str | Path], recorded: Iterable[str] = ()) -> tuple[Path, ...]:
    """The model folders of teachers; of a folder of several runs, all of them.

    A resumed run does not need its ``recorded`` teachers any more, so their folders may be missing.
    """
    known = [Path(folder) for folder in recorded]
    folders: list[Path] = []
    for source in sources:
        folder = Path(source).absolute()
        missing = [] if folder.exists() else [teacher for teacher in known if folder in (teacher, *teacher.parents)]
        if not missing:
            folder = model_folder(source).absolute()
            runs = [] if RunFolder(folder).has_model else RunFolder(folder).runs()
            folders += [run.path for run in runs] or [folder]
        folders += missing
    return tuple(folders)


def add_unlabelled(corpus: Corpus, paths: Sequence[str], log: Callable[[str], None]) -> Corpus:
    """Add the split ``unlabelled``: the sentences of files in any format, without their annotations.

    Sentences of the corpus itself are skipped: those of train have gold, and the others must stay
    unseen. Longer ones than a model reads at once are split.
    """
    ledger = Ledger()
    known = {sentence.words for sentence in all_sentences(corpus)}
    read = [window for s in read_inputs(paths, None, ledger) if s.words for window in split_into_windows(s)]
    sentences = tuple(replace(s, entities=(), relations=(), links=(), annotated=None) for s in read if s.words not in known)
    for message, count in ledger.notes.items():
        log(f"note: {count:,} {message}")
    if skipped := len(read) - len(sentences):
        log(f"note: {skipped:,} unlabelled sentences are also in the data and are skipped")
    if not sentences:
        raise SpanwiseError(f"{', '.join(paths)}: no unlabelled sentences{' that are not in the data' * bool(skipped)}")
    return Corpus({**corpus.splits, UNLABELLED: sentences}, corpus.name)


def labelled(corpus: Corpus) -> Corpus:
    """The corpus without unlabelled sentences."""
    return Corpus({split: corpus[split] for split in corpus if split != UNLABELLED}, corpus.name)


def with_all_words(corpus: Corpus) -> Corpus:
    """The corpus with the unlabelled sentences in train, from which an encoder may learn words."""
    return Corpus({**corpus.splits, "train": (*corpus["train"], *corpus.splits.get(UNLABELLED, ()))}, corpus.name)


def check_student(student: Model, teachers: Sequence[str], *, has_unlabelled: bool) -> list[str]:
    """Raise an error if the teachers cannot teach the student; return notes on what it cannot learn from them.

    Reads only small files of the teachers.
    """
    if student.needs_spans:
        raise SpanwiseError("a model that types given spans cannot be distilled; train it with spanwise train")
    find_relations = [_check_teacher(Path(folder), student.labels) for folder in teachers]
    kind, notes = head_values(student.head)["kind"], []
    if student.head.finds_relations:
        if has_unlabelled and not any(find_relations):
            raise SpanwiseError(
                "no teacher predicts relations, and without them the student would learn that unlabelled text has none; "
                "add a teacher that predicts relations, or omit --unlabelled"
            )
        more = " and, in unlabelled text, from relations that most teachers predict" if has_unlabelled else " only"
        notes.append(f"relations are learned from gold{more}")
    if find_ability(student.head, LearnsProbabilities) is None:
        if not has_unlabelled:
            raise SpanwiseError(
                f"the head {kind} learns from labels, not from probabilities; pass --unlabelled TEXT to distill"
            )
        notes.append(
            f"the head {kind} learns from labels, not from probabilities: from gold in the data and, in unlabelled text, "
            f"from entities to which the teachers give {MIN_VOTE:g} or more"
        )
    return notes


def _check_teacher(folder: Path, labels: Labels) -> bool:
    """Check the files of a teacher and its types; return whether it predicts relations."""
    run = RunFolder(folder)
    if not run.weights_file.is_file() or not run.has_model:
        Model.load(folder)  # raises an error that explains what is missing
    head = run.read_config().head
    if head.get("task") == "typing":
        raise SpanwiseError(f"{folder}: types given spans and cannot teach a model that finds entities")
    known = Labels.from_json(read_json(run.labels_file), str(run.labels_file))
    if missing := [type for type in labels.entities if type not in known.entities]:
        listed = ", ".join(missing[:5]) + f" and {len(missing) - 5} more" * (len(missing) > 5)
        raise SpanwiseError(f"{folder}: does not know {listed}; a teacher must know all entity types of the training data")
    return head_class(str(head.get("kind"))).finds_relations or head_settings(head).relation_head is not None


class TeacherOutputs:
    """The opinions of teachers on the training and unlabelled sentences of a corpus.

    They are computed once and stored in the run folder until training is finished, so that a resumed
    run learns exactly the same and does not need the teachers. ``types`` are the types to which labels
    refer; by default, those of the student.
    """

    def __init__(self, opinions: Sequence[Opinion], teachers: Sequence[dict[str, Any]], types: Sequence[str] = ()) -> None:
        self.opinions, self.teachers, self.types = opinions, teachers, tuple(types)

    @classmethod
    def ask(
        cls, teachers: Sequence[str], student: Model, corpus: Corpus, device: str, log: Callable[[str], None]
    ) -> TeacherOutputs:  # fmt: skip
        """Ask the teachers, which ``check_student`` has checked."""
        folders, policy = [Path(folder) for folder in teachers], student.head.prediction_head.decoding
        with torch.random.fork_rng(devices=[]):  # the student's random numbers do not depend on its teachers
            opinions = ask_teachers(
                folders, student.labels, taught_sentences(corpus), context=all_sentences(corpus), device=device, log=log,
                policy=policy.policy if isinstance(policy, SoftNms) else policy,
            )  # fmt: skip
        return cls(opinions, [describe_teacher(folder) for folder in folders])

    def to_report(self, unlabelled: Sequence[str]) -> dict[str, Any]:
        """The teachers and the unlabelled text, for the report of the run."""
        return {"teachers": list(self.teachers), "unlabelled": list(unlabelled)}

    def write(self, path: Path) -> None:
        with atomic_output(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            header = {"teachers": self.teachers, "sentences": len(self.opinions), "types": self.types}
            file.write(json.dumps(header) + "\n")
            for opinion in self.opinions:
                file.write(json.dumps(_to_record(opinion)) + "\n")

    @classmethod
    def read(cls, path: Path, count: int) -> TeacherOutputs | None:
        """Read stored opinions; None if they are missing, damaged or of another number of sentences than ``count``."""
        try:
            with path.open(encoding="utf-8") as file:
                header = json.loads(next(file))
                opinions = [_from_record(json.loads(line)) for line in file]
        except (OSError, StopIteration, ValueError, KeyError, TypeError):
            return None
        return cls(opinions, header["teachers"], header.get("types", ())) if len(opinions) == count else None

    def sentences(self, corpus: Corpus, student: Model) -> list[Sentence]:
        """The training sentences with the opinions on them, then the unlabelled ones with pseudo-labels."""
        opinions = iter(self.opinions)
        train = [_teach(sentence, next(opinions), student) if is_short(sentence) else sentence for sentence in corpus["train"]]
        unlabelled = [
            TaughtSentence.teach(replace(sentence, **opinion.predictions._asdict()), opinion.spans, 0.0)
            for sentence, opinion in zip(corpus.splits.get(UNLABELLED, ()), opinions, strict=True)
        ]
        return [*train, *unlabelled]


def _teach(sentence: Sentence, opinion: Opinion, student: Model) -> TaughtSentence:
    """Add the opinion of teachers; a student that learns probabilities takes theirs where the sentence is open."""
    spans, gold_weight = opinion.spans, student.config.training.gold_weight
    # The other parts of a wrapper, such as relations, learn no probabilities and need the marks.
    if sentence.annotated is not None and isinstance(student.head, LearnsProbabilities):
        spans = decide_open_spans(sentence, spans, gold_weight, student.labels.entities)
        sentence = replace(sentence, annotated=None)
    return TaughtSentence.teach(sentence, spans, gold_weight)


def describe_teacher(folder: Path) -> dict[str, Any]:
    """What a report says about a teacher; the digest identifies its weights."""
    config = RunFolder(folder).read_config()
    with RunFolder(folder).weights_file.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return {"path": str(folder), "recipe": config.recipe, "encoder": config.encoder, "weights": digest}


def taught_sentences(corpus: Corpus) -> list[Sentence]:
    """The sentences on which teachers are asked: training sentences that fit a window, and unlabelled ones."""
    return [*filter(is_short, corpus["train"]), *corpus.splits.get(UNLABELLED, ())]


def is_short(sentence: Sentence) -> bool:
    """Whether teachers are asked about a sentence: it fits their window."""
    return len(sentence.words) <= MAX_WORDS


def _to_record(opinion: Opinion) -> dict[str, Any]:
    entities, relations = opinion.predictions
    return {
        "spans": list(zip(*(column.tolist() for column in opinion.spans), strict=True)),
        "entities": [(entity.type, entity.fragments, entity.score) for entity in entities],
        "relations": [(relation.type, relation.head, relation.tail) for relation in relations],
    }


def _from_record(record: dict[str, Any]) -> Opinion:
    entities = (
        Entity(type, tuple(Span(*fragment) for fragment in fragments), score) for type, fragments, score in record["entities"]
    )
    relations = (Relation(*values) for values in record["relations"])
    return Opinion(to_spans([tuple(row) for row in record["spans"]]), Predictions(tuple(entities), tuple(relations)))
