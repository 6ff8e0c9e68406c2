"""Train a group of runs in one folder, one after another or several at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus
from spanwise.corpora.splits import fingerprints
from spanwise.recipes.resolve import Choices
from spanwise.runs.folder import RunFolder
from spanwise.runs.opening import clean_finished_run, open_group_folder
from spanwise.runs.outputs import check_not_input, check_output
from spanwise.runs.records import RunGroup, TrainingRecord, check_same_init
from spanwise.runtime.device import is_single_process
from spanwise.training.building import replace_encoder
from spanwise.training.run import RunOptions, train_config
from spanwise.training.run_pool import PlannedRun, RunPool

Scores = dict[str, dict[str, Any]]


class GroupTraining:
    """Runs of one kind (``seeds``, ``sweep`` or ``folds``) in a folder, trained with the same options.

    A resumed group takes defaults from its record.
    """

    def __init__(
        self, out: Path, kind: str, choices: Choices, options: RunOptions, inputs: Iterable[str | Path | Corpus]
    ) -> None:  # fmt: skip
        if not is_single_process():
            raise SpanwiseError("several processes train one run at a time; pass --seed instead of --seeds, --folds or --sweep")
        self.folder, self.kind, self.choices, self.options = RunFolder(out), kind, choices, options
        paths = [path for path in (*inputs, options.init) if isinstance(path, str | Path)]
        check_output(out, paths, can_be_run=True)
        for file in (self.folder.group_file, self.folder.summary_file(kind)):
            check_not_input(file, paths)
        self.record: RunGroup | None = None
        self._takes_default_encoder = True  # in all runs

    @contextmanager
    def open(self) -> Iterator[GroupTraining]:
        """Open the folder of the group as its only writer."""
        path, options = self.folder.path, self.options
        with open_group_folder(path, self.kind, should_resume=options.resume, log=options.log):
            self.record = self.folder.read_group() if options.resume else None
            if self.record is None and (reason := self.choices.encoder_reason):
                options.log(reason)
            if options.resume and not self.folder.started_runs():
                options.log(f"nothing to resume in {path}: training from the start")
            yield self

    @property
    def data_format(self) -> str | None:
        """The format of the data: the given one or, in a resumed group, that of its start."""
        return self.options.data_format or (self.record.data_format if self.record else None)

    def config(self, *overrides: str, **settings: Any) -> Config:
        """The configuration of a run: the common choices with its overrides and training settings."""
        choices = self.choices.adding(*overrides, **settings)
        self._takes_default_encoder &= choices.takes_default_encoder
        return choices.resolve(resumed=self.record.config if self.record else None)

    def train(self, requested: Any, runs: Mapping[str, tuple[Config, Corpus]]) -> list[Scores]:
        """Train all runs that are not finished; return the scores of all, in order.

        ``requested`` are the seeds, the grid or the file of folds that the user passed; ``runs`` has a
        configuration and a corpus for each name.
        """
        if self.record is None and self._takes_default_encoder:
            runs = self._replace_encoder(runs)
        self._check(runs)
        init = self.options.init if self.record is None else self.record.init
        keep_types = self.options.keep_types if self.record is None else self.record.keep_types
        first_config, _ = next(iter(runs.values()))
        record = RunGroup(
            runs=list(runs), config=first_config, init=None if init is None else Path(init).absolute(), keep_types=keep_types,
            data_format=self.data_format, **{self.kind: requested},
        )  # fmt: skip
        options = replace(self.options, init=init, keep_types=keep_types, data_format=None)
        planned = [
            PlannedRun(RunFolder(self.folder.path / name), corpus, config, options) for name, (config, corpus) in runs.items()
        ]
        with self._recorded(record):
            self._train_all(planned)
        return [run.folder.read_scores() for run in planned]

    def _train_all(self, runs: Sequence[PlannedRun]) -> None:
        """Train the runs that are not finished."""
        unfinished = []
        for run in runs:
            if run.options.resume and run.folder.is_finished:
                clean_finished_run(run.folder)
            else:
                should_resume = run.options.resume and run.folder.path.is_dir()
                unfinished.append(replace(run, options=replace(run.options, resume=should_resume)))
        if self.options.jobs > 1 and len(unfinished) > 1:
            RunPool(self.options.jobs, self.options.device, self.options.log).train(unfinished)
            return
        for run in unfinished:
            run.options.log(f"== {run.name}")
            train_config(run.corpus, run.folder.path, run.config, run.options)

    def _replace_encoder(self, runs: Mapping[str, tuple[Config, Corpus]]) -> Mapping[str, tuple[Config, Corpus]]:
        """Choose the encoder of all runs as a single run does, from the data of the first."""
        first_config, first_corpus = next(iter(runs.values()))
        encoder = replace_encoder(first_config, first_corpus, self.options.log).encoder
        return {name: (config.model_copy(update={"encoder": encoder}), corpus) for name, (config, corpus) in runs.items()}

    @contextmanager
    def _recorded(self, record: RunGroup) -> Iterator[None]:
        """Write the record; remove it if training fails before a run is started."""
        path, before = self.folder.group_file, self.folder.started_runs()
        record.write(path)
        try:
            yield
        except BaseException as error:
            started = self.folder.started_runs()
            if not started or (isinstance(error, SpanwiseError) and started == before):
                if self.record is None:
                    path.unlink()
                else:
                    self.record.write(path)
            raise

    def _check(self, runs: Mapping[str, tuple[Config, Corpus]]) -> None:
        """Before anything is written, refuse to resume with fewer runs, or with changed settings or data."""
        if self.record is not None:
            started = self.folder.started_runs()
            missing = [name for name in self.record.runs if name in started and name not in runs]
            if missing:
                raise SpanwiseError(
                    f"{self.folder.path}: cannot resume without {', '.join(missing)}; "
                    f"request {'it' if len(missing) == 1 else 'them'} too, or remove the folder{'s' * (len(missing) > 1)}"
                )
            check_same_init(self.folder.path, self.record, self.options.init, keep_types=self.options.keep_types)
        for name, (config, corpus) in runs.items() if self.options.resume else ():
            run, data = RunFolder(self.folder.path / name), fingerprints(corpus)
            record = TrainingRecord.read_report(run.report_file) if run.is_finished else run.read_record()
            if record is None:
                continue
            record.check_same(run.path, config, data)
            if run.is_finished and record.data.get("test") != data.get("test"):
                raise SpanwiseError(f"{run.path}: cannot resume: the test data has changed since the run was scored")


def _deviation(values: list[float]) -> float:
    """The standard deviation; 0 for a single value."""
    return stdev(values) if len(values) > 1 else 0.0


def mean_and_deviation(values: list[float]) -> dict[str, float]:
    return {"mean": mean(values), "deviation": _deviation(values)}
