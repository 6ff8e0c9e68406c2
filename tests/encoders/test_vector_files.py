"""Word vectors from every kind of file, and what is said of broken ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spanwise import FormatError
from spanwise.encoders.vector_files import Vectors, read_vectors


def written(folder: Path, text: str, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def as_dict(vectors: Vectors) -> dict[str, list[float]]:
    assert vectors.table.dtype == np.float32
    return dict(zip(vectors.words, vectors.table.tolist(), strict=True))


def test_glove_text(tmp_path: Path) -> None:
    vectors = read_vectors(written(tmp_path, "the 0.5 -1 2e-1\nof 1 2 3\n"))
    assert vectors.size == 3
    assert as_dict(vectors) == {"the": [0.5, -1, pytest.approx(0.2)], "of": [1, 2, 3]}


def test_word2vec_text_with_header_trailing_spaces_and_blank_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff2 3\r\nthe 0.5 -1 2 \r\n\r\nof 1 2 3 \r\n", "vectors.vec")
    assert as_dict(read_vectors(path)) == {"the": [0.5, -1, 2], "of": [1, 2, 3]}


def test_a_number_may_be_the_word(tmp_path: Path) -> None:
    assert as_dict(read_vectors(written(tmp_path, "7 1 2\n1.5 3 4\n"))) == {"7": [1, 2], "1.5": [3, 4]}


def test_words_with_spaces_are_split_from_the_right(tmp_path: Path) -> None:
    path = written(tmp_path, ". . . 1 2 3\nthe 4 5 6\nat name@place.org 7 8 9\na\u00a0b\u2028c 1 1 1\n. . 2 2 2\n")
    assert as_dict(read_vectors(path)) == {
        ". . .": [1, 2, 3],
        "the": [4, 5, 6],
        "at name@place.org": [7, 8, 9],
        "a\u00a0b\u2028c": [1, 1, 1],
        ". .": [2, 2, 2],
    }


def test_of_a_word_that_comes_twice_the_first_holds(tmp_path: Path) -> None:
    assert as_dict(read_vectors(written(tmp_path, "a 1\nb 2\na 3\nc 4\n"))) == {"a": [1], "b": [2], "c": [4]}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("the 1 2 3\nof 1 2\n", 2, "2 values behind the word, expected 3, as in line 1"),
        ("the 1 2 3\n\nof 1 2 3 4\n", 3, "4 values behind the word, expected 3, as in line 1"),
        ("2 3\nthe 1 2 3\nof 1\n", 3, "1 value behind the word, expected 3, as the header says"),
        ("the 1 2 3\nof 1 two 3\n", 2, "'two' is not a number; expected a word and 3 values"),
        ("the 1 2 3\nof 1  3\n", 2, "'' is not a number; expected a word and 3 values"),
        ("the 1 2\nof 1 nan\n", 2, "a value is not finite, or too large for 32 bits"),
        ("the 1 2\n\nof 1 1e99\n", 3, "a value is not finite, or too large for 32 bits"),
        ("the\nof 1\n", 1, "no values behind the word"),
        ("3 0\nthe\n", 1, "the header says vectors of 0 values"),
        ("a 1 2\n 1 2\n", 2, "a line begins with its word, this one with a space"),
        ("hello there you\n", 1, "'there' is not a number; expected a word and 2 values"),
        ("5 2\nthe 1 2\n", None, "the header says 5 words, the file has 1"),
        ("", None, "no word vectors in it; expected lines of a word and its values"),
        ("4 2\n", None, "no word vectors in it; expected lines of a word and its values"),
    ],
)
def test_broken_text_is_named_by_its_line(tmp_path: Path, text: str, line: int | None, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FormatError) as caught:
        read_vectors(path)
    assert str(caught.value) == f"{path}:{line}: {problem}" if line else f"{path}: {problem}"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"the 1 2\nof\xff 1 2\n")
    with pytest.raises(FormatError, match=r"vectors\.txt:2: not UTF-8"):
        read_vectors(path)


def test_what_is_not_there_or_not_read(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file of word vectors"):
        read_vectors(tmp_path / "absent.txt")
    with pytest.raises(FormatError, match=r"are read from text \(word v1 v2 …\) or from \.npy"):
        read_vectors(written(tmp_path, "", "vectors.bin"))


def table(folder: Path, values: object, name: str = "table.npy") -> Path:
    np.save(folder / name, np.asarray(values))
    return folder / name


def test_a_table_with_words_in_text(tmp_path: Path) -> None:
    path = table(tmp_path, np.array([[1, 2], [3, 4]], np.float64))
    written(tmp_path, "the\na b\n", "words.txt")
    expected = {"the": [1, 2], "a b": [3, 4]}
    assert as_dict(read_vectors(path)) == expected
    assert as_dict(read_vectors(tmp_path)) == expected


def test_words_of_the_same_name_are_preferred(tmp_path: Path) -> None:
    path = table(tmp_path, np.ones((1, 2), np.float32))
    written(tmp_path, "licence\n", "README.txt")
    written(tmp_path, "the\n", "table.txt")
    assert read_vectors(path).words == ("the",)


def test_a_table_with_words_in_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table(tmp_path, np.array([[1, 2], [3, 4]], np.float16))
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
        ([[1.0, 2.0]], "the\nof\n", r"2 words for the 1 rows of table\.npy"),
        ([1.0, 2.0], "the\nof\n", "expected a table of floats with one row per word"),
        ([[1], [2]], "the\nof\n", "expected a table of floats with one row per word"),
        ([["a"], ["b"]], "the\nof\n", "expected a table of floats with one row per word"),
        ([[1.0], [np.inf]], "the\nof\n", r"row 1 \('of'\) has a value that is not finite"),
        ([[1.0], [1e99]], "the\nof\n", r"row 1 \('of'\) has a value that is not finite"),
    ],
)
def test_broken_tables(tmp_path: Path, values: object, words: str, problem: str) -> None:
    path = table(tmp_path, values)
    written(tmp_path, words, "words.txt")
    with pytest.raises(FormatError, match=problem):
        read_vectors(path)


def test_a_table_that_is_no_table_or_without_words(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"holds one \.npy file; found none"):
        read_vectors(tmp_path)
    path = written(tmp_path, "text", "table.npy")
    with pytest.raises(FormatError, match=r"the words of table\.npy are sought in one \.parquet or \.txt .*; found none"):
        read_vectors(path)
    written(tmp_path, "the\n", "words.txt")
    with pytest.raises(FormatError, match=r"table\.npy: not a NumPy table"):
        read_vectors(path)
    np.save(path, np.array([{"a": 1}], dtype=object))
    with pytest.raises(FormatError, match=r"table\.npy: not a NumPy table"):
        read_vectors(path)
