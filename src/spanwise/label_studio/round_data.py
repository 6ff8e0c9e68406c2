"""The training data of a round: the base data and the collected annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.other_words import without_whitespace
from spanwise.core.partial import known_types
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.corpora.splits import ensure_dev_split, read_corpus
from spanwise.files.reading import read_json
from spanwise.formats import Ledger
from spanwise.label_studio.base_sentences import find_base_sentences, move_entities
from spanwise.label_studio.collection import Change, read_sentences
from spanwise.label_studio.rounds import RoundRequest
from spanwise.runs.folder import RunFolder

DEV_SHARE = 5  # without base data, about one of this many tasks is dev


def round_corpus(request: RoundRequest, log: Callable[[str], None]) -> Corpus:
    """Return train and dev. Dev is the same in all rounds, so that their models can be compared.

    The dev split of the base data is used unchanged. Without base data, about a fifth of the tasks is
    dev, chosen by a hash of their number. A collected sentence that is also in dev or test of the base
    data is not used for training. One that is in train replaces it, because it is a correction; what
    Label Studio did not show there stays.
    """
    ledger = Ledger()
    documents = list(read_sentences(Path(request.annotations), request.changes, ledger))
    for note in ledger.note_lines:
        log(f"note: {note}")
    if ledger.lost:
        log(f"dropped from the annotations: {ledger}")
    if request.data is None:
        return _split_tasks(documents, model_types(Path(request.model)))
    base, note = ensure_dev_split(read_corpus(request.data))
    log(note or f"base data: {request.data}")
    return _join(base, documents, log)


def _join(base: Corpus, documents: Sequence[tuple[Change, list[Sentence]]], log: Callable[[str], None]) -> Corpus:
    """Add the annotated tasks to the base data. Its sentences are recognised by their text, not by their words."""
    types = {entity.type for sentence in base["train"] for entity in sentence.entities}
    held_out = {without_whitespace(sentence.text) for split in ("dev", "test") if split in base for sentence in base[split]}
    originals = {without_whitespace(sentence.text): sentence for sentence in base["train"]}
    known = originals.keys() | held_out
    longest = max(map(len, known), default=0)
    used: list[Sentence] = []
    corrected: set[str] = set()
    skipped = 0
    for change, sentences in documents:
        for text, part in find_base_sentences(sentences, known, longest):
            if text in held_out:
                skipped += len(part)
                continue
            marked = [_mark_partial(sentence, change.types, types) for sentence in part]
            if text is not None:
                corrected.add(text)
                original = originals[text]
                moved = zip(marked, move_entities(original, marked), strict=True)
                marked = [_keep_hidden(sentence, original, entities) for sentence, entities in moved]
            used += marked
    train = [sentence for sentence in base["train"] if without_whitespace(sentence.text) not in corrected]
    log(
        f"training on {counted(len(train), 'sentence')} of the base data and {len(used):,} collected; "
        f"{len(base['train']) - len(train):,} replaced, {skipped:,} skipped because they are in dev or test"
    )
    return Corpus({"train": (*train, *used), "dev": base["dev"]})


def _split_tasks(documents: Sequence[tuple[Change, list[Sentence]]], types: set[str]) -> Corpus:
    """Split the annotated tasks into train and dev.

    A label that no annotation in train has yet is not marked as annotated, because the model would forget it.
    """
    parts = [("dev" if _is_dev(change.document) else "train", change, sentences) for change, sentences in documents]
    used = {entity.type for name, _, part in parts if name == "train" for sentence in part for entity in sentence.entities}
    splits: dict[str, list[Sentence]] = {"train": [], "dev": []}
    for name, change, sentences in parts:
        marks = None if types <= set(change.types) else tuple(sorted(used.intersection(change.types)))
        if marks != ():  # otherwise nothing is known about these sentences
            splits[name] += [replace(sentence, annotated=marks) for sentence in sentences]
    if not all(any(sentence.entities for sentence in split) for split in splits.values()):
        raise SpanwiseError("not enough annotations: without --learn-data, train and dev are split from them by task")
    return Corpus({name: tuple(split) for name, split in splits.items()})


def model_types(folder: Path) -> set[str]:
    """The entity types of a run folder."""
    return set(read_json(RunFolder(folder).labels_file).get("entities", ()))


def _mark_partial(sentence: Sentence, annotated: Iterable[str], types: set[str]) -> Sentence:
    """Mark a sentence of a project without labels for some types: these may occur in it."""
    labels = sorted(set(annotated))
    return sentence if types <= set(labels) else replace(sentence, annotated=tuple(labels))


def _keep_hidden(sentence: Sentence, original: Sentence, moved: Sequence[Entity | None]) -> Sentence:
    """Keep what a project cannot show of the original: types without a label, discontinuous entities, their relations.

    ``moved`` are the entities of the original over the words of the sentence.
    """
    labels = known_types(sentence)
    hidden = {
        new: None
        for old, new in zip(original.entities, moved, strict=True)
        if new is not None and (old.is_discontinuous or (labels is not None and old.type not in labels))
    }
    entities = (*sentence.entities, *(entity for entity in hidden if entity not in sentence.entities))
    index = {entity: position for position, entity in enumerate(entities)}
    ends = [(relation, moved[relation.head], moved[relation.tail]) for relation in original.relations]
    relations = [
        replace(relation, head=index[head], tail=index[tail])
        for relation, head, tail in ends
        if head in index and tail in index and (head in hidden or tail in hidden)
    ]
    annotated = None if original.annotated is None else sentence.annotated
    return replace(sentence, entities=entities, relations=(*sentence.relations, *relations), annotated=annotated)


def _is_dev(document: str) -> bool:
    return sha256(document.encode()).digest()[0] % DEV_SHARE == 0
