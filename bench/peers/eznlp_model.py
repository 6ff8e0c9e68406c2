"""eznlp's boundary selection (a biaffine span classifier with boundary smoothing) on the common encoder.

Settings are those of the authors for GENIA (Zhu et al. 2023, Table 7 and appendix C), which have the smallest
batches: 16 sentences, AdamW at 4e-5 for the encoder and 2e-3 for the rest, a warm-up over a fifth of the steps,
clipping at 5, smoothing 0.1, a BiLSTM of 200 between encoder and decoder, as with ``--use_interm2`` of its script.
Five packages that it imports, but not for this model, are replaced by empty modules.
"""

# ruff: noqa: E402, because the empty modules must exist before eznlp is imported

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from importlib.util import module_from_spec
from typing import Any

import torch
import transformers
from transformers import BertModel, BertTokenizer

for name in ("truecase", "hanziconv", "jieba", "nltk", "torchvision"):
    sys.modules.setdefault(name, module_from_spec(ModuleSpec(name, None)))

from eznlp.dataset import Dataset
from eznlp.model import BertLikeConfig, BoundarySelectionDecoderConfig, EncoderConfig, ExtractorConfig
from eznlp.token import TokenSequence
from eznlp.training import Trainer
from eznlp.training.utils import LRLambda, collect_params
from job import Example, Job, ShouldContinue, to_records


class Peer:
    version = f"eznlp {version('eznlp')}, transformers {transformers.__version__}"

    def __init__(self, job: Job, train: list[Example]) -> None:
        transformers.set_seed(job.seed)
        self.job = job
        encoder = BertModel.from_pretrained(job.encoder, dtype=torch.float32)
        config = BertLikeConfig(tokenizer=BertTokenizer.from_pretrained(job.encoder), bert_like=encoder, freeze=False)
        self.config = ExtractorConfig(
            BoundarySelectionDecoderConfig(sb_epsilon=0.1, sb_size=1), ohots=None, bert_like=config,
            intermediate2=EncoderConfig(arch="LSTM", hid_dim=200, num_layers=1, in_drop_rates=(0.5, 0.0, 0.0)),
        )  # fmt: skip
        self.data = Dataset([entry(example) for example in train], self.config, training=True)
        # The decoder has a table of positions, which must be as long as the longest sentence.
        self.data.build_vocabs_and_dims([entry(Example(["word"] * 256, []))])
        self.model = self.config.instantiate()
        self.trainer: Trainer | None = None

    def train(self, epochs: int, should_continue: ShouldContinue) -> None:
        size = self.job.batch_size or 16
        batches = torch.utils.data.DataLoader(self.data, batch_size=size, shuffle=True, collate_fn=self.data.collate)
        groups = [{"params": list(self.model.bert_like.parameters()), "lr": self.job.rate or 4e-5}]
        groups.append({"params": collect_params(self.model, groups), "lr": self.job.rate or 2e-3})
        optimizer = torch.optim.AdamW(groups)
        steps = epochs * len(batches)
        schedule = LRLambda.linear_decay_lr_with_warmup(max(1, steps // 5), steps)
        self.trainer = Trainer(
            self.model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, schedule), schedule_by_step=True,
            device=torch.device("cpu"), grad_clip=5.0,
        )  # fmt: skip
        for _ in range(epochs):
            self.trainer.train_epoch(batches)
            if not should_continue():
                return

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        trainer = self.trainer or Trainer(self.model, device=torch.device("cpu"))
        data = Dataset([entry(Example(words, [])) for words in sentences], self.config, training=False)
        return [to_records(entities) for entities in trainer.predict(data, batch_size=self.job.predict_batch)]


def entry(example: Example) -> dict[str, Any]:
    tokens = TokenSequence.from_tokenized_text(example.words, case_mode="None", number_mode="None")
    return {"tokens": tokens, "chunks": [(type, start, end) for type, start, end in example.entities]}
