"""Memory and time of predicting long documents, and a check that the entities are the same.

    python bench/long_text.py [--encoders static,minilm] [--recipe spanner] [--words 10000,100000,1000000] [--rounds 3]
                              [--json FILE]

A model is trained briefly on the bundled corpus. Documents are its sentences in random order, joined to
one string of about the given number of words. Each is predicted in a separate process that counts
entities as they arrive. Measured are CPU seconds of the prediction, peak memory during the prediction,
and its excess over the memory before (with the model loaded and warm, and the document in memory). A
round is one process per length; numbers are medians over rounds. First, the entities of a document are
compared with those of its sentences, predicted one at a time. With ``--whole`` the document is a text
without full stops and line ends. Linux only, where peak memory can be reset.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from random import Random

from spanwise.data import FOLDER, bundled_corpus

NOT_A_WORD = re.compile(r"[^\w\s]|\n")


def document(words: int, seed: int, *, whole: bool) -> str:
    """Join sentences of the bundled corpus to at least this many words."""
    sentences = [sentence for split in bundled_corpus().splits.values() for sentence in split]
    choose, pieces, count = Random(seed), [], 0
    while count < words:
        sentence = choose.choice(sentences)
        text = " ".join(sentence.text.split()) + " "
        pieces.append(NOT_A_WORD.sub("", text) if whole else text)
        count += len(sentence.words)
    return "".join(pieces)


def measured(model: str, words: int, seed: int, whole: bool) -> None:
    """Predict a document in this process and print time and memory."""
    from spanwise.prediction.load import load

    predictor = load(model, "cpu")
    text = document(words, seed, whole=whole)
    predictor.predict(document(3000, seed + 1, whole=whole))
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak to the present memory
    before = peak_memory()
    start_time = time.process_time()
    entities = sum(len(sentence.entities) for sentence in predictor.stream([text]))
    seconds = time.process_time() - start_time
    peak = peak_memory()
    print(json.dumps({"entities": entities, "seconds": round(seconds, 3), "peak_mib": peak, "more_mib": peak - before}))


def peak_memory() -> int:
    """Return the peak memory in MiB since the reset."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) >> 10


def in_a_process(*arguments: object) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def same_entities(model: str, words: int) -> tuple[int, int]:
    """Count the entities of a document, and the sentences that differ when predicted alone."""
    from spanwise.prediction.load import load

    predictor = load(model, "cpu")
    whole = list(predictor.stream([document(words, 0, whole=False)]))
    different = 0
    for sentence in whole:
        alone = predictor.predict(sentence.text)
        entities = [entity for part in alone for entity in part.entities]
        different += len(alone) != 1 or entities != list(sentence.entities)
    return sum(len(sentence.entities) for sentence in whole), different


def trained(folder: Path, encoder: str, recipe: str) -> str:
    from spanwise.training.run import train

    epochs = 15 if encoder == "static" else 3
    train(FOLDER, folder, recipe=recipe, encoder=encoder, epochs=epochs, batch_size=8, device="cpu", log=lambda line: None)
    return str(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoders", default="static,minilm")
    parser.add_argument("--recipe", default="spanner")
    parser.add_argument("--words", default="10000,100000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="use a text without full stops")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        model, words, seed, whole = arguments.measure
        measured(model, int(words), int(seed), whole == "True")
        return
    lengths = [int(words) for words in arguments.words.split(",")]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for encoder in arguments.encoders.split(","):
            results[encoder] = one_encoder(Path(folder, encoder), encoder, lengths, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def one_encoder(folder: Path, encoder: str, lengths: list[int], arguments: argparse.Namespace) -> dict[str, object]:
    model = trained(folder, encoder, arguments.recipe)
    print(f"{encoder}, {arguments.recipe}")
    if not arguments.whole:
        entities, different = same_entities(model, lengths[0])
        print(f"  {entities:,} entities in {lengths[0]:,} words; sentences that differ when predicted alone: {different}")
    rows = [
        {words: in_a_process(model, words, round_, arguments.whole) for words in lengths} for round_ in range(arguments.rounds)
    ]
    print(f"  {'words':>10} {'CPU s':>9} {'words/s':>9} {'peak MiB':>9} {'more MiB':>11} {'entities':>9}")
    for words in lengths:
        seconds = statistics.median(row[words]["seconds"] for row in rows)
        peak, more, entities = (
            statistics.median(row[words][key] for row in rows) for key in ("peak_mib", "more_mib", "entities")
        )
        print(f"  {words:>10,} {seconds:>9.2f} {words / seconds:>9,.0f} {peak:>9.0f} {more:>11.0f} {entities:>9,.0f}")
    for short, long in zip(lengths, islice(lengths, 1, None), strict=False):
        ratio = statistics.median(row[long]["seconds"] / row[short]["seconds"] for row in rows)
        print(f"  {long / short:g} times the words take {ratio:.2f} times the time")
    return {"rounds": rows}


if __name__ == "__main__":
    main()
