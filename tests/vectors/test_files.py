"""Reading and writing of word vectors, and errors for invalid files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spanwise import FormatError, SpanwiseError
from spanwise.vectors import Vectors, read_vectors, write_vectors


def write_file(folder: Path, text: str, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def as_dict(vectors: Vectors) -> dict[str, list[float]]:
    assert vectors.table.dtype == np.float32
    return dict(zip(vectors.words, vectors.table.tolist(), strict=True))


def test_glove_text(tmp_path: Path) -> None:
    vectors = read_vectors(write_file(tmp_path, "the 0.5 -1 2e-1\nof 1 2 3\n"))
    assert vectors.size == 3
    assert as_dict(vectors) == {"the": [0.5, -1, pytest.approx(0.2)], "of": [1, 2, 3]}


def test_word2vec_text_with_header_trailing_spaces_and_blank_lines(tmp_path: Path) -> None:
    path = write_file(tmp_path, "\ufeff2 3\r\nthe 0.5 -1 2 \r\n\r\nof 1 2 3 \r\n", "vectors.vec")
    assert as_dict(read_vectors(path)) == {"the": [0.5, -1, 2], "of": [1, 2, 3]}


def test_a_word_may_be_a_number(tmp_path: Path) -> None:
    assert as_dict(read_vectors(write_file(tmp_path, "7 1 2\n1.5 3 4\n"))) == {"7": [1, 2], "1.5": [3, 4]}


def test_words_with_spaces_are_split_from_the_right(tmp_path: Path) -> None:
    path = write_file(tmp_path, ". . . 1 2 3\nthe 4 5 6\nat name@place.org 7 8 9\na\u00a0b\u2028c 1 1 1\n. . 2 2 2\n")
    assert as_dict(read_vectors(path)) == {
        ". . .": [1, 2, 3],
        "the": [4, 5, 6],
        "at name@place.org": [7, 8, 9],
        "a\u00a0b\u2028c": [1, 1, 1],
        ". .": [2, 2, 2],
    }


def test_the_first_vector_of_a_repeated_word_is_used(tmp_path: Path) -> None:
    assert as_dict(read_vectors(write_file(tmp_path, "a 1\nb 2\na 3\nc 4\n"))) == {"a": [1], "b": [2], "c": [4]}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("the 1 2 3\nof 1 2\n", 2, "expected 3 values after the word, as in line 1, found 2"),
        ("the 1 2 3\n\nof 1 2 3 4\n", 3, "expected 3 values after the word, as in line 1, found 4"),
        ("2 3\nthe 1 2 3\nof 1\n", 3, "expected 3 values after the word, as the header declares, found 1"),
        ("the 1 2 3\nof 1 two 3\n", 2, "'two' is not a number; expected a word and 3 values"),
        ("the 1 2 3\nof 1  3\n", 2, "'' is not a number; expected a word and 3 values"),
        ("the 1 2\nof 1 nan\n", 2, "a value is not finite, or too large for 32 bits"),
        ("the 1 2\n\nof 1 1e99\n", 3, "a value is not finite, or too large for 32 bits"),
        ("the\nof 1\n", 1, "expected values after the word, found none"),
        ("3 0\nthe\n", 1, "the header declares vectors of 0 values"),
        ("a 1 2\n 1 2\n", 2, "expected a word at the start of the line, found a space"),
        ("hello there you\n", 1, "'there' is not a number; expected a word and 2 values"),
        ("5 2\nthe 1 2\n", None, "the header declares 5 words, but the file has 1"),
        ("", None, "found no word vectors; expected lines of a word and its values"),
        ("4 2\n", None, "found no word vectors; expected lines of a word and its values"),
    ],
)
def test_errors_in_text_name_the_line(tmp_path: Path, text: str, line: int | None, problem: str) -> None:
    path = write_file(tmp_path, text)
    with pytest.raises(FormatError) as caught:
        read_vectors(path)
    assert str(caught.value) == f"{path}:{line}: {problem}" if line else f"{path}: {problem}"


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"the 1 2\nof\xff 1 2\n")
    with pytest.raises(FormatError, match=r"vectors\.txt:2: not UTF-8"):
        read_vectors(path)


def test_missing_and_unsupported_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file or folder of word vectors"):
        read_vectors(tmp_path / "absent.txt")
    with pytest.raises(
        FormatError,
        match=r"expected word vectors as text \(word v1 v2 …\), word2vec's \.bin, \.npy with its words, or a folder",
    ):
        read_vectors(write_file(tmp_path, "", "vectors.gz"))


def save_table(folder: Path, values: object, name: str = "table.npy") -> Path:
    np.save(folder / name, np.asarray(values))
    return folder / name


def test_a_table_with_words_in_text(tmp_path: Path) -> None:
    path = save_table(tmp_path, np.array([[1, 2], [3, 4]], np.float64))
    write_file(tmp_path, "the\na b\n", "words.txt")
    expected = {"the": [1, 2], "a b": [3, 4]}
    assert as_dict(read_vectors(path)) == expected
    assert as_dict(read_vectors(tmp_path)) == expected


def test_a_words_file_of_the_same_name_is_preferred(tmp_path: Path) -> None:
    path = save_table(tmp_path, np.ones((1, 2), np.float32))
    write_file(tmp_path, "licence\n", "README.txt")
    write_file(tmp_path, "the\n", "table.txt")
    assert read_vectors(path).words == ("the",)


def test_a_table_with_words_in_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    save_table(tmp_path, np.array([[1, 2], [3, 4]], np.float16))
    words = tmp_path / "index.parquet"
    parquet.write_table(pyarrow.table({"index": ["the", "of"], "count": [5, 3]}), words)
    assert as_dict(read_vectors(tmp_path)) == {"the": [1, 2], "of": [3, 4]}
    parquet.write_table(pyarrow.table({"a": ["the", "of"], "b": ["x", "y"]}), words)
    with pytest.raises(FormatError, match="expected one column of words, found 2 columns of text"):
        read_vectors(tmp_path)
    parquet.write_table(pyarrow.table({"a": ["the", None]}), words)
    with pytest.raises(FormatError, match="row 1 has no word"):
        read_vectors(tmp_path)
    words.write_text("no parquet")
    with pytest.raises(FormatError, match=r"index\.parquet: not a parquet file"):
        read_vectors(tmp_path)


@pytest.mark.parametrize(
    ("values", "words", "problem"),
    [
        ([[1.0, 2.0]], "the\nof\n", r"expected 1 word, one per row of table\.npy, found 2"),
        ([1.0, 2.0], "the\nof\n", "expected a table of floats with one row per word"),
        ([[1], [2]], "the\nof\n", "expected a table of floats with one row per word"),
        ([["a"], ["b"]], "the\nof\n", "expected a table of floats with one row per word"),
        ([[1.0], [np.inf]], "the\nof\n", r"row 1 \('of'\) has a value that is not finite"),
        ([[1.0], [1e99]], "the\nof\n", r"row 1 \('of'\) has a value that is not finite"),
    ],
)
def test_invalid_tables(tmp_path: Path, values: object, words: str, problem: str) -> None:
    path = save_table(tmp_path, values)
    write_file(tmp_path, words, "words.txt")
    with pytest.raises(FormatError, match=problem):
        read_vectors(path)


def test_missing_or_invalid_tables_and_words(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"expected vectors\.safetensors with words\.json, or one \.npy file; found none"):
        read_vectors(tmp_path)
    path = write_file(tmp_path, "text", "table.npy")
    with pytest.raises(FormatError, match=r"expected one \.parquet or \.txt file with the words of table\.npy; found none"):
        read_vectors(path)
    write_file(tmp_path, "the\n", "words.txt")
    with pytest.raises(FormatError, match=r"table\.npy: not a NumPy table"):
        read_vectors(path)
    np.save(path, np.array([{"a": 1}], dtype=object))
    with pytest.raises(FormatError, match=r"table\.npy: not a NumPy table"):
        read_vectors(path)


# --- writing ------------------------------------------------------------------------------------------------------------

WORDS = ("the", "IL-2", "7", "1.5", "\u00a0", "水", "\t", "a" * 300, "\u2028x", "é")


def random_vectors(words: tuple[str, ...] = WORDS, size: int = 7) -> Vectors:
    table = np.random.default_rng(3).normal(size=(len(words), size)).astype(np.float32)
    table[0, :4] = 1e-38, 3e38, -0.0, 1 / 3
    return Vectors(words, table)


def assert_equal(actual: Vectors, expected: Vectors) -> None:
    assert actual.words == expected.words
    assert np.array_equal(actual.table, expected.table)


@pytest.mark.parametrize("name", ["v.txt", "v.vec", "v.bin", "v"])
def test_written_vectors_are_read_exactly(tmp_path: Path, name: str) -> None:
    vectors = random_vectors()
    assert write_vectors(vectors, tmp_path / name) == 0
    assert_equal(read_vectors(tmp_path / name), vectors)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["v.txt", "v.vec", "v.bin"])
def test_words_that_files_cannot_represent_are_skipped(tmp_path: Path, name: str) -> None:
    vectors = random_vectors(("the", "a b", "", "x\ny", "\ud800", "of"))
    assert write_vectors(vectors, tmp_path / name) == 4
    assert_equal(read_vectors(tmp_path / name), Vectors(("the", "of"), vectors.table[[0, 5]]))
    assert write_vectors(vectors, tmp_path / "folder") == 0
    assert_equal(read_vectors(tmp_path / "folder"), vectors)


@pytest.mark.parametrize(("name", "skipped"), [("v.txt", 2), ("v.vec", 0), ("v.bin", 0), ("v", 0)])
def test_a_first_word_that_starts_with_a_byte_order_mark(tmp_path: Path, name: str, skipped: int) -> None:
    vectors = random_vectors(("\ufeffthe", "\ufeff", "of", "\ufeffof"))
    assert write_vectors(vectors, tmp_path / name) == skipped
    assert_equal(read_vectors(tmp_path / name), Vectors(vectors.words[skipped:], vectors.table[skipped:]))


def test_files_match_the_formats_of_other_programs(tmp_path: Path) -> None:
    vectors = Vectors(("the", "of"), np.array([[0.5, -1], [2, 0.1]], np.float32))
    write_vectors(vectors, tmp_path / "v.txt")
    write_vectors(vectors, tmp_path / "v.vec")
    write_vectors(vectors, tmp_path / "v.bin")
    assert (tmp_path / "v.txt").read_text() == "the 0.5 -1\nof 2 0.100000001\n"
    assert (tmp_path / "v.vec").read_text() == "2 2\nthe 0.5 -1\nof 2 0.100000001\n"
    assert (tmp_path / "v.bin").read_bytes() == b"2 2\nthe " + vectors.table[0].tobytes() + b"of " + vectors.table[1].tobytes()
    # word2vec itself ends each vector with a line end.
    (tmp_path / "w.bin").write_bytes(b"2 2\nthe " + vectors.table[0].tobytes() + b"\nof " + vectors.table[1].tobytes() + b"\n")
    assert_equal(read_vectors(tmp_path / "w.bin"), vectors)


def test_files_are_compatible_with_gensim(tmp_path: Path) -> None:
    models = pytest.importorskip("gensim.models", reason="gensim is not installed")
    vectors = random_vectors(("the", "IL-2", "7", "水"))
    for name, options in {"v.txt": {"no_header": True}, "v.vec": {}, "v.bin": {"binary": True}}.items():
        write_vectors(vectors, tmp_path / name)
        loaded = models.KeyedVectors.load_word2vec_format(str(tmp_path / name), **options)
        assert loaded.index_to_key == list(vectors.words)
        assert np.array_equal(loaded.vectors, vectors.table)
        resaved = tmp_path / f"gensim-{name}"
        loaded.save_word2vec_format(str(resaved), binary=name == "v.bin", write_header=name != "v.txt")
        assert read_vectors(resaved).words == vectors.words
        np.testing.assert_allclose(read_vectors(resaved).table, vectors.table, rtol=1e-6)


def test_an_unknown_extension_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match=r"v\.kv: unknown extension; expected \.txt"):
        write_vectors(random_vectors(), tmp_path / "v.kv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty; expected word2vec's binary format"),
        (b"the 1 2\n", "expected word2vec's binary format, with the number of words and values in the first line"),
        (b"0 3\n", "expected word2vec's binary format, with the number of words"),
        (b"no line end", "expected word2vec's binary format, with the number of words"),
        (b"2 2\nthe \0\0\0\0\0\0\0\0", "the file is too short for its header: 2 words of 2 values"),
        (b"9999999999 300\nthe ", "the file is too short for its header"),
        (b"1 2\nthe \0\0\0\0\0\0\0", "word 1 of 1 is incomplete or invalid"),
        (b"1 1\nwithoutspace", "word 1 of 1 is incomplete or invalid"),
        (b"1 1\n\xff \0\0\0\0", "word 1 of 1 is not UTF-8, or the values before it are invalid"),
        (b"1 1\nthe \0\0\0\0more", "the file has more words than its header declares \\(1\\)"),
        (b"1 1\nthe " + np.float32(np.nan).tobytes(), r"word 1 of 1 \('the'\) has a value that is not finite"),
    ],
)
def test_invalid_binary_files(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "v.bin").write_bytes(content)
    with pytest.raises(FormatError, match=problem):
        read_vectors(tmp_path / "v.bin")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (None, r"words\.json: the words of the vectors are missing"),
        ("no json", r"words\.json: expected a JSON list of words"),
        ('{"the": 1}', r"words\.json: expected a list of words"),
        ('["the", 1]', r"words\.json: expected a list of words"),
        ('["the"]', r"words\.json: expected 10 words, one per row of vectors\.safetensors, found 1"),
    ],
)
def test_invalid_folders(tmp_path: Path, words: str | None, problem: str) -> None:
    write_vectors(random_vectors(), tmp_path / "v")
    path = tmp_path / "v" / "words.json"
    if words is None:
        path.unlink()
    else:
        path.write_text(words)
    with pytest.raises(FormatError, match=problem):
        read_vectors(tmp_path / "v")


def test_an_invalid_safetensors_file(tmp_path: Path) -> None:
    write_vectors(random_vectors(), tmp_path / "v")
    (tmp_path / "v" / "vectors.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(FormatError, match=r"vectors\.safetensors: not a table of word vectors"):
        read_vectors(tmp_path / "v")
