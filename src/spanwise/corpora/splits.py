"""A corpus on disk: a folder with train, dev and test, or a single file."""

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
from spanwise.formats import Ledger, is_known, read

_NAMES = {
    "train": "train", "training": "train",
    "dev": "dev", "devel": "dev", "develop": "dev", "development": "dev", "val": "dev", "valid": "dev", "validation": "dev",
    "test": "test", "testing": "test",
    "testa": "dev", "testb": "test",  # as CoNLL-2003 calls them: eng.testa, eng.testb
}  # fmt: skip
_SHARD = re.compile(r"-\d+-of-\d+$")
ORDER = ("train", "dev", "test")


def split_of(path: Path) -> str | None:
    """The split that a file or folder is named after.

    >>> [split_of(Path(name)) for name in ("train.jsonl", "valid.conll", "x.dev", "train-00000-of-00002.parquet", "notes.txt")]
    ['train', 'dev', 'dev', 'train', None]
    """
    stem = _SHARD.sub("", path.stem).lower()
    return _NAMES.get(stem) or _NAMES.get(path.name.lower()) or _NAMES.get(path.suffix[1:].lower())


def split_paths(folder: Path) -> dict[str, list[Path]]:
    """The files (or folders) of each split of a corpus folder; everything else in it is ignored. Empty when it has none."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        is_hidden = path.name.startswith(".") or path.name.endswith("~")
        split = None if is_hidden else split_of(path)
        if split:
            found.setdefault(split, []).append(path)
    for split, paths in found.items():
        if len(paths) > 1 and not all(_SHARD.search(path.stem) for path in paths):
            names = " and ".join(path.name for path in paths)
            raise SpanwiseError(f"{folder}: {names} both look like the {split} split; name a single file instead")
    return {split: found[split] for split in ORDER if split in found}


def corpus_parts(path: Path) -> dict[str, list[Path]]:
    """The splits of a folder that holds some, or whose folder ``data`` does (the hub lays out its parquet files so)."""
    for folder in (path, path / "data"):
        if folder.is_dir() and (parts := split_paths(folder)):
            return parts
    return {}


def open_splits(
    path: str | Path, format: str | None = None, ledger: Ledger | None = None, *, annotated: bool = True
) -> dict[str, Iterator[Sentence]]:
    """The splits of a corpus as streams of sentences.

    A folder's splits are its files named train, dev and test; a single file, or a folder that is a corpus by itself (brat),
    is one split, called after its own name where that says train, dev or test and ``all`` otherwise. ``annotated`` is as in
    ``formats.read``.
    """
    path = Path(path)
    if not path.exists():
        raise SpanwiseError(f"{path}: no such file or folder")
    if path.is_dir():
        from spanwise.vectors import check_no_vectors  # here, for with it comes NumPy

        check_no_vectors(path)  # whose training.json is no train split
        if parts := corpus_parts(path):
            _note_others(parts, ledger)
            return {
                split: chain.from_iterable(read(part, format, ledger, annotated=annotated) for part in paths)
                for split, paths in parts.items()
            }
        if format is None and not is_known(path):
            raise SpanwiseError(f"{path}: no files named train, dev or test, and no format that is a folder by itself")
    return {split_of(path) or "all": read(path, format, ledger, annotated=annotated)}


def chosen_split(splits: Iterable[str], split: str, path: str | Path) -> str:
    """The split that is asked for, or the only one there is."""
    names = list(splits)
    if split not in names and len(names) != 1:
        raise SpanwiseError(f"{path}: has no {split} split, only {', '.join(names)}")
    return split if split in names else names[0]


def one_split(path: str | Path, format: str | None = None, ledger: Ledger | None = None) -> Iterator[Sentence]:
    """The sentences of a file, or of a folder that holds one split or is one corpus by itself."""
    splits = open_splits(path, format, ledger)
    if len(splits) > 1:
        raise SpanwiseError(f"{path}: has the splits {', '.join(splits)}; name the file of one")
    return next(iter(splits.values()))


def train_split(path: str | Path, format: str | None = None, ledger: Ledger | None = None) -> Iterator[Sentence]:
    """The training sentences of a folder, or all sentences of a file."""
    splits = open_splits(path, format, ledger)
    if "train" not in splits and len(splits) > 1:
        raise SpanwiseError(f"{path}: has no train split, only {', '.join(splits)}")
    return splits["train"] if "train" in splits else next(iter(splits.values()))


def _note_others(parts: dict[str, list[Path]], ledger: Ledger | None) -> None:
    """Files of the same kind that belong to no split (train_2.jsonl) are easily thought to be read."""
    used = [path for paths in parts.values() for path in paths]
    kinds = {path.suffix for path in used if path.is_file() and path.suffix}
    others = [path.name for path in sorted(used[0].parent.iterdir()) if path.suffix in kinds and path not in used]
    if ledger is not None:
        ledger.note_files("files that are named after no split", others)


def read_corpus(path: str | Path, format: str | None = None, ledger: Ledger | None = None) -> Corpus:
    """A corpus, read whole."""
    path = Path(path)
    return Corpus({split: tuple(stream) for split, stream in open_splits(path, format, ledger).items()}, name=path.name)


def with_dev(corpus: Corpus, share: float = 0.1) -> tuple[Corpus, str]:
    """The corpus with a dev split, cut from train where it has none, and the sentence that says so.

    The cut is always the same for the same data. Whole documents go to one side where documents are known, unless dev would
    have less than half its share of the sentences, as where there are few documents.
    """
    splits = dict(corpus.splits)
    if "train" not in splits:
        only = next(iter(splits), None)
        if only is None or len(splits) > 1:
            raise SpanwiseError(f"there is no train split, only {', '.join(splits) or 'nothing'}")
        splits = {"train": splits[only]}
    if "dev" in splits:
        return Corpus(splits, corpus.name), ""
    whole = splits["train"]
    train, dev = _cut(whole, [number if s.document is None else s.document for number, s in enumerate(whole)], share)
    how = ""
    if len(dev) < share * len(whole) / 2 and len(whole) > 1:
        train, dev = _cut(whole, range(len(whole)), share)
        how = ", whatever their documents: no whole ones are about that many"
    said = f"no dev split: {len(dev):,} of {len(whole):,} training sentences were cut off as dev (fixed seed 13){how}"
    return Corpus({**splits, "train": tuple(train), "dev": tuple(dev)}, corpus.name), said


def _cut(sentences: Sequence[Sentence], keys: Sequence[object], share: float) -> tuple[list[Sentence], list[Sentence]]:
    """Train, and dev of at most twice its share; sentences with equal keys stay together."""
    groups: dict[object, list[Sentence]] = {}
    for sentence, key in zip(sentences, keys, strict=True):
        groups.setdefault(key, []).append(sentence)
    drawn = list(groups)
    Random(13).shuffle(drawn)
    wanted = share * len(sentences)
    most = min(max(1, 2 * wanted), len(sentences) - 1)
    dev: list[Sentence] = []
    for key in reversed(drawn):
        if len(dev) < wanted and len(dev) + len(groups[key]) <= most:
            dev += groups.pop(key)
    return [sentence for members in groups.values() for sentence in members], dev


def fingerprint(sentences: Iterable[Sentence]) -> str:
    """A digest of words, entities and relations, to tell whether two runs saw the same data."""
    digest = hashlib.sha256()
    for sentence in sentences:
        entities = sorted((entity.type, entity.fragments) for entity in sentence.entities)
        ends = [entity.fragments for entity in sentence.entities]
        relations = sorted((relation.type, ends[relation.head], ends[relation.tail]) for relation in sentence.relations)
        digest.update(json.dumps([sentence.words, entities, *([relations] if relations else [])]).encode())
    return digest.hexdigest()[:16]


def fingerprints(corpus: Corpus) -> dict[str, str]:
    """That of each split."""
    return {split: fingerprint(corpus[split]) for split in corpus}
