"""A small sample file in every format, for tests of conversion and of damaged input."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, Sentence, write
from spanwise.formats import formats


def _lines(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _array(*records: Any) -> str:
    return "[\n" + ",\n".join(json.dumps(record, ensure_ascii=False) for record in records) + "\n]\n"


_REGION = {"from_name": "label", "to_name": "text", "type": "labels"}
TEXTS = {
    "jsonl": _lines(
        {"id": "s1", "document": "d", "position": 0, "tokens": ["Port", "of", "北京"], "text": "Port of 北京. ", "source": "map",
         "pos": ["N", "P", "N"], "entities": [{"type": "Org", "spans": [[0, 1], [2, 3]], "score": 0.5}, {"type": "Loc", "spans": [[2, 3]]}],
         "relations": [{"type": "in", "head": 0, "tail": 1}]},
        {"id": 2, "document": "d", "position": 1, "tokens": ["Zinc", "🌊"], "entities": [{"type": "Drug", "spans": [[0, 1]], "cas": "x"}],
         "links": [{"type": "from", "head": 0, "position": 0, "tail": 1}]},
        {"tokens": []},
    ),
    "dygie": _lines(
        {"doc_key": "d1", "dataset": "sci", "sentences": [["Zinc", "harms"], ["It", "does"]], "ner": [[[0, 0, "Drug", 2.5, 0.9]], [[2, 2, "It"]]],
         "relations": [[[0, 0, 2, 2, "same"]], []], "clusters": [[[0, 0], [2, 2]]], "predicted_ner": [[], []], "weight": 1.0},
        {"doc_key": "d2", "sentences": [["Oslo"]]},
    ),
    "w2ner": _array(
        {"sentence": ["renal", "and", "liver", "pain"], "ner": [{"index": [0, 3], "type": "Sym"}, {"index": [2, 3], "type": "Sym"}], "word": [1]},
        {"sentence": ["no"], "ner": []},
    ),
    "casrel": _array({"text": "Oslo lies in Norway .", "triple_list": [["Oslo", "country", "Norway"], ["Norway", "has", "Oslo"]], "relSize": 2}),
    "cmeee": _array(
        {"text": "头痛三天", "entities": [{"start_idx": 0, "end_idx": 1, "type": "sym", "entity": "头痛"}], "page": 3},
        {"text": "无", "entities": []},
    ),
    "cluener": _lines({"text": "去北京", "label": {"address": {"北京": [[1, 2]]}}, "id": 4}, {"text": "测试"}),
    "tablert": _array(
        {"tokens": ["New", "York", "calls"], "tags": ["B-Loc", "L-Loc", "O"], "relations": [{"type": "R", "head": 0, "tail": 0}], "orig_id": 5}
    ),
    "spert": _array(
        {"tokens": ["Oslo", "in", "Norway"], "entities": [{"type": "Loc", "start": 0, "end": 1}, {"type": "Loc", "start": 2, "end": 3}],
         "relations": [{"type": "In", "head": 0, "tail": 1}], "orig_id": 83, "ltokens": ["so"], "rtokens": []}
    ),
    "prodigy": _lines(
        {"text": "Oslo 🌊.", "_input_hash": 12, "_task_hash": -3, "meta": {"score": 0.5}, "_view_id": "ner_manual", "answer": "accept",
         "tokens": [{"text": "Oslo", "start": 0, "end": 4, "id": 0, "ws": True}, {"text": "🌊", "start": 5, "end": 6, "id": 1},
                    {"text": ".", "start": 6, "end": 7, "id": 2}],
         "spans": [{"start": 0, "end": 4, "token_start": 0, "token_end": 0, "label": "Loc"}, {"start": 5, "end": 7, "label": "X"}],
         "relations": [{"head": 0, "child": 2, "head_span": {"start": 0, "end": 4, "label": "Loc"}, "child_span": {"start": 5, "end": 7, "label": "X"}, "label": "at"}]},
        {"text": "No.", "spans": [], "answer": "reject"},
    ),
    "doccano": _lines(
        {"id": 7, "text": "Oslo lies. In Norway.", "entities": [{"id": 1, "label": "Loc", "start_offset": 0, "end_offset": 4},
         {"id": 2, "label": "Loc", "start_offset": 14, "end_offset": 20}], "relations": [{"id": 9, "from_id": 1, "to_id": 2, "type": "in"}],
         "Comments": [], "meta": {"a": 1}},
        {"id": 8, "text": "Zinc", "label": [[0, 4, "Drug"]]},
    ),
    "label_studio": _array(
        {"id": 3, "data": {"text": "Zinc oxide.", "source": "web"}, "project": 1, "updated_at": "2024-01-01", "predictions": [],
         "annotations": [{"id": 9, "completed_by": 1, "lead_time": 3.5, "result": [
             {**_REGION, "id": "a", "value": {"start": 0, "end": 4, "text": "Zinc", "labels": ["Drug"]}, "origin": "manual"},
             {**_REGION, "id": "b", "value": {"start": 0, "end": 10, "text": "Zinc oxide", "labels": ["Drug", "Dust"]}},
             {"type": "relation", "from_id": "a", "to_id": "b", "direction": "right", "labels": ["part"]}]}]},
        {"id": 4, "data": {"text": "Nothing"}, "annotations": [{"result": [], "was_cancelled": True}]},
    ),
    "genia_xml": '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE set SYSTEM "gpml.dtd">\n<set>\n<article><articleinfo>\n'
    "<bibliomisc>M:1</bibliomisc></articleinfo>\n<title><sentence>A <cons lex=\"B_c\" sem=\"G#protein_molecule\">"
    '<cons sem="G#DNA_N/A">B</cons> c</cons>-like &gt; d.</sentence></title>\n<abstract>\n'
    '<sentence><cons lex="x" sem="(AND G#cell_line G#virus)"><cons lex="y">E</cons></cons></sentence></abstract></article></set>\n',
    "bioc_xml": '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE collection SYSTEM "BioC.dtd">\n<collection><source>PubMed</source>'
    "<date>2024</date><key>x.key</key>\n<document><id>11</id><infon key=\"license\">CC0</infon>\n<passage><infon key=\"type\">title</infon>"
    '<offset>0</offset><text>Zinc fume &amp; x</text><annotation id="a1"><infon key="type">Chemical</infon><infon key="MESH">C1</infon>'
    '<location offset="0" length="4"/><text>Zinc</text></annotation></passage>\n<passage><infon key="type">abstract</infon><offset>14</offset>'
    '<text>Renal and liver pain.</text><annotation id="a2"><infon key="type">Disease</infon><location offset="14" length="5"/>'
    '<location offset="30" length="4"/><text>Renal pain</text></annotation></passage><relation id="R1"><infon key="type">CID</infon>'
    '<node refid="a1" role="Chemical"/><node refid="a2" role="Disease"/></relation>\n<relation id="R2"><infon key="relation">CID</infon>'
    '<infon key="Chemical">C1</infon></relation></document></collection>\n',
    "bioc_json": _lines(
        {"source": "PubTator", "date": "", "key": "", "infons": {}, "documents": [
            {"id": "11", "infons": {"license": "CC0"}, "passages": [
                {"offset": 0, "infons": {"type": "title"}, "text": "Zinc fume", "annotations": [
                    {"id": "a1", "infons": {"type": "Chemical", "score": 0.5}, "text": "Zinc", "locations": [{"offset": 0, "length": 4}]}]},
                {"offset": 10, "infons": {"type": "abstract"}, "text": "Renal 🌊 and liver pain.", "annotations": [
                    {"id": "a2", "infons": {"type": "Disease"}, "text": "Renal pain",
                     "locations": [{"offset": 10, "length": 5}, {"offset": 28, "length": 4}]}], "relations": []}],
             "relations": [{"id": "R1", "infons": {"type": "CID"}, "nodes": [{"refid": "a1", "role": "x"}, {"refid": "a2", "role": ""}]},
                           {"id": "R2", "infons": {"type": "CID", "Chemical": "C1"}, "nodes": []}]},
            {"id": 12, "passages": [{"offset": 0, "text": "Iron"}]}]},
    ),
    "pubtator": "11|t|Zinc fume\n11|a|Zinc oxide harms.\n11\t0\t4\tZinc\tChemical\tC1\n11\t10\t20\tZinc oxide\tChemical\tC2\tx\n"
    "11\tCID\tC1\tD1\n\n12|t|Iron\n12\t0\t4\tIron\tC\n",
    "csv": "document,start,end,type,text,score,document_text,concept\n11,0,4,Chemical,Zinc,0.5,\"Zinc, or \"\"Zn\"\".\nRenal and liver pain.\",C1\n"
    "11,16;32,21;36,Disease,Renal pain,,,\n12,,,,,,Iron,\n",
    "ade_rel": "1|Zinc gave rash | pain.|rash|20|24|Zinc|10|14\n1|Zinc gave rash | pain.|pain|27|31|Zinc|10|14\n",
    "multihead": "#doc 17\n0\tOslo\tB-Loc\t['In', 'At']\t[2, 2]\n1\tin\tO\t['N']\t[1]\n2\tNorway\tB-Loc\t['N']\t[2]\n\n#doc 18\n0\tNo\tO\t['N']\t[0]\n",
    "weibo": "北0\tB-LOC.NAM\n京1\tI-LOC.NAM\n好0\tO\n\n去0\tO\n",
    "brat": "T1\tDisease 0 5;16 29\tAcute liver failure\nT2\tPlace 33 37\tOslo\nT3\tEvent 6 11\trenal\nR1\tIn Arg1:T1 Arg2:T2\n"
    "E1\tBe:T3 Theme:T2\n*\tEquiv T1 T2\nA1\tNegation T1\nN1\tReference T2 Wikidata:Q585\tOslo\n#1\tAnnotatorNotes R1\tseen\n",
    "conll": "# id = s1\nOslo\tNNP\tB-LOC\tO\nPort\tNN\tI-LOC\tB-X\n\n-DOCSTART-\t-\tO\tO\n\nNo\tUH\tO\tO\n",
}  # fmt: skip
BRAT_TEXT = "Acute renal\nand liver failure in Oslo. Zinc oxide caused it.\n"
NEEDS = {"docbin": "spacy", "hf_dataset": "pyarrow"}


def path_of(name: str, folder: Path) -> Path:
    """Return the path of a format's sample in a folder."""
    return folder / f"sample{''.join(formats()[name].extensions[:1]) or '.ann'}"


def put(name: str, folder: Path, content: bytes | None = None) -> Path:
    """Write a sample of a format, or other content in its place; for brat also the text."""
    folder.mkdir(exist_ok=True)
    path = path_of(name, folder)
    if content is not None or name in TEXTS:
        path.write_bytes(content if content is not None else TEXTS[name].encode())
    else:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
        write(_sentences(), path, name)
    if name == "brat":
        path.with_suffix(".txt").write_text(BRAT_TEXT)
    return path


def _sentences() -> Iterable[Sentence]:
    yield Sentence("1", ("Port", "of", "Oslo"), (Entity("Org", ((0, 3),)),), document="1", position=0, extra={"page": 4})
    yield Sentence("2", ("北", "🌊"), (Entity("Metal", ((1, 2),)),), document="1", position=1)
