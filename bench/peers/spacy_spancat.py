"""spaCy's spancat with the documented settings: candidates of every width, updates by minibatches.

Alone it uses spaCy's tok2vec instead of the common encoder: much smaller, trained from scratch, and
therefore always with spaCy's rate (Adam, 0.001). With the option ``transformer`` it uses the common
encoder through spacy-transformers, like spaCy's quickstart: strides of 96 words, the mean of a word's
subwords, Adam at 5e-5 with a warm-up. The quickstart's schedule is for 20,000 steps and its batches for a
GPU; here the rate decays to 0 at the last step, and a batch has 8 sentences.
"""

from __future__ import annotations

from importlib.metadata import version
from random import Random
from typing import Any

import spacy
from job import Example as Sentence
from job import Job, ShouldContinue, to_records
from spacy.pipeline.spancat import DEFAULT_SPANCAT_MODEL
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch
from thinc.api import Adam, warmup_linear

KEY = "sc"
DECAY, CLIP = 0.01, 1.0  # of spaCy's default configuration


def transformer(folder: str) -> dict[str, Any]:
    strides = {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 128, "stride": 96}
    architecture = "spacy-transformers.TransformerModel.v3"
    return {"@architectures": architecture, "name": folder, "tokenizer_config": {"use_fast": True}, "get_spans": strides}


LISTENER = {
    "@architectures": "spacy-transformers.TransformerListener.v1", "grad_factor": 1.0, "upstream": "*",
    "pooling": {"@layers": "reduce_mean.v1"},
}  # fmt: skip


class Peer:
    version = f"spacy {spacy.__version__}, with tok2vec"

    def __init__(self, job: Job, train: list[Sentence]) -> None:
        fix_random_seed(job.seed)
        self.job, self.random = job, Random(job.seed)
        self.nlp = spacy.blank("en")
        candidates = {"@misc": "spacy.ngram_range_suggester.v1", "min_size": 1, "max_size": job.width}
        config: dict[str, Any] = {"spans_key": KEY, "suggester": candidates}
        self.reads_encoder = job.options.get("transformer", False)
        if self.reads_encoder:
            self.version = f"spacy {spacy.__version__}, spacy-transformers {version('spacy-transformers')}"
            self.nlp.add_pipe("transformer", config={"model": transformer(job.encoder)})
            config["model"] = DEFAULT_SPANCAT_MODEL | {"tok2vec": LISTENER}
        self.nlp.add_pipe("spancat", config=config)
        self.examples = [self._example(sentence) for sentence in train]
        self.optimizer = self.nlp.initialize(lambda: self.examples)

    def _example(self, sentence: Sentence) -> Example:
        gold = Doc(self.nlp.vocab, sentence.words)
        gold.spans[KEY] = [Span(gold, start, end, type) for type, start, end in sentence.entities]
        return Example(Doc(self.nlp.vocab, sentence.words), gold)

    def train(self, epochs: int, should_continue: ShouldContinue) -> None:
        size = self.job.batch_size or 8
        if self.reads_encoder:
            steps = epochs * -(-len(self.examples) // size)
            rate = warmup_linear(self.job.rate or 5e-5, steps // 10, steps)
            self.optimizer = Adam(rate, L2=DECAY, grad_clip=CLIP, L2_is_weight_decay=True)
        for _ in range(epochs):
            self.random.shuffle(self.examples)
            for batch in minibatch(self.examples, size):
                self.nlp.update(batch, sgd=self.optimizer, drop=0.1)
                if self.reads_encoder:
                    self.optimizer.step_schedules()
            if not should_continue():
                return

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        docs = self.nlp.pipe([Doc(self.nlp.vocab, words) for words in sentences], batch_size=self.job.predict_batch)
        return [to_records((span.label_, span.start, span.end) for span in doc.spans[KEY]) for doc in docs]
