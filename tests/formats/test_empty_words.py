"""Empty words in lists of tokens and in columns."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from cases import in_case

from spanwise import read
from spanwise.formats import Ledger

ENTITIES = [{"type": "Loc", "spans": [[2, 3]]}]
FILES = {
    "jsonl": json.dumps({"tokens": ["in", "", "Oslo"], "entities": ENTITIES, "text": "in Oslo"}),
    "spert": json.dumps([{"tokens": ["in", "", "Oslo"], "entities": [{"type": "Loc", "start": 2, "end": 3}]}]),
    "tablert": json.dumps([{"tokens": ["in", "", "Oslo"], "tags": ["O", "O", "U-Loc"]}]),
    "w2ner": json.dumps([{"sentence": ["in", "", "Oslo"], "ner": [{"index": [2], "type": "Loc"}]}]),
    "dygie": json.dumps({"sentences": [["in", "", "Oslo"]], "ner": [[[2, 2, "Loc"]]]}),
    "multihead": "#doc 1\n0\tin\tO\t['N']\t[0]\n1\t\tO\t['N']\t[1]\n2\tOslo\tB-Loc\t['N']\t[2]\n",
    "conll": "in\tO\n\tO\nOslo\tB-Loc\n",
}


def test_an_empty_word_is_a_note(tmp_path: Path) -> None:
    for name, text in FILES.items():
        with in_case(name):
            ledger = Ledger()
            (tmp_path / "data").write_text(text)
            (sentence,) = read(tmp_path / "data", name, ledger)
            assert sentence.words == ("in", "\ufffd", "Oslo")
            assert [(e.type, sentence.text_of(e)) for e in sentence.entities] == [("Loc", "Oslo")]
            assert ledger.notes["empty words, replaced by U+FFFD"] == 1


@pytest.mark.skipif(not find_spec("pyarrow"), reason="pyarrow is not installed")
def test_an_empty_word_in_a_table_is_a_note(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"tokens": [["in", "", "Oslo"]], "ner_tags": [["O", "O", "B-Loc"]]})
    pq.write_table(table, tmp_path / "a.parquet")
    ledger = Ledger()
    (sentence,) = read(tmp_path / "a.parquet", ledger=ledger)
    assert (sentence.words, ledger.notes["empty words, replaced by U+FFFD"]) == (("in", "\ufffd", "Oslo"), 1)
