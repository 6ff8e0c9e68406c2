"""Part-of-speech tags from a spaCy pipeline for corpora without tags."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.pos_tagging import load_tagger, tag_sentences
from spanwise.encoders.static import StaticEncoder, StaticSettings
from spanwise.encoders.word_indexing import WordIndexer

SENTENCES = [Sentence("1", ("IL-2", "binds")), Sentence("2", ()), Sentence("3", ("binds",), pos=("XX",))]


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    """A pipeline that tags "binds" as a verb and all else as nouns."""
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    rules = nlp.add_pipe("attribute_ruler")
    rules.add([[{"TEXT": {"NOT_IN": ["binds"]}}]], {"TAG": "NN"})
    rules.add([[{"TEXT": "binds"}]], {"TAG": "VBZ"})
    nlp.to_disk(tmp_path / "tagger")
    return str(tmp_path / "tagger")


def test_only_sentences_without_tags_are_tagged(pipeline: str) -> None:
    assert [sentence.pos for sentence in tag_sentences(pipeline, SENTENCES)] == [("NN", "VBZ"), None, ("XX",)]


def test_the_static_encoder_tags_sentences_in_training_and_prediction(pipeline: str, tmp_path: Path) -> None:
    settings = StaticSettings(word_size=0, char_hidden=0, pos_size=3, layers=0, dropout=0, tagger=pipeline)
    encoder = StaticEncoder.build(settings, SENTENCES).eval()
    assert encoder.vocabulary.tags == ("NN", "VBZ", "XX")
    with torch.no_grad():
        states = encoder(encoder.collate(encoder.prepare([Sentence("x", ("TNF", "binds", "TNF"))])))
    assert torch.equal(states.words[0, 0], states.words[0, 2])
    assert not torch.equal(states.words[0, 0], states.words[0, 1])
    encoder.save(tmp_path)
    assert WordIndexer.load(tmp_path).tagger == pipeline  # the indexer that other runtimes use


def test_errors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spacy = pytest.importorskip("spacy")
    with pytest.raises(SpanwiseError, match="no such spaCy pipeline; run python -m spacy download en_core_web_none"):
        tag_sentences("en_core_web_none", SENTENCES)
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(SpanwiseError, match="sets no part-of-speech tags"):
        tag_sentences(str(tmp_path / "blank"), SENTENCES)
    with pytest.raises(SpanwiseError, match="use 0, or set tagger to a spaCy pipeline"):
        StaticEncoder.build(StaticSettings(pos_size=3), SENTENCES[:1])
    monkeypatch.setitem(sys.modules, "spacy", None)
    monkeypatch.setitem(sys.modules, "spacy.tokens", None)
    load_tagger.cache_clear()
    with pytest.raises(SpanwiseError, match=r"requires spaCy; run pip install 'spanwise\[spacy\]'"):
        tag_sentences("en_core_web_sm", SENTENCES)
