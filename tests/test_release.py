"""What a release needs: one version, valid metadata, and files that agree with each other."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

import spanwise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_in_one_place() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    path = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{spanwise.__version__}"' in path.read_text(encoding="utf-8")
    assert "version" not in yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")).keys() - {"cff-version"}


def test_training_libraries_are_an_extra() -> None:
    """A model package must not install torch."""
    required = {Requirement(text).name for text in PROJECT["project"]["dependencies"]}
    extras = PROJECT["project"]["optional-dependencies"]
    libraries = {Requirement(text).name for text in extras["torch"]}
    assert libraries == spanwise.core.errors.TORCH_PACKAGES
    assert not libraries & required
    assert not libraries & {Requirement(text).name for text in extras["onnx"]}


def test_every_requirement_is_pinned_for_tests() -> None:
    pinned = {Requirement(line).name.lower().replace("_", "-") for line in lines("constraints.txt") if not line.startswith("#")}
    extras = PROJECT["project"]["optional-dependencies"]
    optional = {"ray", "atheris"}  # not installed for tests
    for text in [*PROJECT["project"]["dependencies"], *(text for requirements in extras.values() for text in requirements)]:
        name = Requirement(text).name.lower().replace("_", "-")
        assert name in pinned | optional | {"spanwise"}, text


def test_the_source_archive_has_all_files_of_the_root() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    for name in included:
        assert (ROOT / name).exists(), name
    hidden = {".ci", ".git", ".github", ".gitignore", ".venv"}
    ignored = [pattern.strip("/") for pattern in lines(".gitignore")]
    for path in ROOT.iterdir():
        if path.name not in hidden and not any(fnmatch.fnmatch(path.name, pattern) for pattern in ignored):
            assert path.name in (*included, "pyproject.toml") or path.name.startswith("."), path.name


def test_the_container_copies_what_its_context_has() -> None:
    content = (ROOT / "Containerfile").read_text(encoding="utf-8")
    allowed = {line.removeprefix("!") for line in lines(".dockerignore") if line.startswith("!")}
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", content, re.MULTILINE):
        assert set(sources.split()) <= allowed
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", content, re.MULTILINE)
    assert set(extras.split(",")) <= PROJECT["project"]["optional-dependencies"].keys()
    assert 'CMD ["serve", "/model", ' in content


def test_issue_forms_have_the_required_keys() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert [form.stem for form in forms] == ["bug", "feature", "format"]
    for form in forms:
        content = yaml.safe_load(form.read_text(encoding="utf-8"))
        assert content["name"]
        assert content["description"]
        ids = [field["id"] for field in content["body"]]
        assert len(set(ids)) == len(ids)
        assert all(field["attributes"]["label"] for field in content["body"])


def test_the_checklist_names_existing_targets() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"`make ([\w-]+)", (ROOT / "RELEASING.md").read_text(encoding="utf-8")))
    assert named
    assert named <= targets


def lines(name: str) -> list[str]:
    return [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if line.strip()]
