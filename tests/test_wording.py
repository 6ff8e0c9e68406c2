"""Words and phrases that make text hard to read, and where they are allowed.

The test reads comments, docstrings, strings and names of Python files, the output of ``--help``, the
documentation, recipes and web templates. Replace a phrase that it reports by the usual word, or add it
to ``ALLOWED`` with a reason.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest
import typer

from spanwise.cli import app

ROOT = Path(__file__).parents[1]

# Phrases of prose, with the usual wording.
PHRASES = {
    r"\bmend(s|ed|ing)?\b": "fix, repair, normalise",
    r"\bbesides?\b": "also, in addition, next to",
    r"\bbehind (?!http\b|a proxy\b|a reverse proxy\b)": "after",
    r", for (it|they|this|these|there|that|those|what|he|she|we|nobody|none|nothing|the \w+ (is|are|was|has|have))\b": (
        "because, since"
    ),
    r"\b(is|are|was|were|be) (said|told)\b": "is given, passed, reported, printed",
    r"\b(go|goes|went|going) on\b": "resume, continue",
    r"\bbegun\b|\bbegan\b": "started",
    r"\bleft out\b|\bleaves? out\b|\bleaving out\b": "skipped, omitted",
    r"\bof (its|their|his|her|your) own\b": "its own, separate",
    r"\bby (itself|themselves)\b": "alone, separately",
    r"\bwhat is (right|true|found|said|told|asked|left|kept|there|wrong|meant|read|written)\b": "gold, predictions, …",
    r"\bwho(so)?ever\b|\bwhosoever\b": "a user, a client, …",
    r"\bhitherto\b|\blest\b|\bthereof\b|\btherein\b|\bwherein\b|\bwhence\b": "so far, so that not, …",
    r"\bread aloud\b": "printed",
    r"\brims?\b": "edge",
    r"\bthat is to say\b": "that is",
    r"\bis to be\b|\bare to be\b|\bhas to be said\b": "must be, is",
    r"\bcomes? of it\b|\bmade of it\b": "computed from, built from",
    r"\btold apart\b|\btells? apart\b|\btelling apart\b": "distinguished",
    r"\bso many\b|\bas many as there are\b": "this many",
    r"\bhands? (out|over)\b|\bhanded (out|over)\b": "return, pass",
    r"\bstands? (behind|beside|before|alone|for itself)\b|\bstood\b": "is after, is next to",
    r"\blies? (beside|behind|within|side by side)\b|\blay beside\b": "is next to, is inside",
    r"\bseen from the (file|content|name)\b": "detected from",
    r"\bwithout your word\b": "unless you pass …",
    r"\bwhatever (is|was|are|the|it|they|its|their|his|a|an)\b": "any",
    r"\bhowever (it|they|many|long|large|small|early|often|it is)\b": "any number of, …",
    r"\bas it stands\b|\bas they stand\b": "unchanged",
    r"\bhas (been )?settled\b|\bis settled\b|\bare settled\b": "chosen, resolved",
    r"\bcame about\b|\bcomes? about\b": "was produced",
    r"\bnobody (knows|asked|gave|waits|else)\b": "unknown, not given, …",
    r"\bin no order\b": "in random order",
    r"\bthe one .{0,20} the other\b": "name the two things",
    r"\bnothing (else )?(is|was) (said|told|asked)\b": "by default",
    r"\bhas no word for\b|\bsays nothing\b|\bsay nothing\b|\bsaid nothing\b": "does not support, gives no result",
}

# Names of variables, functions, parameters and attributes.
NAMES = frozenset(
    "own found asked said told settled lesson least what nothing began begun mended behind beside read_aloud".split()
)

# File: the phrases that are allowed there, and why.
ALLOWED: dict[str, dict[str, str]] = {
    "tests/test_wording.py": {r".*": "the list itself"},
    "tests/discontinuous_corpus.py": {"besides": "a word of the generated corpus, which results depend on"},
}

PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "docs/**/*.md")
TEMPLATES = (
    "src/**/*.html",
    "src/**/*.js",
    "src/**/*.css",
    "src/spanwise/recipes/*.yaml",
    "bench/rows/*.yaml",
    "pyproject.toml",
)
CODE = ("src/**/*.py", "tests/**/*.py", "bench/**/*.py", "examples/**/*.py", "docs/**/*.py")


def files(patterns: tuple[str, ...]) -> list[Path]:
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def _flexible(pattern: str) -> str:
    """Let a phrase continue on the next line, which may be a comment."""
    return pattern.replace(" ", r"\s+(?:# *)?")


def _combine(patterns: Iterable[str]) -> str:
    """Combine patterns into one that rejects most words by their first letter.

    The word boundaries at the start become one, and groups are not captured: each alternative then
    starts with a letter.
    """
    alternatives = "|".join(_flexible(pattern).removeprefix(r"\b").replace(r"|\b", "|") for pattern in patterns)
    return rf"\b(?:{alternatives})".replace("(", "(?:").replace("(?:?", "(?")


# All rules are for text in lower case.
RULES = [(re.compile(_flexible(pattern)), advice) for pattern, advice in PHRASES.items()]
WORDS = [pattern for pattern in PHRASES if pattern.startswith(r"\b")]
ANY_RULE = [re.compile(_combine(WORDS)), *(re.compile(_flexible(pattern)) for pattern in PHRASES if pattern not in WORDS)]


def _prose(text: str, path: str, first_line: int = 1) -> Iterator[str]:
    """Yield the problems of a text."""
    text = text.lower()
    if not any(rule.search(text) for rule in ANY_RULE):
        return  # ten times as fast as all rules
    for rule, advice in RULES:
        for match in rule.finditer(text):
            line = first_line + text.count("\n", 0, match.start())
            yield from _problem(" ".join(match.group().split()), advice, path, line)


def _problem(phrase: str, advice: str, path: str, line: int) -> Iterator[str]:
    if not any(re.fullmatch(allowed, phrase) for allowed in ALLOWED.get(path, {})):
        yield f"{path}:{line}: {phrase!r}; write: {advice}"


def _code(path: Path) -> Iterator[str]:
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    if not (any(_prose(text.replace("_", " "), "")) or NAMES.intersection(re.findall(r"\w+", text))):
        return  # tokenizing is slow
    comments: list[tuple[int, str]] = []
    previous = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if comments and comments[-1][0] + comments[-1][1].count("\n") + 1 == token.start[0]:
                comments[-1] = comments[-1][0], f"{comments[-1][1]}\n{token.string}"
            else:
                comments.append((token.start[0], token.string))
        elif token.type == tokenize.STRING or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
            yield from _prose(token.string, name, token.start[0])
        elif token.type == tokenize.NAME and previous != ".":  # attributes of other libraries cannot be renamed
            if token.string in NAMES:
                yield from _problem(token.string, "a name for the thing", name, token.start[0])
            if token.string.startswith("test_"):
                yield from _prose(token.string.replace("_", " "), name, token.start[0])
        previous = token.string
    for line, comment in comments:
        yield from _prose(comment, name, line)


def _help(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield from _prose(command.get_help(context), f"`{name} --help`")
    for child, subcommand in getattr(command, "commands", {}).items():
        yield from _help(subcommand, f"{name} {child}")


def assert_readable(problems: list[str]) -> None:
    """Fail with a list of the phrases to reword."""
    assert not problems, f"{len(problems)} phrases to reword:\n" + "\n".join(problems)


@pytest.mark.parametrize("pattern", [*PROSE, *TEMPLATES])
def test_prose_and_templates(pattern: str) -> None:
    texts = ((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in files((pattern,)))
    assert_readable([problem for name, text in texts for problem in _prose(text, name)])


@pytest.mark.parametrize("pattern", CODE)
def test_code(pattern: str) -> None:
    assert_readable([problem for path in files((pattern,)) for problem in _code(path)])


def test_help() -> None:
    assert_readable(list(_help(typer.main.get_command(app), "spanwise")))


def test_the_rules_match_what_they_should() -> None:
    text = "It goes\n# on, for it is mended."
    assert [problem.split(": ")[1].split(";")[0] for problem in _prose(text, "x")] == ["'mended'", "', for it'", "'goes # on'"]
    assert not list(_prose("a proxy behind HTTP, for the first time, resumes", "x"))


def test_the_combined_rules_match_where_a_rule_matches() -> None:
    examples = ["mends", "besides", "behind it", "is told", "went on", "begun", "began", "leaving out", "of its own", "stood",
                "by itself", "what is left", "whoever", "whosoever", "whence", "rims", "are to be", "made of it", "handed over",
                "hands\n    # out", "lay beside", "telling apart", "whatever the", "however\n# many", "has been settled",
                "the one and the other", "say nothing", ", for it", "), for the rest is"]  # fmt: skip
    for example in examples:
        text = f"x {example} x"
        assert any(rule.search(text) for rule, _ in RULES), example
        assert list(_prose(text, "x")), example
