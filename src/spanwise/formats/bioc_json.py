"""BioC JSON: collections of documents with passages, annotations and relations (PubTator 3, BioC-PMC).

Reads ``{"source": …, "documents": [{"id": …, "passages": […]}]}``, the ``PubTator3`` lists of NCBI, arrays of
collections or documents, and one of them per line. The documents of a collection are streamed.
``shared/bioc.py`` describes how documents are read. ``source``, ``date``, ``key`` and infons of a
collection are stored in ``extra["collection"]`` of its first document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from spanwise.core.types import Sentence
from spanwise.files.json_arrays import read_object_members
from spanwise.files.names import default_id
from spanwise.files.reading import read_json_records
from spanwise.files.writing import open_output, to_json
from spanwise.formats.base import YES_OR_NO, Format, Ledger
from spanwise.formats.shared.bioc import METADATA, SUPPORTS, to_document
from spanwise.formats.shared.bioc_writer import collection_of, to_record
from spanwise.formats.shared.documents import to_documents
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.splitting import to_sentences

_LISTS = frozenset(("documents", "PubTator3"))  # keys of the documents of a collection
_COLLECTION_KEYS = ("source", "date", "key", "infons")
_START = re.compile(r"[\s\[]*\{")


def read(path: Path, ledger: Ledger, /, *, split: bool = True, with_annotations: bool = True) -> Iterator[Sentence]:
    """Read documents. ``split=False`` keeps each document as one sentence."""
    for number, (line, record, collection) in enumerate(_records(path, ledger)):
        document, sentences = to_document(record, collection, default_id(path, number), path, line, ledger, with_annotations)
        yield from to_sentences(document, path, ledger, line=line, split=split, sentences=sentences)


def _records(path: Path, ledger: Ledger) -> Iterator[tuple[int, Any, dict[str, Any] | None]]:
    """Yield the line and the record of each document, and its collection for the first one."""
    if Sample(path).text.lstrip().startswith("["):
        for line, item in read_json_records(path):
            yield from _expand(line, item)
        return
    collection: dict[str, Any] = {}
    is_first = True
    for line, key, value in read_object_members(path, _LISTS):
        if key in _LISTS:
            yield line, value, collection if is_first else None
            is_first = False
        elif key is not None:
            collection[key] = value
            if not is_first:
                ledger.note("keys of the collection after its documents, not kept")
        else:  # the end of an object
            if is_first and not collection.keys() & _LISTS:
                yield line, collection, None
            collection, is_first = {}, True


def _expand(line: int, item: Any) -> Iterator[tuple[int, Any, dict[str, Any] | None]]:
    """Yield the documents of an item of an array: of a collection, or a document."""
    key = next((key for key in _LISTS if isinstance(item, dict) and isinstance(item.get(key), list)), None)
    if key is None:
        yield line, item, None
        return
    for number, record in enumerate(item[key]):
        yield line, record, None if number else {k: v for k, v in item.items() if k != key}


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    documents = to_documents(sentences, ledger)
    first = next(documents, None)
    collection = collection_of(first, ledger)
    header = "".join(f"{to_json(key)}: {to_json(collection[key])},\n" for key in collection)
    with open_output(path) as file:
        file.write(f'{{{header}"documents": [')
        for number, document in enumerate(chain([first] if first else [], documents)):
            file.write(",\n" * bool(number) + "\n" * (not number) + to_json(to_record(document, ledger)))
        file.write("\n]}\n")


def sniff(sample: Sample) -> bool:
    if not _START.match(sample.text):
        return False
    if re.search(r'"(?:documents|PubTator3)"\s*:\s*\[\s*\{', sample.text):
        return '"passages"' in sample.text
    return sample.all_have("passages") and not any(not isinstance(record["passages"], list) for record in sample.dicts)


FORMAT = Format(
    name="bioc_json",
    has_character_offsets=True,
    summary="BioC JSON: documents with passages, annotations and relations (PubTator 3, BioC-PMC)",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    supports=SUPPORTS,
    metadata=METADATA,
    read_options={"split": YES_OR_NO},
)
