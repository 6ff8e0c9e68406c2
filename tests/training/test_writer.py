"""Writing while training continues."""

from __future__ import annotations

from threading import Event, get_ident

import pytest

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
