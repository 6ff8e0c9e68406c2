"""Hypothesis strategies for unusual annotated text."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from spanwise import Entity, Link, Relation, Sentence, Span

WORDS = (
    "Oslo", "a", "a", "the", "IL-2", ".", "Dr.", "No!", "。", "！\u0301", "?", "ß", "x y", "é", "e\u0301t\u0301", "Москва", "т.", "दिल्ली", "क्‍ष", "北", "京", "北京",
    "🌊", "👩\u200d🔬", "\u200d", "\u200b", "a\u00a0b", "\u00a0", "𠀀",
    # Words that look like markup of some format.
    "#", "# id = 3", "#doc 7", "-DOCSTART-", "O", "B-X", "I_X", "[", "]", "[1", "{}", '"', "'", "\\", "\\n", "<cons>", "</cons>",
    "<set>", "&amp;", "T1", "T1\tX 0 1", "*", "|", "||", "|t|", "7|t|x", "7|a|x", "_", "0", "-1", "N", "\ufeff", "\ufffd",
    # White space in and around words.
    " ", " a", "a ", "\t", "\n", "a\nb", "\r", "a\r", "\r\n", "\u2028", "\x85", "\x0b", "\x1c", "\0",
)  # fmt: skip
GAPS = (" ", " ", " ", "", "\n", "  ", " \n ", "\t", "\r\n", "\u00a0", ", ", "…x ")
TYPES = (
    "Loc", "Org", "NP", "Entity", "Drug", "Adverse-Effect", "Dose", "a type", "a-b", "a/b", "类型", "O", "N", "B-X", "|", "'", '"',
    "\\", 'it\'s "so"', "\tX", "X\n", "X\r", "X\ufeff", "-DOCSTART-", "#", "a:b", "a;b", "\u00a0", " ", "Arg1:T1", "😀",
)  # fmt: skip
NAMES = ("", "s", "s", "7", "07", "-1", "a/b", "a|b", "../up", "a\tb", "a\nb", " s ", "\ufeff", "北 京", "nul", "x" * 300, "\0")
# Keys that have a meaning in some format, used as extra data.
KEYS = (
    "meta", "id", "type", "text", "tokens", "entities", "relations", "links", "spans", "score", "scores", "pos", "start", "starts",
    "end", "position", "document", "label", "labels", "tags", "ner", "ner_tags", "sentence", "sentences", "doc_key", "index",
    "orig_id", "triple_list", "data", "annotation", "prediction", "annotations", "value", "answer", "head", "tail", "notes",
    "attributes", "references", "roles", "brat", "line", "concept", "columns", "concept_relations", "places_in_word", "kb_id",
    "span_id", "head_span", "from_id", "start_offset",
)  # fmt: skip

words = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS),
    st.text("ab 北🌊\u0301\t\n\r'\"\\\ufeff\ufffd1#[]|<", min_size=1, max_size=3),
)
types = st.one_of(st.sampled_from(TYPES[:8]), st.sampled_from(TYPES))
names = st.one_of(st.just("s"), st.sampled_from(NAMES))

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | words, values, max_size=3),
    max_leaves=6,
)
extras = st.one_of(st.none(), st.none(), st.dictionaries(st.sampled_from(KEYS), json_values, min_size=1, max_size=3))
scores = st.one_of(st.none(), st.none(), st.floats(0, 1))


@st.composite
def _entity(draw: st.DrawFn, length: int, extra: st.SearchStrategy[Any]) -> Entity:
    """Draw an entity of one fragment, sometimes of two or three."""
    edges = sorted(draw(st.sets(st.integers(0, length), min_size=2, max_size=draw(st.sampled_from((2, 2, 2, 4, 6))))))
    fragments = tuple(Span(*pair) for pair in zip(edges[::2], edges[1::2], strict=False))
    return Entity(draw(types), fragments, draw(scores), draw(extra))


@st.composite
def _sentences(draw: st.DrawFn, is_document: bool, name: str, extra: st.SearchStrategy[Any]) -> list[Sentence]:
    """Draw the sentences of one document, or sentences without a document."""
    count = draw(st.integers(1, 3))
    parts = [draw(st.lists(words, max_size=6)) for _ in range(count)]
    members = [draw(st.lists(_entity(len(part), extra), max_size=5 if part else 0)) for part in parts]
    ends = [(place, number) for place, part in enumerate(members) for number in range(len(part))]
    arrows = draw(st.lists(st.tuples(types, st.sampled_from(ends), st.sampled_from(ends)), max_size=5)) if ends else []
    stride = draw(st.sampled_from((1, 1, 3)))  # positions may have gaps
    is_placed = draw(st.booleans())
    is_spaced = draw(st.booleans())
    start = 0
    sentences = []
    for place, part in enumerate(parts):
        text, starts = _text(part, [draw(st.sampled_from(GAPS)) if is_spaced else " " for _ in part], is_spaced)
        mine = [(kind, head, tail) for kind, (home, head), tail in arrows if home == place]
        relations = [
            Relation(kind, head, tail, draw(scores), draw(extra)) for kind, head, (there, tail) in mine if there == place
        ]
        links = [
            Link(kind, head, there * stride, tail, draw(scores), draw(extra))
            for kind, head, (there, tail) in mine
            if there != place
        ]
        if is_document and members[place] and draw(st.integers(0, 9)) == 9:
            links.append(Link(draw(types), 0, 99, 0))  # to a sentence that is not in the data
        where = {"document": name, "position": place * stride, "start": start if is_placed else None, "links": tuple(links)}
        sentences.append(
            Sentence(
                id=draw(names),
                words=tuple(part),
                entities=tuple(members[place]),
                relations=tuple(relations),
                text=text,
                starts=starts,
                pos=tuple(draw(st.sampled_from(("NN", "-", "", "O", "a b"))) for _ in part) if draw(st.booleans()) else None,
                extra=draw(extra),
                **(where if is_document else {}),
            )
        )
        start += len(text)
    return sentences


def _text(words: list[str], gaps: list[str], is_spaced: bool) -> tuple[str, tuple[int, ...]]:
    if not is_spaced:
        return "", ()
    text, starts = "", []
    for word, gap in zip(words, gaps, strict=True):
        starts.append(len(text))
        text += word + gap
    return text, tuple(starts)


@st.composite
def corpora(draw: st.DrawFn, with_extra: bool = True) -> list[Sentence]:
    """Draw sentences of several documents and of none, with all features of the data model.

    ``with_extra=False`` omits the extra data that formats keep.
    """
    extra = extras if with_extra and draw(st.booleans()) else st.none()
    documents = draw(st.lists(st.tuples(st.booleans(), names), min_size=1, max_size=3))
    return [sentence for document in documents for sentence in draw(_sentences(*document, extra))]
