"""Detection and conversion of samples in every format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spanwise import convert, read
from spanwise.formats import Ledger, detect, formats, write

RAW = {
    "ade/raw_sample/DRUG-AE.rel.sample": "ade_rel",
    "ade/raw_sample/ade_split_0_test.sample.json": "spert",
    "cluener/raw_sample/dev.sample.json": "cluener",
    "conll04/raw_sample/conll04_dev.sample.json": "spert",
    "conll04/raw_sample/conll04_dev.tablert_bilou.sample.json": "tablert",
    "conll04/raw_sample/multihead_dev.sample.txt": "multihead",
    "genia/raw_sample/GENIAcorpus3.02.sample.xml": "genia_xml",
    "germeval14/raw_sample/NER-de-dev.sample.tsv": "conll",
    "germeval14/raw_sample/germ.dev.iob2.sample": "conll",
    "litbank/raw_sample/105_persuasion_brat.ann": "brat",
    "litbank/raw_sample/105_persuasion_brat.tsv": "conll",
    "ncbi_disease/raw_sample/NCBIdevelopset_corpus.PubTator.sample.txt": "pubtator",
    "ncbi_disease/raw_sample/devel.sample.tsv": "conll",
    "nerel/raw_sample": "brat",
    "webnlg/raw_sample/test_triples.sample.json": "casrel",
    "webnlg_star/raw_sample/test_triples.sample.json": "casrel",
    "weibo/raw_sample/weiboNER_2nd_conll.dev": "weibo",
}


@pytest.mark.parametrize(("sample", "format"), RAW.items(), ids=list(RAW))
def test_raw_samples_are_detected_and_survive_conversion(shared_data: Path, tmp_path: Path, sample: str, format: str) -> None:
    assert detect(shared_data / sample).name == format
    result = convert(shared_data / sample, tmp_path / "out.jsonl")
    assert result.ledger.lost == 0
    ((_, counts),) = result.read.items()
    assert counts["sentences"] > 0
    assert counts["entities"] > 0
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(records) == counts["sentences"]
    assert sum(len(r["entities"]) for r in records) == counts["entities"]
    assert sum(len(r.get("relations", ())) + len(r.get("links", ())) for r in records) == counts["relations"]
    if formats()[format].write:
        ledger = Ledger()
        name = tmp_path / ("again" + (formats()[format].extensions or ("",))[0] * (not formats()[format].writes_folder))
        spec = "conll:levels=4" if format == "conll" else format
        write(read(tmp_path / "out.jsonl"), name, spec, ledger=ledger)
        reread = list(read(name, format))
        assert sum(len(s.entities) for s in reread) == counts["entities"]
        assert sum(len(s.relations) + len(s.links) for s in reread) == counts["relations"]


def test_every_corpus_file_is_detected(shared_data: Path) -> None:
    files = list(shared_data.glob("*/*.jsonl"))
    assert len(files) > 25
    assert {detect(path).name for path in files} == {"jsonl"}


def test_default_ids_count_from_0(tmp_path: Path) -> None:
    texts = {  # of the text formats in which a sentence may lack an id
        "jsonl": '{"tokens": ["a"]}\n' * 2,
        "w2ner": '{"sentence": ["a"], "ner": []}\n' * 2,
        "spert": '{"tokens": ["a"], "entities": []}\n' * 2,
        "tablert": '{"tokens": ["a"], "tags": ["O"]}\n' * 2,
        "casrel": '{"text": "a", "triple_list": []}\n' * 2,
        "cmeee": '{"text": "a", "entities": []}\n' * 2,
        "cluener": '{"text": "a", "label": {}}\n' * 2,
        "dygie": '{"sentences": [["a"]]}\n' * 2,
        "doccano": '{"text": "a", "label": []}\n' * 2,
        "prodigy": '{"text": "a", "spans": []}\n' * 2,
        "label_studio": '{"data": {"text": "a"}, "annotations": []}\n' * 2,
        "conll": "a\tO\n\n" * 2,
        "weibo": "a0\tO\n\n" * 2,
        "multihead": "#doc\n0\ta\tO\t['N']\t[0]\n" * 2,
        "bioc_json": '{"passages": [{"offset": 0, "text": "a"}]}\n' * 2,
        "bioc_xml": "<collection>"
        + "<document><passage><offset>0</offset><text>a</text></passage></document>" * 2
        + "</collection>",
        "genia_xml": f"<set>{'<article><sentence>a</sentence></article>' * 2}</set>",
    }
    assert formats().keys() - texts.keys() == {"ade_rel", "brat", "csv", "docbin", "hf_dataset", "pubtator"}
    for format, text in texts.items():
        (tmp_path / "x.y").write_text(text)
        ids = [s.document if format == "genia_xml" else s.id for s in read(tmp_path / "x.y", format)]
        assert ids == ["x-0", "x-1"], format


def test_docs_of_formats_match_the_registry() -> None:
    page = (Path(__file__).parents[2] / "docs/formats.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (yes|no) \| ([^|]+) \|$", page, re.MULTILINE)
    assert [name for name, _, _ in rows] != []
    assert {name for name, _, _ in rows} == set(formats())
    for name, can_write, content in rows:
        format = formats()[name]
        assert can_write == ("yes" if format.write else "no")
        assert set(content.split(";")[0].split(", ")) - {"flat entities"} == format.supports, name
