"""Writing while training continues."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from threading import Event, Thread, get_ident
from typing import Any

import pytest
from steps import make_trainer

from spanwise.training.writer import Writer


def test_functions_run_in_a_thread_one_after_the_other() -> None:
    can_write, written = Event(), []

    def first() -> None:
        assert can_write.wait(60)
        written.append((1, get_ident() == main))

    main = get_ident()
    with Writer(in_background=True) as writer:
        writer.write(first)
        assert not written
        can_write.set()
        writer.write(lambda: written.append((2, get_ident() == main)))
    assert written == [(1, False), (2, False)]


def test_functions_run_at_once() -> None:
    written: list[int] = []
    with Writer(in_background=False) as writer:
        writer.write(lambda: written.append(1))
        assert written == [1]


@pytest.mark.parametrize("in_background", [False, True])
def test_errors_are_raised(in_background: bool) -> None:
    def fail() -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"), Writer(in_background=in_background) as writer:
        writer.write(fail)
    writer.wait()  # raised only once


def test_an_error_of_the_training_matters_more() -> None:
    can_fail, has_failed = Event(), Event()

    def fail() -> None:
        assert can_fail.wait(60)
        has_failed.set()
        raise OSError("full")

    def train(writer: Writer) -> None:
        writer.write(fail)
        can_fail.set()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Writer(in_background=True) as writer:
        train(writer)
    assert has_failed.is_set()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot send a signal to a thread")
@pytest.mark.parametrize("writes_again", [False, True])
def test_an_interrupt_while_waiting_leaves_nothing_unwritten(writes_again: bool) -> None:
    can_write, written, main = Event(), list[int](), get_ident()

    def write() -> None:
        assert can_write.wait(60)
        written.append(1)

    def interrupt() -> None:
        time.sleep(0.1)
        signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.1)
        can_write.set()

    def train(writer: Writer) -> None:
        writer.write(write)
        Thread(target=interrupt).start()
        if writes_again:
            writer.write(lambda: written.append(2))

    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), Writer(in_background=True) as writer:
            train(writer)
        assert written == [1]
    finally:
        signal.signal(signal.SIGINT, old)


def test_other_processes_wait_until_the_last_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    can_write, events = Event(), list[str]()

    def save_checkpoint(*values: Any) -> None:
        assert can_write.wait(60)
        events.append("written")

    def wait_for_everyone() -> None:
        events.append("waited")
        can_write.set()

    trainer = make_trainer(tmp_path, overrides=("training.epochs=1",))
    trainer.writer = Writer(in_background=True)  # as on a GPU
    monkeypatch.setattr("spanwise.training.loop.save_checkpoint", save_checkpoint)
    monkeypatch.setattr(trainer.accelerator, "wait_for_everyone", wait_for_everyone)
    trainer.train()
    assert events == ["waited", "written", "waited"]
