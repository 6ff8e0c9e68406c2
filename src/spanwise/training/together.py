"""Runs that are trained together, in one folder: what they began with, and then one after another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from spanwise.config import ASKED, REPORT, Config, TrainingSettings, checked, runs_in
from spanwise.corpora import fingerprints
from spanwise.device import is_alone
from spanwise.errors import SpanwiseError
from spanwise.formats.files import read_json
from spanwise.training.checkpoint import Began
from spanwise.training.folder import check_several, is_begun, new_folder, write_json
from spanwise.training.run import settled, train_as
from spanwise.types import Corpus

Scores = dict[str, dict[str, Any]]


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
        return checked(cls, read_json(path), str(path)) if path.is_file() else None


class Together:
    """Runs of one kind (``seeds``, ``sweep`` or ``folds``) in a folder, trained with the same options.

    With ``resume`` they go on, and what the options do not say is as they began.
    """

    def __init__(self, out: Path, kind: str, resume: bool, options: Mapping[str, Any]) -> None:
        if not is_alone():
            raise SpanwiseError("several processes train one run at a time: give them --seed, not --seeds, --folds or --sweep")
        check_several(out, kind, resume)
        self.out, self.kind, self.resume, self.options = out, kind, resume, options
        self.say = options["say"]
        self.asked = Asked.read(out) if resume else None
        if resume and not runs_in(out):
            self.say(f"nothing to resume in {out}: training from the start")

    def config(self, *point: str, **settings: Any) -> Config:
        """The settings of a run: those of the options, with further overrides and training settings."""
        choices = {name: self.options[name] for name in ("encoder", "task") if name in self.options}
        common = {name: value for name, value in self.options.items() if name in TrainingSettings.model_fields}
        return settled(
            self.options.get("recipe"), settings=common | settings, overrides=(*self.options.get("overrides", ()), *point),
            begun=None if self.asked is None else self.asked.config, **choices,
        )  # fmt: skip

    def train(self, chosen: Any, runs: Mapping[str, tuple[Config, Corpus]], *, test: bool = True) -> list[Scores]:
        """The scores of all runs, by their names, in order; those that are finished already are not trained again.

        ``chosen`` is what a user named to have these runs: the seeds, the grid, or the file of folds.
        """
        self._check(runs)
        how = {name: self.options[name] for name in ("device", "trackers", "say") if name in self.options}
        init: str | Path | None = self.options.get("init") or (None if self.asked is None else self.asked.init)
        first, _ = next(iter(runs.values()))
        asked = Asked(
            runs=list(runs), config=first, init=None if init is None else Path(init).absolute(), **{self.kind: chosen}
        )
        with new_folder(self.out):
            write_json(self.out / ASKED, asked.model_dump(mode="json"))
            try:
                return [self._run(name, *run, init=init, test=test, **how) for name, run in runs.items()]
            except BaseException:
                if not any(map(is_begun, self.out.iterdir())):
                    (self.out / ASKED).unlink()
                raise

    def _check(self, runs: Mapping[str, tuple[Config, Corpus]]) -> None:
        """Refuse to go on with less than was begun, or with anything else, before something is written or trained."""
        missing = [] if self.asked is None else [name for name in self.asked.runs if name not in runs]
        if missing:
            raise SpanwiseError(f"{self.out}: cannot resume without what it began with: {', '.join(missing)}")
        for name, (config, corpus) in runs.items() if self.resume else ():
            folder, report = self.out / name, self.out / name / REPORT
            began = Began.of(read_json(report), report, "asked") if report.is_file() else Began.read(folder)
            if began is not None:
                began.check(folder, config, fingerprints(corpus))

    def _run(self, name: str, config: Config, corpus: Corpus, **how: Any) -> Scores:
        folder = self.out / name
        if self.resume and (folder / REPORT).is_file():
            return scores_in(folder)
        self.say(f"== {name}")
        return train_as(config, corpus, folder, resume=self.resume and folder.is_dir(), **how).scores


def scores_in(folder: Path) -> Scores:
    """The scores that the report of a finished run has."""
    path = folder / REPORT
    try:
        return {split: dict(scores) for split, scores in read_json(path)["scores"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SpanwiseError(f"{path}: cannot be read: has no scores ({error!r})") from None
