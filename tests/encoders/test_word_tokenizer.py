"""Cached words have the same subwords as in their sentence."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from spanwise.encoders import word_tokenizer
from spanwise.encoders.word_tokenizer import WordTokenizer

TEXTS = (
    ("Oslo", "was", "seen", "near", "oslo", ",", "near", "OSLO"),
    ("[MASK]", "<mask>", "x[SEP]y", "##a", "a", "##a", "</s>"),
    ("naïve", "Ünïcödé", "e\u0301tude", "ﬁne", "東京", "東", "🙂", "a🙂b", "İzmir", "ß"),
    ("interleukin-2", "(IL-2)", "10,000.5", "p<0.05", "x" * 120, "https://a.example/b?c=d", "a b", " a", "a "),
    (),
    ("\u200d", "\u00ad", "a", "\u200d", "\u200d"),
    ("Oslo",),
)


def trained(kind: str) -> Any:
    """A small tokenizer of a common family."""
    backend = {
        "unigram": lambda: Tokenizer(models.Unigram()),
        "bpe": lambda: Tokenizer(models.BPE(unk_token="<unk>")),
    }[kind.split("-")[0]]()
    scheme = kind.split("-")[1]
    if scheme in ("always", "first", "never"):
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
        backend.normalizer = normalizers.NFKC()
    else:
        backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.ByteLevel()])
    special = ["<unk>", "<pad>", "<s>", "</s>", "<mask>"]
    options = {"vocab_size": 150, "special_tokens": special, "show_progress": False}
    trainer = trainers.UnigramTrainer(unk_token="<unk>", **options) if "unigram" in kind else trainers.BpeTrainer(**options)
    backend.train_from_iterator([" ".join(words) for words in TEXTS] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>")


def tokenize_sentences(tokenizer: Any, prefix: str, unknown_id: int) -> list[tuple[list[int], list[int]]]:
    """Ids and counts of whole sentences from the original tokenizer."""
    results = []
    for words in TEXTS:
        encoded = tokenizer([prefix + word for word in words], is_split_into_words=True, add_special_tokens=False)
        subwords: list[list[int]] = [[] for _ in words]
        for index, id in zip(encoded.word_ids() if words else (), encoded["input_ids"], strict=True):
            subwords[index].append(id)
        subwords = [ids or [unknown_id] for ids in subwords]
        results.append(([id for ids in subwords for id in ids], [len(ids) for ids in subwords]))
    return results


KINDS = ("unigram-always", "unigram-first", "unigram-never", "bpe-first", "bpe-always", "bpe-bytes")


@pytest.mark.parametrize("kind", ["tiny_bert", "tiny_roberta", *KINDS])
def test_words_have_the_subwords_of_their_sentence(kind: str, request: pytest.FixtureRequest) -> None:
    if kind in KINDS:
        tokenizer = trained(kind)
    else:
        tokenizer = AutoTokenizer.from_pretrained(request.getfixturevalue(kind), add_prefix_space=True)
    tokenize = WordTokenizer.of(tokenizer)
    expected = tokenize_sentences(tokenizer, tokenize.prefix, tokenize.unknown_id)
    assert len({id for ids, _ in expected for id in ids}) > 20
    for _ in range(2):  # the second time from the cache
        actual = [(ids.tolist(), counts.tolist()) for ids, counts in tokenize(TEXTS)]
        assert actual == expected
    alone = [(ids.tolist(), counts.tolist()) for text in reversed(TEXTS) for ids, counts in WordTokenizer.of(tokenizer)([text])]
    assert alone[::-1] == expected


def test_each_word_is_tokenized_once(tiny_bert: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    requested: list[str] = []

    class Counting:
        def encode_batch(self, texts: Any, **options: Any) -> Any:
            requested.extend(word for words in texts for word in words)
            return tokenizer.backend_tokenizer.encode_batch(texts, **options)

    tokenize = WordTokenizer.of(tokenizer)
    tokenize.tokenizer = Counting()  # type: ignore[assignment]
    tokenize(TEXTS)
    assert sorted(requested) == sorted({word for words in TEXTS for word in words})
    requested.clear()
    tokenize([["oslo", "lima"], ["lima"]])
    assert requested == ["lima"]


def test_more_words_than_the_cache_holds(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    whole = [(ids.tolist(), counts.tolist()) for ids, counts in WordTokenizer.of(tokenizer)(TEXTS)]
    monkeypatch.setattr(word_tokenizer, "LIMIT", 10)
    monkeypatch.setattr(word_tokenizer, "GROUP", 3)
    tokenize = WordTokenizer.of(tokenizer)
    for index in (*range(len(TEXTS)), *range(len(TEXTS))):
        ((ids, counts),) = tokenize([TEXTS[index]])
        assert (ids.tolist(), counts.tolist()) == whole[index]
        assert len(tokenize._cache) <= 20


def test_lone_surrogates(tiny_bert: Path) -> None:
    tokenize = WordTokenizer.of(AutoTokenizer.from_pretrained(tiny_bert))
    ((ids, counts),) = tokenize([("oslo", "\ud83d", "a")])
    assert counts.tolist() == [1, 1, 1]
    assert ids.tolist() == [tokenize.tokenizer.token_to_id(token) for token in ("oslo", "[UNK]", "a")]


def test_copies_start_with_an_empty_cache(tiny_bert: Path) -> None:
    tokenize = WordTokenizer.of(AutoTokenizer.from_pretrained(tiny_bert))
    tokenize(TEXTS)
    copy = pickle.loads(pickle.dumps(tokenize))
    assert tokenize._cache
    assert not copy._cache
    assert [ids.tolist() for ids, _ in copy(TEXTS)] == [ids.tolist() for ids, _ in tokenize(TEXTS)]
