"""Splitting of raw text into words and sentences."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise.core.types import Span
from spanwise.text import cut_words, split_sentences, split_words

TEXTS = st.text(alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from(" .\n!?。Aa1-'\"")), max_size=200)


def words(text: str, *cuts: int) -> list[str]:
    return [text[a:b] for a, b in cut_words(split_words(text), cuts)]


def sentences(text: str, *keep_together: tuple[int, int]) -> list[str]:
    return [text[a:b] for a, b in split_sentences(text, [Span(*span) for span in keep_together])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("U.S.-based IL-2", ["U", ".", "S", ".", "-", "based", "IL", "-", "2"]),
        ("naïve cafe\u0301s", ["naïve", "cafe\u0301s"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("北京大学 PKU", ["北", "京", "大", "学", "PKU"]),
        ("Москва́, 5%", ["Москва́", ",", "5", "%"]),
        ("a_b 3.5", ["a_b", "3", ".", "5"]),
        (" \t\n", []),
        ("", []),
        ("👍🏽 ok", ["👍", "🏽", "ok"]),
        ("เมืองเชียงใหม่ 50๐๕ กม.", ["เมื", "อ", "ง", "เชี", "ย", "ง", "ให", "ม่", "50๐๕", "ก", "ม", "."]),
        ("ນະຄອນຫຼວງ", ["ນະ", "ຄ", "ອ", "ນ", "ຫຼ", "ວ", "ງ"]),
        ("ក្រុងភ្នំពេញ។", ["ក្រុ", "ង", "ភ្នំ", "ពេ", "ញ", "។"]),
        ("ရန်ကုန်မြို့ကို", ["ရန်", "ကုန်", "မြို့", "ကို"]),
        ("XในกรุงY", ["X", "ใน", "ก", "รุ", "ง", "Y"]),
        ("ใช้iPhone ที่5 សា២០ စာabc", ["ใช้", "iPhone", "ที่", "5", "សា", "២០", "စာ", "abc"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_words_are_cut_at_given_offsets() -> None:
    assert words("anti-IL2R drug", 7, 8, 10) == ["anti", "-", "IL", "2", "R", "drug"]
    assert words("abc", 0, 3, 99) == ["abc"]


@given(TEXTS, st.lists(st.integers(0, 200), max_size=5))
def test_words_cover_everything_except_white_space(text: str, cuts: list[int]) -> None:
    spans = cut_words(split_words(text), cuts)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(not any(a < cut < b for a, b in spans) for cut in cuts)
    covered = {index for a, b in spans for index in range(a, b)}
    assert all(text[index].isspace() for index in set(range(len(text))) - covered)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rained. It stopped.", ["It rained. ", "It stopped."]),
        ("He met Dr. Wu at 5 p.m. today.", ["He met Dr. Wu at 5 p.m. today."]),
        ("The U.S. Senate met. See Fig. 3 there.", ["The U.S. Senate met. ", "See Fig. 3 there."]),
        ("J. S. Bach wrote it.", ["J. S. Bach wrote it."]),
        ('"Stop!" It did.', ['"Stop!" ', "It did."]),
        ("Why? 3 of 4 fell.", ["Why? ", "3 of 4 fell."]),
        ("It fell to 3.5 percent.", ["It fell to 3.5 percent."]),
        ("Title\n\nText here", ["Title\n\n", "Text here"]),
        ("\n\nText", ["\n\nText"]),
        ("他来了。她走了！", ["他来了。", "她走了！"]),
        ("в 2017 г. Москва росла. Он ушёл.", ["в 2017 г. Москва росла. ", "Он ушёл."]),
        ("वह आया। वह गई।", ["वह आया। ", "वह गई।"]),
        ("هل جاء؟ نعم.", ["هل جاء؟ ", "نعم."]),
        ("وہ آیا۔ وہ گئی۔", ["وہ آیا۔ ", "وہ گئی۔"]),
        ("ကိုသွားသည်။ ပြန်လာသည်။", ["ကိုသွားသည်။ ", "ပြန်လာသည်။"]),
        ("គាត់ទៅ។ នាងមក។", ["គាត់ទៅ។ ", "នាងមក។"]),
        ("   ", ["   "]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_protected_spans_are_not_split() -> None:
    text = "Yahoo! Inc. grew. It fell."
    assert sentences(text) == ["Yahoo! ", "Inc. grew. ", "It fell."]
    assert sentences(text, (0, 11)) == ["Yahoo! Inc. grew. ", "It fell."]
    assert sentences("one\ntwo\nthree", (0, 3), (2, 6)) == ["one\ntwo\n", "three"]


@given(TEXTS, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), max_size=4))
def test_sentences_cover_the_text_and_keep_protected_spans(text: str, ranges: list[tuple[int, int]]) -> None:
    keep_together = [(a, min(a + width, len(text))) for a, width in ranges if a < len(text) and width]
    spans = split_sentences(text, [Span(*span) for span in keep_together])
    assert "".join(text[a:b] for a, b in spans) == text
    cuts = {b for _, b in spans[:-1]}
    assert not any(a < cut < b for a, b in keep_together for cut in cuts)
