"""The contract of heads, checked on a tiny corpus."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from spanwise.testing.onnx import check_onnx
from spanwise.testing.scoring import check_batch_invariance, check_padding_invariance, check_short_sentences
from spanwise.testing.training import check_loss_decreases, check_resume, check_saved_model, train_and_copy


def check_head(
    name: str, folder: str | Path | None = None, *, encoder: str | Path = "static", overrides: Iterable[str] = ()
) -> None:
    """Check that a head, given by its name or by a recipe, keeps the contract; raise ``AssertionError`` otherwise.

    The head is trained on a tiny corpus on the CPU, which takes a second or two. The rules:

    * the loss is finite and decreases while the head overfits the corpus;
    * an interrupted and resumed run gives the same weights, bit for bit;
    * a saved model gives the same predictions and scores when it is loaded;
    * losses and predictions of a sentence do not depend on the other sentences of its batch, nor on
      the states of padding;
    * empty sentences and sentences of one word have a finite loss and valid predictions;
    * the ONNX export gives the same predictions, or the head declares why it has no graph
      (``Head.onnx``). The export is skipped if onnx is not installed.

    ``folder`` keeps the run folders; by default they are deleted. ``encoder`` is ``static`` or, for
    heads that need the layers of a transformer, a model folder (see
    ``spanwise.testing.encoders.tiny_bert``). ``overrides`` are settings as ``section.key=value``.

    >>> check_head("spanner")
    """
    with ExitStack() as stack:
        work = Path(folder if folder is not None else stack.enter_context(TemporaryDirectory()))
        overrides = tuple(overrides)
        run = train_and_copy(name, work / "run", work / "resumed", encoder=str(encoder), overrides=overrides)
        check_loss_decreases(run)
        check_resume(run, work / "resumed", encoder=str(encoder), overrides=overrides)
        check_saved_model(run)
        check_batch_invariance(run.model)
        check_padding_invariance(run.model)
        check_short_sentences(run.model)
        check_onnx(run, work / "onnx")
