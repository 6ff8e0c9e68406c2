"""Collected annotations: each once, with updates and deletions, across restarts and damage."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import label_studio_requests as requests
import pytest

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.files.disk import DiskFullError
from spanwise.formats import Ledger
from spanwise.label_studio import messages
from spanwise.label_studio.backend import saved_changes
from spanwise.label_studio.collection import Change, Collection, read_sentences


def change(id: int = 1, **options: object) -> Change:
    [converted], _ = saved_changes(messages.validate(messages.AnnotationsSaved, requests.saved(id, **options)))  # type: ignore[arg-type]
    return converted


def sentences(collection: Collection, count: int | None = None) -> dict[str, list[Sentence]]:
    read = read_sentences(collection.path, collection.count if count is None else count, Ledger())
    return {chosen.document: rows for chosen, rows in read}


def entities(sentence: Sentence) -> list[tuple[str, str]]:
    return [(entity.type, sentence.text_of(entity)) for entity in sentence.entities]


def test_an_annotation_becomes_a_sentence(tmp_path: Path) -> None:
    collection = Collection(tmp_path)
    assert collection.add(change())
    [[sentence]] = sentences(collection).values()
    assert sentence.text == requests.SENTENCE
    assert entities(sentence) == [("Person", "Ann Lee"), ("Place", "Oslo")]
    assert [(relation.type, relation.head, relation.tail) for relation in sentence.relations] == [("lives_in", 0, 1)]
    assert (sentence.document, sentence.extra) == ("label-studio-1-1", None)


def test_half_of_an_emoji_in_the_text_of_a_region(tmp_path: Path) -> None:
    """A selection in a browser may end between the two UTF-16 units of a character."""
    collection = Collection(tmp_path)
    regions = [requests.region(17, 23, "Oslo \ud83d", "Place"), requests.region(0, 3, "Ann", "Person", "b")]
    assert collection.add(change(result=regions))
    [[sentence]] = sentences(Collection(tmp_path)).values()
    assert entities(sentence) == [("Place", "Oslo 😀"), ("Person", "Ann")]
    message = messages.validate(messages.AnnotationsSaved, requests.saved(result=[requests.region(0, 3, "Ann", "\ud800")]))
    assert saved_changes(message) == ([], ["annotation 1: unpaired surrogate; expected valid Unicode"])


def test_each_change_is_stored_once(tmp_path: Path) -> None:
    collection = Collection(tmp_path)
    assert [collection.add(change()) for _ in range(3)] == [True, False, False]
    assert not Collection(tmp_path).add(change()), "also after a restart"
    assert not Collection(tmp_path).add(change(second=20)), "older than what is stored"
    empty = change(2, result=[], task_id=2, text="Rain.")
    assert collection.add(empty)
    assert not Collection(tmp_path).add(empty)
    assert (collection.count, collection.annotations) == (2, 2)
    assert len(collection.path.read_text().splitlines()) == 2


def test_annotations_are_counted_while_another_thread_stores_one(tmp_path: Path) -> None:
    collection = Collection(tmp_path)
    others = [change(2, task_id=2), change(3, task_id=3)]

    class Storing(Change):
        """Stores another annotation in a thread when it is read."""

        def __getattribute__(self, name: str) -> Any:
            if name == "is_deleted" and others:
                thread = threading.Thread(target=collection.add, args=(others.pop(),))
                thread.start()
                thread.join()
            return super().__getattribute__(name)

    collection._remember(Storing(1, 1, 1))
    assert collection.annotations == 1
    assert collection.of_task(1, 1) == [1]
    assert collection.annotations == 3


def test_updates_deletions_and_cancellations(tmp_path: Path) -> None:
    collection = Collection(tmp_path)
    collection.add(change())
    collection.add(change(result=requests.RESULT[:1], second=36))
    collection.add(change(2, task_id=2, text="Oslo.", result=[]))
    [[updated], [negative]] = sentences(collection).values()
    assert (entities(updated), entities(negative)) == ([("Person", "Ann Lee")], [])
    assert [entities(row) for [row] in sentences(collection, 1).values()] == [[("Person", "Ann Lee"), ("Place", "Oslo")]]
    assert collection.changed_since(1) == 2
    assert collection.add(change(2, task_id=2, text="Oslo.", result=[], second=40, was_cancelled=True))
    assert collection.of_task(1, 1) == [1]
    assert collection.add(Change(1, 1, is_deleted=True))
    assert not collection.add(Change(1, 1, is_deleted=True))
    assert not collection.add(Change(1, 99, is_deleted=True)), "never collected"
    assert not collection.add(change(second=50)), "a late message after the deletion"
    restarted = Collection(tmp_path)
    assert (restarted.annotations, restarted.count, sentences(restarted)) == (0, 5, {})


def test_one_annotation_of_a_task_is_used(tmp_path: Path) -> None:
    collection = Collection(tmp_path)
    collection.add(change(1, result=requests.RESULT[:1], second=10, ground_truth=True))
    collection.add(change(2, second=20))
    [[sentence]] = sentences(collection).values()
    assert entities(sentence) == [("Person", "Ann Lee")], "the ground truth"
    collection.add(Change(1, 1, is_deleted=True))
    [[sentence]] = sentences(collection).values()
    assert len(sentence.entities) == 2


def test_a_torn_line_is_removed(tmp_path: Path) -> None:
    collection = Collection(tmp_path)
    collection.add(change())
    whole = collection.path.read_bytes()
    for torn in (b'{"project": 1, "anno', b"x" * 70_000):
        collection.path.write_bytes(whole + torn)
        restarted = Collection(tmp_path)
        assert collection.path.read_bytes() == whole
        assert restarted.annotations == 1
    collection.path.write_bytes(b'{"project"')
    assert Collection(tmp_path).count == 0


@pytest.mark.parametrize("line", [b"[]\n", b'{"project": 1}\n', b'{"project": 1, "annotation": 2, "other": 3}\n', b"{\n"])
def test_a_damaged_file_is_an_error(tmp_path: Path, line: bytes) -> None:
    Collection(tmp_path).add(change())
    path = tmp_path / "annotations.jsonl"
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(SpanwiseError, match=r"annotations\.jsonl:2"):
        Collection(tmp_path)


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = Collection(tmp_path)
    collection.add(change())
    before = collection.path.read_bytes()

    def fail(handle: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(DiskFullError):
            collection.add(change(2))
    assert collection.path.read_bytes() == before
    assert collection.annotations == 1
    assert collection.add(change(2)), "it can be sent again"
    assert Collection(tmp_path).annotations == 2
