"""CoNLL columns: detected and given layouts, nested levels, repairs, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spanwise
from spanwise import Entity, FormatError, Relation, Sentence, SpanwiseError
from spanwise.formats import Ledger, detect
from spanwise.formats.conll import read, write


def load(folder: Path, text: str, ledger: Ledger | None = None, **options: Any) -> list[Sentence]:
    path = folder / "data.conll"
    path.write_text(text, encoding="utf-8")
    return list(read(path, ledger or Ledger(), **options))


def entity_texts(sentence: Sentence) -> list[tuple[str, str]]:
    return [(e.type, sentence.text_of(e)) for e in sentence.entities]


def test_two_columns(tmp_path: Path) -> None:
    first, second = load(tmp_path, "Oslo\tB-LOC\nis\tO\n\n\nNew\tB-LOC\nYork\tI-LOC\n")
    assert entity_texts(first) == [("LOC", "Oslo")]
    assert entity_texts(second) == [("LOC", "New York")]
    assert (first.id, second.id) == ("data-0", "data-1")


def test_space_separators_and_the_chunk_column_of_conll_2003(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n-DOCSTART- -X- -X- O\n\nOslo NNP B-NP B-LOC\n"
    first, second = load(tmp_path, text, pos=1)
    assert entity_texts(first) == [("ORG", "EU")]
    assert first.pos == ("NNP", "VBZ")
    assert (first.document, first.position, second.document) == ("data-d1", 0, "data-d2")


def test_the_chunk_column_of_german_conll_2003(tmp_path: Path) -> None:
    """Its chunks are those of TreeTagger."""
    text = "Günter <unknown> NE I-NC I-PER\nwar sein VAFIN I-VC O\nin in APPR I-PC O\nKöln Köln NE I-PC I-LOC\n"
    (sentence,) = load(tmp_path, text)
    assert entity_texts(sentence) == [("PER", "Günter"), ("LOC", "Köln")]


def test_words_that_are_numbers_with_given_columns(tmp_path: Path) -> None:
    (one,) = load(tmp_path, "0\tCD\tO\n1\tCD\tB-N\n", labels=(-1,), pos=1)
    assert (one.words, one.pos, entity_texts(one)) == (("0", "1"), ("CD", "CD"), [("N", "1")])
    (one,) = load(tmp_path, "0\tB-M\tO\n1\tO\tB-N\n", labels=(1,))
    assert (one.words, entity_texts(one)) == (("0", "1"), [("M", "0")])


def test_numbered_words_comments_and_two_levels(tmp_path: Path) -> None:
    text = "#\thttp://x\t[2010]\t\n1\tUni\tB-ORG\tO\n2\tOslo\tI-ORG\tB-LOC\n\n# sent_id = s9\n1\t#\tO\tO\n"
    ledger = Ledger()
    first, second = load(tmp_path, text, ledger)
    assert entity_texts(first) == [("ORG", "Uni Oslo"), ("LOC", "Oslo")]
    assert (second.id, second.words) == ("s9", ("#",))
    assert ledger.notes == {"comment lines skipped": 1}


def test_trailing_tabs_are_ignored(tmp_path: Path) -> None:
    (sentence,) = load(tmp_path, "Sir\tB-PER\tO\t\nX\tI-PER\tB-PER\t\n")
    assert entity_texts(sentence) == [("PER", "Sir X"), ("PER", "X")]


def test_tags_without_prefixes(tmp_path: Path) -> None:
    (sentence,) = load(tmp_path, "Oslo\tplace-city\nand\tO\nNew\tplace-city\nYork\tplace-city\n")
    assert entity_texts(sentence) == [("place-city", "Oslo"), ("place-city", "New York")]


@pytest.mark.parametrize("pos", ["", "NN "])
@pytest.mark.parametrize("prefix", ["B-", ""])
def test_spaces_in_types_of_space_separated_columns(tmp_path: Path, pos: str, prefix: str) -> None:
    text = f"Ada {pos}{prefix}First name\nLovelace {pos}{prefix}Last name\nleft {pos}O\nOslo {pos}{prefix}City\n"
    (sentence,) = load(tmp_path, text)
    assert entity_texts(sentence) == [("First name", "Ada"), ("Last name", "Lovelace"), ("City", "Oslo")]
    (sentence,) = load(tmp_path, text, separator="space")
    assert entity_texts(sentence)[0] == ("First name", "Ada")


def test_spaces_in_types_after_the_lines_that_show_the_columns(tmp_path: Path) -> None:
    *_, last = load(tmp_path, "Oslo B-City\nis O\n\n" * 10_000 + "Ada B-First name\n")
    assert entity_texts(last) == [("First name", "Ada")]


def test_words_with_spaces_are_not_read_as_types(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=":3: 'York' in column 1 is not a tag"):
        load(tmp_path, "Rome B-LOC\nin O\nNew York B-LOC\nis O\n")


def test_columns_can_be_given(tmp_path: Path) -> None:
    text = "B-X\tone\tO\nI-X\ttwo\tB-Y\n"
    (sentence,) = load(tmp_path, text, words=1, labels=(0,))
    assert entity_texts(sentence) == [("X", "one two")]
    (sentence,) = load(tmp_path, text, words=1, labels=(0, -1))
    assert entity_texts(sentence) == [("X", "one two"), ("Y", "two")]


def test_repairs_and_duplicates_are_noted(tmp_path: Path) -> None:
    ledger = Ledger()
    (sentence,) = load(tmp_path, "a\tI-X\tI-X\nb\tO\tB-Y\n", ledger)
    assert entity_texts(sentence) == [("X", "a"), ("Y", "b")]
    assert sorted(ledger.notes.values()) == [1, 2]
    assert ledger.lost == 0


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a\tO\nb\n", 2, "found 1 column, expected more"),
        ("a\tO\nb\tB-X\nc\tX-B\n", 3, "'X-B' in column 1 is not a tag"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        load(tmp_path, text, words=0, labels=(1,), separator="tab")
    assert str(caught.value).startswith(f"{tmp_path / 'data.conll'}:{line}: ")
    assert problem in str(caught.value)


def test_a_given_column_without_tags_is_refused(tmp_path: Path) -> None:
    """The last column of CoNLL-U is not a column of tags without a prefix, which would have an O."""
    text = "1\tOslo\tPROPN\tNER=B-LOC\n2\tis\tAUX\tSpaceAfter=No\n3\t.\tPUNCT\t_\n"
    with pytest.raises(FormatError, match=r"column 3 has no tags; expected O and tags such as B-X or X, found NER=B-LOC, "):
        load(tmp_path, text, words=1, labels=(3,))


@pytest.mark.parametrize("options", [{"words": 1}, {"words": -1}, {"words": 1, "labels": (-1,)}])
def test_a_column_cannot_have_words_and_tags(tmp_path: Path, options: dict[str, Any]) -> None:
    """Users may count from 1."""
    with pytest.raises(FormatError, match=r"column 1 is given for words, but has the tags; columns count from 0$"):
        load(tmp_path, "in\tO\nOslo\tB-LOC\n", **options)


def test_text_without_tags_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="conll:labels=3"):
        load(tmp_path, "just words\nof prose\n")


def test_an_empty_file_has_no_sentences(tmp_path: Path) -> None:
    assert load(tmp_path, "") == []
    assert load(tmp_path, "\n\n") == []


NESTED = Sentence(
    "s",
    ("Bank", "of", "Japan", "and", "Oslo"),
    (Entity("ORG", ((0, 3),)), Entity("LOC", ((2, 3),)), Entity("LOC", ((4, 5),)), Entity("X", ((0, 1), (4, 5)))),
    (Relation("in", 0, 1),),
)


def test_losses_are_counted(tmp_path: Path) -> None:
    ledger = Ledger()
    write([NESTED], tmp_path / "out.conll", ledger)
    assert ledger.losses == {
        ("entities", "discontinuous"): 1,
        ("entities", "overlapping another"): 1,
        ("relations", "not supported by the format"): 1,
    }
    (back,) = read(tmp_path / "out.conll", Ledger())
    assert entity_texts(back) == [("ORG", "Bank of Japan"), ("LOC", "Oslo")]


@pytest.mark.parametrize("scheme", ["bio", "bioes", "bmes", "bilou", "iob1"])
@pytest.mark.parametrize("separator", ["tab", "space"])
def test_nested_entities_in_several_columns_in_every_scheme(tmp_path: Path, scheme: str, separator: str) -> None:
    ledger = Ledger()
    nested = Sentence("s", NESTED.words, NESTED.entities[:3])
    write([nested, nested], tmp_path / "o.conll", ledger, levels=2, scheme=scheme, separator=separator, ids=True)
    assert ledger.lost == 0
    back = list(read(tmp_path / "o.conll", Ledger()))
    assert [set(s.entities) for s in back] == [set(nested.entities)] * 2
    assert [s.id for s in back] == ["s", "s"]


def test_documents_and_parts_of_speech_can_be_written(tmp_path: Path) -> None:
    sentences = [
        Sentence(f"{d}-{p}", ("a", "b"), pos=("N", "V"), document=d, position=p) for d, p in (("x", 0), ("x", 1), ("y", 0))
    ]
    write(sentences, tmp_path / "o.conll", Ledger(), pos=True, documents=True)
    back = list(read(tmp_path / "o.conll", Ledger(), pos=1))
    assert [(s.document, s.position, s.pos) for s in back] == [
        ("o-d1", 0, ("N", "V")), ("o-d1", 1, ("N", "V")), ("o-d2", 0, ("N", "V")),
    ]  # fmt: skip


def test_replaced_words_are_counted(tmp_path: Path) -> None:
    ledger = Ledger()
    write([Sentence("s", ("a\tb", "\ufeffc", " ", "x\r"))], tmp_path / "o.conll", ledger)
    assert ledger.lost == 3
    (back,) = read(tmp_path / "o.conll", Ledger())
    assert back.words == ("a_b", "_c", " ", "x_")
    ledger = Ledger()
    write([Sentence("s", ())], tmp_path / "o.conll", ledger)
    assert ledger.losses == {("sentences", "without words"): 1}


@pytest.mark.parametrize(
    ("sample", "first", "corpus"),
    [
        ("germeval14/raw_sample/NER-de-dev.sample.tsv", 2, "germeval14/dev.jsonl"),
        ("germeval14/raw_sample/germ.dev.iob2.sample", 1, "germeval14/dev.jsonl"),
        ("ncbi_disease/raw_sample/devel.sample.tsv", 1, "ncbi_disease/dev.jsonl"),
        ("litbank/raw_sample/105_persuasion_brat.tsv", 1, "litbank"),
    ],
)
def test_real_samples_agree_with_their_corpora(shared_data: Path, tmp_path: Path, sample: str, first: int, corpus: str) -> None:
    files = [shared_data / corpus] if corpus.endswith("jsonl") else sorted((shared_data / corpus).glob("*.jsonl"))
    expected: dict[tuple[str, ...], set[tuple[str, int, int]]] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            expected[tuple(record["tokens"])] = {(e["type"], *e["spans"][0]) for e in record["entities"]}
    ledger = Ledger()
    sentences = list(read(shared_data / sample, ledger))
    # The sample may end in the middle of its last sentence.
    assert len(sentences) > 40
    for sentence in sentences[:-1]:
        assert {(e.type, *e.range) for e in sentence.entities} == expected[sentence.words]
    tags = [line for line in (shared_data / sample).read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    starts = sum(cell.startswith("B-") for line in tags for cell in line.split("\t")[first:])
    assert sum(len(s.entities) for s in sentences) == starts
    assert ledger.lost == 0
    written = Ledger()
    write(sentences, tmp_path / "out.conll", written, levels=4)
    assert written.lost == 0
    back = list(read(tmp_path / "out.conll", Ledger()))
    assert [(s.words, set(s.entities)) for s in back] == [(s.words, set(s.entities)) for s in sentences]


def test_a_document_line_ends_the_previous_sentence(tmp_path: Path) -> None:
    first, second = load(tmp_path, "-DOCSTART- O\nOslo B-LOC\nwaits O\n-DOCSTART- O\nBergen B-LOC\n")
    assert (first.words, first.document, entity_texts(first)) == (("Oslo", "waits"), "data-d1", [("LOC", "Oslo")])
    assert (second.words, second.document, second.position) == (("Bergen",), "data-d2", 0)


def test_spaces_around_tags_are_trimmed(tmp_path: Path) -> None:
    ledger = Ledger()
    (sentence,) = load(tmp_path, "New\tB-LOC \nYork\tI-LOC\nand\tO \nOslo\t B-LOC\n", ledger)
    assert entity_texts(sentence) == [("LOC", "New York"), ("LOC", "Oslo")]
    assert ledger.notes == {"tags with surrounding spaces, trimmed": 3}
    written = Ledger()
    write([Sentence("s", ("Oslo",), (Entity("LOC ", ((0, 1),)),))], tmp_path / "out.conll", written)
    assert str(written) == "1 entity (with whitespace in the type)"


@pytest.mark.parametrize("line", ["waits", "waits\t0"])
def test_an_error_in_the_first_lines_names_the_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(FormatError, match=r"data\.conll:2: "):
        load(tmp_path, f"Oslo\tB-LOC\n{line}\nBergen\tB-LOC\nalso\tO\n")


UNTYPED = "APC\tO\nadenomatous\tB\npolyposis\tI\ncoli\tI\n\ncolon\tB\ntumour\tB\nis\tO\n"


@pytest.mark.parametrize("name", ["x.tsv", "x.txt"])
def test_tags_without_a_type_get_the_same_type(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(UNTYPED)
    ledger = Ledger()
    assert detect(path).name == "conll"
    first, second = spanwise.read(path, ledger=ledger)
    assert first.entities == (Entity("Entity", ((1, 4),)),)
    assert second.entities == (Entity("Entity", ((0, 1),)), Entity("Entity", ((1, 2),)))
    assert ledger.notes == {"entities tagged without a type, read as Entity (set it with conll:type=NAME)": 3}
    assert next(iter(spanwise.read(path, "conll:type=Disease"))).entities == (Entity("Disease", ((1, 4),)),)


def test_a_typed_tag_among_untyped_tags_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("a\tB\nb\tO\n" * 20_000 + "b\tPER\n")
    with pytest.raises(FormatError, match=r"x.tsv:40001: 'PER' in column 1 is not a tag"):
        list(spanwise.read(path))


@pytest.mark.parametrize("comment", ["# sent one", "# id = 7", "# Paris is", "#"])
def test_comments_among_tags_without_prefixes(tmp_path: Path, comment: str) -> None:
    path = tmp_path / "x.conll"
    path.write_text(f"{comment}\nParis LOC\nis O\n")
    (sentence,) = spanwise.read(path)
    assert (sentence.words, sentence.entities) == (("Paris", "is"), (Entity("LOC", ((0, 1),)),))


def test_a_word_that_looks_like_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("Paris LOC\nis O\n# O\n#1 LOC\n")
    assert next(iter(spanwise.read(path))).words == ("Paris", "is", "#", "#1")


NUMBERED = "# sent_id = s1\n1\twhere\tO\t-\tann\n2\tis\tO\t-\tann\n3\tOslo\tB-LOC\t-\tann\n\n1\tNorway\tB-LOC\t-\tann\n"


def test_the_word_column_is_found_the_same_way_with_given_labels(tmp_path: Path) -> None:
    for labels in ((2,), (-3,)):
        first, second = load(tmp_path, NUMBERED, labels=labels)
        assert (first.words, second.words) == (("where", "is", "Oslo"), ("Norway",))
        assert entity_texts(first) == [("LOC", "Oslo")]


def test_a_token_column_that_counts_is_refused(tmp_path: Path) -> None:
    problem = r"the word column \(0\) only counts the words: 1, 2, 3, 1; use conll:words=1,labels=2$"
    with pytest.raises(FormatError, match=problem):
        load(tmp_path, NUMBERED, words=0, labels=(2,))


def test_the_error_suggests_the_columns_that_work(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"column 2 looks like tags; use conll:words=1,labels=2$"):
        load(tmp_path, NUMBERED)
    (tmp_path / "data.txt").write_text(NUMBERED)
    with pytest.raises(
        SpanwiseError, match=r"cannot detect the format; .* column 2 looks like tags; use conll:words=1,labels=2$"
    ):
        list(spanwise.read(tmp_path / "data.txt"))
    (tmp_path / "letter.txt").write_text("Dear all,\nI take vitamin B-12 daily.\n")
    with pytest.raises(SpanwiseError, match=r"hf_dataset, .*\)$"):
        list(spanwise.read(tmp_path / "letter.txt"))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("in\nOslo\n#\n\n# id = b\nrain\n", ""),  # only words
        ("in _ _ _\nOslo _ _ _\n# _ _ _\n\n# id = b\nrain _ _ _\n", ":labels=3"),  # the test split of a shared task
        ("1\tin\tADP\n2\tOslo\tPROPN\n3\t#\tSYM\n\n# id = b\n1\train\tNOUN\n", ":words=1"),
        ("in\tO\nOslo\tB-X\n#\tO\n\n# id = b\nrain\tX\n", ""),  # an invalid tag
        ("in\tO\nOslo\tB-X\n#\tO\n\n# id = b\nrain\tO\n", ""),
    ],
)
def test_no_tags_are_needed_for_predictions(tmp_path: Path, text: str, options: str) -> None:
    path = tmp_path / "data.conll"
    path.write_text(text)
    sentences = list(spanwise.read(path, f"conll{options}", with_annotations=False))
    assert [(s.id, s.words, s.entities) for s in sentences] == [("data-0", ("in", "Oslo", "#"), ()), ("b", ("rain",), ())]


def test_tables_without_tags_are_not_taken_for_words(tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("Oslo\tNorway\nRome\tItaly\n")
    with pytest.raises(FormatError, match=r"no tag column .*; name the column of words, as in conll:words=0$"):
        list(spanwise.read(path, with_annotations=False))
