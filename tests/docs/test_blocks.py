"""Code blocks of README and docs: each runs in order, or is marked with the reason why it does not.

Blocks of a page run in one folder with a part of the bundled corpus (``DATA``), a small model (``RUN``)
and the files of the fixture ``files``. Commands are used as shown; only training is made small: one epoch, and a
tiny encoder in place of the chosen one. ``doc_blocks`` explains the marks.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import Block, matches, parse_blocks
from doc_shell import BlockError, Shell, join_lines, parse_command, pipeline
from tiny import STATIC

from spanwise.core.types import Corpus
from spanwise.corpora.conversion import convert
from spanwise.data import FOLDER
from spanwise.formats import write
from spanwise.recipes.resolve import Choices
from spanwise.training.run import train

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Patterns of pages whose commands are only parsed, and why.
PARSED_PAGES = {
    "docs/results.md": "the commands of measurements",
    "docs/results/*.md": "the commands of measurements",
    "docs/papers.md": "the commands of measurements",
    "docs/scale.md": "clusters and several GPUs",
    "docs/architecture.md": "no commands",
    "docs/extending.md": "tests/contracts/test_example.py runs the example",
}
COMMAND = re.compile(r"(?:^|\s)(?:\$ |-m )?(spanwise [a-z].*)$")
TEXT = "The Bank of Japan raised its rate in Tokyo on Monday. Metformin lowers blood glucose.\n"


def small_corpus() -> Corpus:
    """Return the same few sentences in all splits, so that the model predicts some of the entities."""
    from spanwise.data import bundled_corpus

    sentences = [*bundled_corpus()["train"]][::60]
    return Corpus(dict.fromkeys(("train", "dev", "test"), sentences))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model."""
    folder = tmp_path_factory.mktemp("blocks") / "run"
    options: dict[str, Any] = {"recipe": "spanner", "encoder": "static", "epochs": 6, "head_rate": 0.03}
    train(small_corpus(), folder, overrides=STATIC, device="cpu", log=lambda line: None, **options)
    return folder


@pytest.fixture
def make_training_small(monkeypatch: pytest.MonkeyPatch, tiny_bert: Path) -> None:
    """Resolve all choices as given, to find errors, and then train one epoch with a tiny encoder."""
    resolve = Choices.resolve

    def resolve_small(choices: Choices, resumed: Any = None) -> Any:
        config = resolve(choices, resumed)
        needs_layers = str(config.head["kind"]).startswith("deep-span")
        uses_static = not needs_layers and (choices.encoder in (None, "static") or config.encoder["kind"] == "static")
        overrides = (*choices.overrides, *(STATIC if uses_static else ()), "training.adversarial=0")
        encoder = "static" if uses_static else str(tiny_bert)
        settings = {**choices.settings, "epochs": 1}
        return resolve(replace(choices, encoder=encoder, overrides=overrides, settings=settings), resumed)

    monkeypatch.setattr(Choices, "resolve", resolve_small)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Path:
    """A folder with the files that pages refer to."""
    folder, corpus = tmp_path_factory.mktemp("files"), small_corpus()
    for name in ("DATA", "corpus"):
        (folder / name).mkdir()
        for split in corpus:
            write(corpus[split], folder / name / f"{split}.jsonl")
    for name in ("RUN", "LARGE", "teachers/seed-1", "teachers/seed-2"):
        shutil.copytree(trained, folder / name)
    shutil.copy(FOLDER / "train.jsonl", folder)
    for name in ("train.conll", "test.conll", "theirs.conll"):
        convert(folder / "DATA" / "test.jsonl", folder / name, lossy=True)
    for name in ("notes.txt", "more.txt", "notes.md", "letter"):
        (folder / name).write_text(TEXT, encoding="utf-8")
    (folder / "more").mkdir()
    (folder / "more" / "text.txt").write_text(TEXT, encoding="utf-8")
    (folder / "texts.jsonl").write_text('{"text": "Oslo is in Norway."}\n', encoding="utf-8")
    (folder / "train.tsv").write_text("0\tOslo\tB-Place\tO\n\n", encoding="utf-8")
    return folder


def check_page(page: str, shell: Shell) -> Iterator[str]:
    """Run the blocks of a page in the current folder; yield the problems."""
    names: dict[str, Any] = {"__name__": "page"}
    output = ""
    for block in parse_blocks(page):
        place = f"line {block.line}"
        try:
            if block.mark == "not run":
                check_reason(block)
            elif block.mark == "parse only":
                check_reason(block)
                check_syntax(block)
            elif block.mark == "file":
                Path(block.reason).parent.mkdir(parents=True, exist_ok=True)
                Path(block.reason).write_text(block.text, encoding="utf-8")
            elif block.mark == "output":
                if not matches(block.text, output):
                    yield f"{place}: the output differs; found:\n{output}"
            elif block.language == "python":
                output = run_python(block, names)
            elif block.is_shell:
                output = run_shell(block, shell)
            elif COMMAND.search(block.text.splitlines()[0] if block.text else ""):
                yield f"{place}: mark the block as bash, so that it is run"
        except BlockError as error:
            yield f"{place}: {error}"
        except Exception as error:
            yield f"{place}: {type(error).__name__}: {error}"


def check_reason(block: Block) -> None:
    if not block.reason:
        raise BlockError(f"write the reason: <!-- {block.mark}: REASON -->")


def check_syntax(block: Block) -> None:
    if block.language == "python":
        compile(block.text, "block", "exec")
    for line in join_lines(block.text) if block.is_shell else ():
        for words in pipeline(line):
            if words[0] == "spanwise":
                parse_command(words[1:])


def run_python(block: Block, names: dict[str, Any]) -> str:
    with redirect_stdout(io.StringIO()) as out:
        exec(compile("\n" * (block.line - 1) + block.text, "block", "exec"), names)
    return out.getvalue()


def run_shell(block: Block, shell: Shell) -> str:
    """Run a block. If its first line starts with ``$``, lines without it are the output of the command before."""
    if not block.text.startswith("$ "):
        return "".join(checked(*result) for result in shell.run(block.text))
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        code, output = shell.run_line(command)
        if not matches(expected, output):
            raise BlockError(f"{command}: the output differs (exit code {code}); found:\n{output}")
    return output


def checked(line: str, code: int, output: str) -> str:
    if code:
        raise BlockError(f"{line}: exit code {code}\n{output}")
    return output


@pytest.fixture
def page_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Path, make_training_small: None) -> Shell:
    """A shell in a new folder with the files, in which training is small."""
    monkeypatch.setenv("COLUMNS", "100")
    folder = tmp_path / "page"
    shutil.copytree(files, folder)
    monkeypatch.chdir(folder)
    return Shell({path.name for path in folder.iterdir()})


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_page_run(path: Path, request: pytest.FixtureRequest) -> None:
    name, page = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    if any(path.match(pattern) for pattern in PARSED_PAGES):
        problems = list(check_commands(page))
    elif any(block.language == "python" or block.is_shell for block in parse_blocks(page)):
        problems = list(check_page(page, request.getfixturevalue("page_folder")))
    else:
        problems = []
    assert not problems, f"{name}:\n" + "\n".join(problems)


def check_commands(page: str) -> Iterator[str]:
    """Parse all lines of blocks that call spanwise; yield the problems."""
    for block in parse_blocks(page):
        for line in join_lines(block.text):
            if (command := COMMAND.search(line)) and not line.startswith(("name:", "entrypoint:")):
                words = next(pipeline(re.sub(r" +\(.*\)$", "", command[1])))
                try:
                    parse_command(words[1:])
                except BlockError as error:
                    yield f"line {block.line}: {error}"


BROKEN: dict[str, tuple[str, str]] = {
    "option": ("```bash\nspanwise predict RUN notes.txt --colour red\n```\n", "no such option"),
    "parsed option": ("<!-- parse only: slow -->\n```bash\nspanwise serve RUN --prot 80\n```\n", "--prot"),
    "parsed setting": ("<!-- parse only: slow -->\n```bash\nspanwise train DATA --out NEW --set head.wdith=3\n```\n", "wdith"),
    "serve": ("```bash\nspanwise serve RUN --prot 80\n```\n", "--prot"),
    "command": ("```bash\nspanwise trian DATA\n```\n", "trian"),
    "file": ("```bash\nspanwise describe missing.conll\n```\n", "missing.conll"),
    "python": ("```python\nimport spanwise\nspanwise.lode('RUN')\n```\n", "lode"),
    "setting": ("```bash\nspanwise train DATA --out NEW --set head.wdith=3\n```\n", "wdith"),
    "output": ("```python\nprint(2)\n```\n\n<!-- output -->\n```text\n3\n```\n", "the output differs"),
    "shown output": ("```console\n$ echo a\nb\n```\n", "the output differs"),
    "reason": ("<!-- not run -->\n```bash\nmake\n```\n", "write the reason"),
    "other command": ("```bash\ncurl x\n```\n", "'curl' cannot run"),
    "no language": ("```\nspanwise formats\n```\n", "mark the block as bash"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_block_is_reported(kind: str, page_folder: Shell) -> None:
    page, message = BROKEN[kind]
    (problem,) = check_page(page, page_folder)
    assert message in problem


def test_working_blocks_have_no_problem(page_folder: Shell) -> None:
    page = (
        "<!-- file: a.conll -->\n```text\nOslo B-Place\n```\n```bash\nspanwise convert a.conll a.jsonl  # note\n```\n"
        '```python\nx = open("a.jsonl").read()\n```\n```python\nprint("Oslo" in x, 1.5)\n```\n<!-- output -->\n```text\nTrue …\n```\n'
    )
    assert list(check_page(page, page_folder)) == []
