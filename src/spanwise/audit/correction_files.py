"""Suggestions as annotated sentences that a person corrects in an annotation tool, and the way back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from spanwise.audit.corrections import SentenceKeys, apply_suggestions
from spanwise.audit.suggestions import Suggestion
from spanwise.core.errors import SpanwiseError
from spanwise.core.other_words import move_entity, without_whitespace, word_places
from spanwise.core.types import Entity, Sentence
from spanwise.files.names import default_id
from spanwise.formats import Ledger, detect, read
from spanwise.formats.brat_writer import file_name
from spanwise.formats.label_studio import read_task
from spanwise.formats.label_studio_tasks import tasks

MODEL_VERSION = "spanwise audit"  # of the predictions in Label Studio


def sentences_to_correct(
    keys: SentenceKeys, suggestions: Sequence[Suggestion], format: str
) -> Iterator[Sentence]:  # fmt: skip
    """The sentences with suggestions, each once, as separate documents with the suggestions applied.

    In Label Studio, the keys ``sentence`` and ``audit`` of a task's data name the sentence and say what was
    changed. In brat, each changed entity has the same text as a note. Spurious entities then stay, with a
    note, because there is no other place to show them.
    """
    groups: defaultdict[str, list[Suggestion]] = defaultdict(list)
    for item in suggestions:
        groups[item.sentence].append(item)
    has_notes = format == "brat"
    for key, items in groups.items():
        sentence = keys[key][1]
        applied = [item for item in items if not (has_notes and item.kind == "spurious")]
        notes = {item.suggestion or item.gold: describe(item, sentence) for item in items}
        entities = [
            replace(entity, score=None, extra=_note(notes[entity]) if has_notes and entity in notes else None)
            for entity in apply_suggestions({key: keys[key]}, applied).get(key, sentence.entities)
        ]
        data = {"sentence": key, "audit": "; ".join(describe(item, sentence) for item in items)}
        extra = {"data": data, "prediction": {"model_version": MODEL_VERSION}} if format == "label_studio" else None
        yield Sentence(key, sentence.words, tuple(entities), text=sentence.text, starts=sentence.starts, extra=extra)


def _note(text: str) -> Mapping[str, object]:
    return {"notes": [{"type": "AnnotatorNotes", "text": text}]}


def describe(item: Suggestion, sentence: Sentence) -> str:
    """A suggestion in words.

    >>> sentence = Sentence("s", ("in", "Oslo"))
    >>> describe(Suggestion("s", "missing", None, Entity("Place", ((1, 2),)), 0.9, {}), sentence)
    'missing (0.90): Place “Oslo”'
    """
    names = [f"{entity.type} “{sentence.text_of(entity)}”" for entity in (item.gold, item.suggestion) if entity is not None]
    return f"{item.kind} ({item.score:.2f}): {' → '.join(names)}"


def read_corrected(path: Path, keys: SentenceKeys, ledger: Ledger) -> dict[str, tuple[Entity, ...]]:
    """Read corrected sentences in any format; return their entities over the words of the data.

    The sentences may have other words, if the tool stores characters. Tasks of Label Studio without an
    annotation are skipped: nobody has looked at them. Discontinuous entities of the data stay if the format
    has none, as in Label Studio: nobody could see them.
    """
    format = detect(path)
    hides_discontinuous = "discontinuous" not in format.supports
    finder = _SentenceFinder(keys, path)
    entities: dict[str, list[Entity]] = {}
    for sentence in _read_submitted(path, ledger) if format.name == "label_studio" else read(path, format.name, ledger):
        key = finder.find_key(sentence)
        original = keys[key][1]
        hidden = [entity for entity in original.entities if hides_discontinuous and entity.is_discontinuous]
        corrected = entities.setdefault(key, hidden)
        corrected += [entity for entity in _translate(sentence, original) if entity not in corrected]
    return {key: tuple(values) for key, values in entities.items()}


def _read_submitted(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """Read the tasks of Label Studio that have an annotation. Others have predictions of any model, or nothing."""
    for number, (line, task) in enumerate(tasks(path)):
        if task.get("annotations") or task.get("completions"):
            yield from read_task(task, default_id(path, number), path, line, ledger)
        else:
            ledger.note("tasks without a submitted annotation, not changed")


class _SentenceFinder:
    """Index of the sentences of the data, to find that of a corrected sentence by its id or else by its text."""

    def __init__(self, keys: SentenceKeys, path: Path) -> None:
        self._keys, self._path = keys, path
        self._by_text: defaultdict[str, list[str]] = defaultdict(list)
        self._by_file: defaultdict[str, list[str]] = defaultdict(list)  # brat names files after the ids
        for key, (_, sentence) in keys.items():
            self._by_text[without_whitespace(sentence.text)].append(key)
            self._by_file[file_name(key)].append(key)

    def find_key(self, sentence: Sentence) -> str:
        data, document = (sentence.extra or {}).get("data"), sentence.document
        named = data.get("sentence") if isinstance(data, Mapping) else None
        for key in (named, document, sentence.id, *self._by_file.get(document or "", ())):
            if isinstance(key, str) and key in self._keys and _is_part(sentence, self._keys[key][1]):
                return key
        matching = self._by_text.get(without_whitespace(sentence.text), [])
        if len(matching) == 1:
            return matching[0]
        problem = "several sentences of the data have its text" if matching else "the data has no such sentence"
        raise SpanwiseError(f"{self._path}: {sentence.id}: {problem}; keep ids and texts of the audit's files")


def _is_part(sentence: Sentence, original: Sentence) -> bool:
    """Whether a sentence is the original or a piece of its text."""
    return _is_whole(sentence, original) or original.text.startswith(sentence.text.rstrip(), sentence.start or 0)


def _is_whole(sentence: Sentence, original: Sentence) -> bool:
    return without_whitespace(sentence.text) == without_whitespace(original.text)


def _translate(sentence: Sentence, original: Sentence) -> Iterator[Entity]:
    """The entities over the words of the original that their characters touch."""
    before = "" if _is_whole(sentence, original) else original.text[: sentence.start or 0]
    old_places, new_places = word_places(sentence, len(without_whitespace(before))), word_places(original)
    for entity in sentence.entities:
        moved = move_entity(entity, old_places, new_places)
        if moved is not None:
            yield Entity(moved.type, moved.fragments)
