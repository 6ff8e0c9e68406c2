"""The tokenizer of a run folder for prediction, without the transformers library, whose import takes seconds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from spanwise.encoders.tokenizer_files import check_tokenizer_file

FILE, CONFIG = "tokenizer.json", "tokenizer_config.json"
# Classes whose whole state is in the two files.
_CLASSES = frozenset(
    name + suffix for name in ("BertTokenizer", "RobertaTokenizer", "PreTrainedTokenizer") for suffix in ("", "Fast")
) | {"TokenizersBackend"}
_SPECIAL = ("unk", "pad", "mask", "cls", "sep", "bos", "eos")
_NECESSARY = {"unk", "pad"}


class PredictionTokenizer:
    """The attributes of a fast tokenizer that ``TransformerEncoder`` uses. Its files are read once."""

    def __init__(self, folder: Path, tokenizer: Tokenizer, special_ids: dict[str, int], model_max_length: int) -> None:
        self.backend_tokenizer, self.model_max_length = tokenizer, model_max_length
        self.unk_token_id, self.pad_token_id = special_ids["unk"], special_ids["pad"]
        self.eos_token_id, self.mask_token_id = special_ids.get("eos"), special_ids.get("mask")
        self.all_special_ids = sorted(set(special_ids.values()))
        self.folder = folder

    def __call__(self, text: str, *, return_special_tokens_mask: bool) -> dict[str, list[int]]:
        encoding = self.backend_tokenizer.encode(text)
        return {"input_ids": encoding.ids, "special_tokens_mask": encoding.special_tokens_mask}

    def get_vocab(self) -> dict[str, int]:
        return self.backend_tokenizer.get_vocab()


def read_prediction_tokenizer(folder: Path) -> PredictionTokenizer | None:
    """The tokenizer of a folder that the library wrote, or None if only the library can load it."""
    check_tokenizer_file(folder / FILE)
    try:
        values: dict[str, Any] = json.loads((folder / CONFIG).read_bytes())
        tokenizer = Tokenizer.from_file(str(folder / FILE))
        special = {name: _content(values.get(f"{name}_token")) for name in _SPECIAL}
        length = values["model_max_length"]
        if values["tokenizer_class"] not in _CLASSES or "auto_map" in values or type(length) is not int or length < 1:
            return None
        known = {name: tokenizer.token_to_id(content) for name, content in special.items() if content is not None}
    except Exception:  # tokenizers raises plain Exception; the library reports the problem
        return None
    ids = {name: id for name, id in known.items() if id is not None}
    if len(ids) < len(known) or not ids.keys() >= _NECESSARY:
        return None
    # A tokenizer file may enable both; text is never truncated here, and rows are padded when batches are collated.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return PredictionTokenizer(folder, tokenizer, ids, length)


def copy_tokenizer_files(source: Path, target: Path) -> None:
    for name in (FILE, CONFIG):
        shutil.copyfile(source / name, target / name)


def _content(token: Any) -> str | None:
    """The text of a special token, which the files contain as a string or as a record."""
    content = token.get("content") if isinstance(token, dict) else token
    return None if content is None else str(content)
