"""spaCy's spancat as its documentation sets it up: candidates of every width, updates by minibatches.

Without a package that puts transformers into spaCy it reads its own tok2vec, not the common encoder: much smaller, learned from
nothing, and so at spaCy's own learning rate (Adam, 0.001).
"""

from __future__ import annotations

from random import Random
from typing import Any

import spacy
from job import Example as Sentence
from job import GoesOn, Job, written
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch

KEY = "sc"


class Peer:
    version = f"spacy {spacy.__version__}, its own tok2vec"

    def __init__(self, job: Job, train: list[Sentence]) -> None:
        fix_random_seed(job.seed)
        self.job, self.random = job, Random(job.seed)
        self.nlp = spacy.blank("en")
        candidates = {"@misc": "spacy.ngram_range_suggester.v1", "min_size": 1, "max_size": job.width}
        self.nlp.add_pipe("spancat", config={"spans_key": KEY, "suggester": candidates})
        self.examples = [self._example(sentence) for sentence in train]
        self.optimizer = self.nlp.initialize(lambda: self.examples)

    def _example(self, sentence: Sentence) -> Example:
        gold = Doc(self.nlp.vocab, sentence.words)
        gold.spans[KEY] = [Span(gold, start, end, type) for type, start, end in sentence.entities]
        return Example(Doc(self.nlp.vocab, sentence.words), gold)

    def train(self, epochs: int, goes_on: GoesOn) -> None:
        for _ in range(epochs):
            self.random.shuffle(self.examples)
            for batch in minibatch(self.examples, self.job.batch_size):
                self.nlp.update(batch, sgd=self.optimizer, drop=0.1)
            if not goes_on():
                return

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        docs = self.nlp.pipe([Doc(self.nlp.vocab, words) for words in sentences], batch_size=self.job.predict_batch)
        return [written((span.label_, span.start, span.end) for span in doc.spans[KEY]) for doc in docs]
