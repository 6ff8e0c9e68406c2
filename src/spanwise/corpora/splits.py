"""Corpora on disk: a folder with train, dev and test splits, or a single file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from random import Random

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.files.companions import companion_files
from spanwise.files.names import is_hidden, printable
from spanwise.formats import Ledger, can_detect, is_companion, read
from spanwise.runs.folder import RunFolder

_NAMES = {
    "train": "train", "training": "train",
    "dev": "dev", "devel": "dev", "develop": "dev", "development": "dev", "val": "dev", "valid": "dev", "validation": "dev",
    "test": "test", "testing": "test",
    "testa": "dev", "testb": "test",  # the names of CoNLL-2003: eng.testa, eng.testb
}  # fmt: skip
_SHARD = re.compile(r"-\d+-of-\d+$")
_JSON = (".json", ".jsonl")
ORDER = ("train", "dev", "test")


def split_name(path: Path) -> str | None:
    """Return the split that a file or folder is named after, or None.

    >>> [split_name(Path(name)) for name in ("train.jsonl", "valid.conll", "x.dev", "train-00000-of-00002.parquet", "a.txt")]
    ['train', 'dev', 'dev', 'train', None]
    """
    stem = _SHARD.sub("", path.stem).lower()
    return _NAMES.get(stem) or _NAMES.get(path.name.lower()) or _NAMES.get(path.suffix[1:].lower())


def _split_files_in(folder: Path) -> dict[str, list[Path]]:
    """Return the files (or folders) of each split of a corpus folder; ignore everything else in it.

    The run training.seed=1 of a sweep is no train split.
    """
    splits: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        split = None if is_hidden(Path(path.name)) or RunFolder(path).is_run else split_name(path)
        is_text_of_pair = path.suffix == ".txt" and path.with_suffix(".ann").is_file()
        if split and not is_text_of_pair:
            splits.setdefault(split, []).append(path)
    if _is_brat_folder(folder, splits):
        return {}
    for split, paths in splits.items():
        if len(paths) > 1 and not all(_SHARD.search(path.stem) for path in paths):
            names = " and ".join(path.name for path in paths)
            raise SpanwiseError(f"{folder}: {names} all look like the {split} split; pass a single file instead")
    return {split: [file for path in splits[split] for file in _files_of(path)] for split in ORDER if split in splits}


def _is_brat_folder(folder: Path, splits: dict[str, list[Path]]) -> bool:
    """Return True if the splits are documents of brat, and there are documents with other names."""
    entries = [path for paths in splits.values() for path in paths]
    if not any(path.suffix == ".ann" and path.is_file() for path in entries):
        return False
    documents = [file for file in _visible_files(folder) if file.suffix == ".ann"]
    return any(not any(file.is_relative_to(path) for path in entries) for file in documents)


def _files_of(path: Path) -> list[Path]:
    """Return the data files of a split that is a folder of several files; otherwise the path itself."""
    if not path.is_dir() or can_detect(path):
        return [path]
    files = _visible_files(path)
    return [file for file in files if can_detect(file) and not is_companion(file)] or files or [path]


def _visible_files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and not is_hidden(file.relative_to(folder))]


def find_split_files(path: Path) -> dict[str, list[Path]]:
    """Return the files of each split of a corpus folder, or of its folder ``data``, as on the Hugging Face hub.

    The result is empty if the path is not a folder with splits.
    """
    for folder in (path, path / "data"):
        if folder.is_dir() and (files := _split_files_in(folder)):
            return files
    return {}


def open_splits(
    path: str | Path, format: str | None = None, ledger: Ledger | None = None, *, with_annotations: bool = True
) -> dict[str, Iterator[Sentence]]:
    """Open the splits of a corpus as streams of sentences.

    The splits of a folder are its files named train, dev and test, or its folders of these names with
    one or several files each. A single file, or a folder in a
    format of folders (brat), is one split. Its name is train, dev or test if the file is named so, and
    ``all`` otherwise. ``with_annotations`` is passed to ``formats.read``.
    """
    path = Path(path)
    if not path.exists():
        raise SpanwiseError(f"{path}: no such file or folder")
    if path.is_dir():
        from spanwise.vectors import check_no_vectors  # imports NumPy, which is slow

        check_no_vectors(path)  # a folder of vectors has a training.json, which is not a train split
        if files := find_split_files(path):
            if ledger is not None:
                _note_unused_files(path, files, ledger)
            return {
                split: chain.from_iterable(read(part, format, ledger, with_annotations=with_annotations) for part in paths)
                for split, paths in files.items()
            }
        if format is None and not can_detect(path):
            check_no_model(path)
            raise SpanwiseError(f"{path}: found no files named train, dev or test, and no folder format such as brat")
    return {split_name(path) or "all": read(path, format, ledger, with_annotations=with_annotations)}


def check_no_model(folder: Path) -> None:
    """Raise an error if a folder that is passed as data is a run folder or an exported model."""
    if RunFolder(folder).is_run:
        raise SpanwiseError(f"{folder}: expected data, found a model")


def select_split(splits: Iterable[str], split: str, path: str | Path) -> str:
    """Return the requested split, or the only one."""
    names = list(splits)
    if split not in names and len(names) != 1:
        raise SpanwiseError(f"{path}: no {split} split; found {', '.join(names)}")
    return split if split in names else names[0]


def read_single_split(path: str | Path, format: str | None = None, ledger: Ledger | None = None) -> Iterator[Sentence]:
    """Read the sentences of a file, or of a folder with a single split."""
    splits = open_splits(path, format, ledger)
    if len(splits) > 1:
        raise SpanwiseError(f"{path}: expected one split, found {', '.join(splits)}; pass the file of one split")
    return next(iter(splits.values()))


def read_train_split(path: str | Path, format: str | None = None, ledger: Ledger | None = None) -> Iterator[Sentence]:
    """Read the training sentences of a folder, or all sentences of a file."""
    splits = open_splits(path, format, ledger)
    if "train" not in splits and len(splits) > 1:
        raise SpanwiseError(f"{path}: no train split; found {', '.join(splits)}")
    return splits["train"] if "train" in splits else next(iter(splits.values()))


def _note_unused_files(path: Path, files: dict[str, list[Path]], ledger: Ledger) -> None:
    """Note files that users may expect to be read: train_2.conll, other JSON data, and files in the folder of a split."""
    used = {file for paths in files.values() for file in paths}
    folder = next(place for place in (path / "data", path) if all(file.is_relative_to(place) for file in used))
    suffixes = {file.suffix for file in used if file.is_file() and file.parent == folder and file.suffix}
    entries = sorted(entry for entry in folder.iterdir() if entry not in used)
    others = [entry for entry in entries if not is_companion(entry)]
    unnamed = [entry.name for entry in others if entry.suffix in suffixes or (entry.suffix in _JSON and can_detect(entry))]
    ledger.note_files("files that are named after no split", unnamed)
    tables = {(file.parent, file.suffix): file for file in used}.values()  # all tables of a folder share their texts
    known = used | {text for table in tables for text in companion_files(table)}
    names = {file.relative_to(folder).parts[0] for file in used}
    unread = [file for entry in entries if entry.name in names for file in _visible_files(entry) if file not in known]
    unknown = [printable(file.relative_to(folder).as_posix()) for file in unread if not is_companion(file)]
    ledger.note_files("files in an unknown format", unknown)


def read_corpus(path: str | Path, format: str | None = None, ledger: Ledger | None = None) -> Corpus:
    """Read all splits of a corpus into memory.

    ``path`` is a folder with files or folders named train, dev and test, or one file. The format is
    detected by default. For a file that does not fit into memory, stream its sentences with ``read``.

    >>> from spanwise.data import FOLDER
    >>> {split: len(sentences) for split, sentences in read_corpus(FOLDER).items()}
    {'train': 675, 'dev': 126, 'test': 147}
    """
    path = Path(path)
    return Corpus({split: tuple(stream) for split, stream in open_splits(path, format, ledger).items()}, name=path.name)


def ensure_dev_split(corpus: Corpus, share: float = 0.1) -> tuple[Corpus, str]:
    """Return the corpus with a dev split, and a message if the split was taken from train.

    The same data always gives the same split. Whole documents stay together if documents are known,
    unless dev would then get less than half its share of the sentences, as with very few documents.
    """
    splits, prefix = dict(corpus.splits), ""
    if "train" not in splits:
        only = next(iter(splits), None)
        if only is None or len(splits) > 1:
            raise SpanwiseError(f"no train split; found {', '.join(splits) or 'no splits'}")
        splits = {"train": splits[only]}
        prefix = f"no train split: training on {only}; " if only in ORDER else ""
    if "dev" in splits:
        return Corpus(splits, corpus.name), ""
    sentences = splits["train"]
    documents = [index if s.document is None else s.document for index, s in enumerate(sentences)]
    train, dev = _split_off(sentences, documents, share)
    detail = ""
    if len(dev) < share * len(sentences) / 2 and len(sentences) > 1:
        train, dev = _split_off(sentences, range(len(sentences)), share)
        detail = "; documents were split, because no whole documents have about that many sentences"
    message = f"no dev split: using {len(dev):,} of {len(sentences):,} training sentences as dev (fixed seed 13){detail}"
    if len(sentences) == 1:
        message = "no dev split: a single training sentence cannot be split, so dev is empty"
    return Corpus({**splits, "train": tuple(train), "dev": tuple(dev)}, corpus.name), prefix + message


def _split_off(sentences: Sequence[Sentence], keys: Sequence[object], share: float) -> tuple[list[Sentence], list[Sentence]]:
    """Return train, and dev of at most twice its share; sentences with equal keys stay together."""
    groups: dict[object, list[Sentence]] = {}
    for sentence, key in zip(sentences, keys, strict=True):
        groups.setdefault(key, []).append(sentence)
    shuffled = list(groups)
    Random(13).shuffle(shuffled)
    target = share * len(sentences)
    max_size = min(max(1, 2 * target), len(sentences) - 1)
    dev: list[Sentence] = []
    for key in reversed(shuffled):
        if len(dev) < target and len(dev) + len(groups[key]) <= max_size:
            dev += groups.pop(key)
    return [sentence for members in groups.values() for sentence in members], dev


def fingerprint(sentences: Iterable[Sentence]) -> str:
    """Return a digest of words and annotations, to check whether two runs used the same data."""
    digest = hashlib.sha256()
    for sentence in sentences:
        entities = sorted((entity.type, entity.fragments) for entity in sentence.entities)
        fragments = [entity.fragments for entity in sentence.entities]
        relations = sorted((r.type, fragments[r.head], fragments[r.tail]) for r in sentence.relations)
        marks = [] if sentence.annotated is None else [relations, sentence.annotated]
        digest.update(json.dumps([sentence.words, entities, *(marks or ([relations] if relations else []))]).encode())
    return digest.hexdigest()[:16]


def fingerprints(corpus: Corpus) -> dict[str, str]:
    """Return the fingerprint of each split."""
    return {split: fingerprint(corpus[split]) for split in corpus}
