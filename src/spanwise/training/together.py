"""Runs that are trained together, in one folder: what they began with, and then one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from spanwise.config.settings import Config
from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus
from spanwise.corpora.splits import fingerprints
from spanwise.files.reading import read_json
from spanwise.runs.files import ASKED, REPORT
from spanwise.runtime.device import is_alone
from spanwise.training.checkpoint import Began, check_same_start
from spanwise.training.folder import check_several, new_folder, runs_begun, write_json
from spanwise.training.run import resolve_config, train_as

Scores = dict[str, dict[str, Any]]
HOW = ("device", "trackers", "log")  # options that are no settings of a model or its training
CHOICES = ("encoder", "task")


class Asked(BaseModel):
    """What runs of a folder began with: the seeds, the grid or the file of folds, their names, the settings of the first.

    The others have the same settings, but for their seed or their point of the grid. It stays when all are finished, so that
    more can be added.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: list[int] = []
    sweep: list[str] = []
    folds: Path | None = None
    runs: list[str]
    config: Config
    init: Path | None = None

    @classmethod
    def read(cls, out: Path) -> Asked | None:
        """What a folder says of it; None where it holds a single run, or nothing."""
        path = out / ASKED
        return validate_settings(cls, read_json(path), str(path)) if path.is_file() else None


class Together:
    """Runs of one kind (``seeds``, ``sweep`` or ``folds``) in a folder, trained with the same options.

    With ``resume`` they go on, and what the options do not say is as they began.
    """

    def __init__(self, out: Path, kind: str, resume: bool, options: Mapping[str, Any]) -> None:
        if not is_alone():
            raise SpanwiseError("several processes train one run at a time: give them --seed, not --seeds, --folds or --sweep")
        check_several(out, kind, resume)
        self.out, self.kind, self.resume, self.options = out, kind, resume, options
        self.log = options["log"]
        self.asked = Asked.read(out) if resume else None
        if resume and not runs_begun(out):
            self.log(f"nothing to resume in {out}: training from the start")

    def config(self, *point: str, **settings: Any) -> Config:
        """The settings of a run: those of the options, with further overrides and training settings."""
        choices = {name: self.options[name] for name in CHOICES if name in self.options}
        others = (*HOW, *CHOICES, "recipe", "overrides", "init")
        common = {name: value for name, value in self.options.items() if name not in others}
        return resolve_config(
            self.options.get("recipe"), settings=common | settings, overrides=(*self.options.get("overrides", ()), *point),
            begun=None if self.asked is None else self.asked.config, **choices,
        )  # fmt: skip

    def train(self, chosen: Any, runs: Mapping[str, tuple[Config, Corpus]], *, test: bool = True) -> list[Scores]:
        """The scores of all runs, by their names, in order; those that are finished already are not trained again.

        ``chosen`` is what a user named to have these runs: the seeds, the grid, or the file of folds.
        """
        self._check(runs)
        how = {name: self.options[name] for name in HOW if name in self.options}
        init: str | Path | None = self.options.get("init") if self.asked is None else self.asked.init
        first, _ = next(iter(runs.values()))
        asked = Asked(
            runs=list(runs), config=first, init=None if init is None else Path(init).absolute(), **{self.kind: chosen}
        )
        with new_folder(self.out), self._remembering(asked):
            return [self._run(name, *run, init=init, test=test, **how) for name, run in runs.items()]

    @contextmanager
    def _remembering(self, asked: Asked) -> Iterator[None]:
        """While runs are trained and afterwards the folder says what was asked, unless none could so much as begin."""
        path, before = self.out / ASKED, runs_begun(self.out)
        write_json(path, asked.model_dump(mode="json"))
        try:
            yield
        except BaseException as error:
            begun = runs_begun(self.out)
            if not begun or (isinstance(error, SpanwiseError) and begun == before):
                if self.asked is None:
                    path.unlink()
                else:
                    write_json(path, self.asked.model_dump(mode="json"))
            raise

    def _check(self, runs: Mapping[str, tuple[Config, Corpus]]) -> None:
        """Refuse to go on with less than was begun, or with anything else, before something is written or trained."""
        if self.asked is not None:
            begun = runs_begun(self.out)
            missing = [name for name in self.asked.runs if name in begun and name not in runs]
            if missing:
                advice = "name it too, or remove its folder" if len(missing) == 1 else "name them too, or remove their folders"
                raise SpanwiseError(
                    f"{self.out}: cannot resume without what it began with: {', '.join(missing)} ({advice})"
                )  # fmt: skip
            check_same_start(self.out, self.asked.init, self.options.get("init"))
        for name, (config, corpus) in runs.items() if self.resume else ():
            folder, report = self.out / name, self.out / name / REPORT
            began = Began.of(read_json(report), report, "asked") if report.is_file() else Began.read(folder)
            if began is not None:
                began.check(folder, config, fingerprints(corpus))
                if report.is_file() and began.data.get("test") != fingerprints(corpus).get("test"):
                    raise SpanwiseError(f"{folder}: cannot resume, for the test data is not what it was scored on")

    def _run(self, name: str, config: Config, corpus: Corpus, **how: Any) -> Scores:
        folder = self.out / name
        if self.resume and (folder / REPORT).is_file():
            return scores_in(folder)
        self.log(f"== {name}")
        return train_as(config, corpus, folder, resume=self.resume and folder.is_dir(), **how).scores


def scores_in(folder: Path) -> Scores:
    """The scores that the report of a finished run has."""
    path = folder / REPORT
    try:
        return {split: dict(scores) for split, scores in read_json(path)["scores"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SpanwiseError(f"{path}: cannot be read: has no scores ({error!r})") from None
