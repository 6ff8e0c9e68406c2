"""How many injected annotation errors does ``spanwise audit`` rank first? Prints precision, also of counting alone.

    python bench/audit.py CONLL04 NCBI_DISEASE GENIA --seeds 1 2 3 --device cuda --work WORK --json FILE

For each corpus and seed, errors are injected into 5 % of the entities of the training split
(``bench/audit_errors.py``), and the changed split is audited. N is the number of injected errors. A
suggestion is a hit if it refers to a changed entity, or suggests an entity with the words of a dropped one;
each error counts once. ``exact`` is the share of hits that suggest exactly the entity before the change.
"counting" ranks the strings that are annotated inconsistently, without a model.

Folds are kept in ``--work``: a second call with the same settings only ranks them again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from audit_errors import InjectedError, inject

from spanwise.audit.audit import audit
from spanwise.audit.inconsistencies import count_suggestions
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.corpora.splits import read_corpus

Item = tuple[int, Entity | None, Entity | None]  # index of the sentence, gold, suggestion


def find_hits(items: Iterable[Item], errors: Sequence[InjectedError]) -> list[InjectedError | None]:
    """The injected error that each suggestion refers to, or None; each error is found once."""
    by_sentence: defaultdict[int, list[InjectedError]] = defaultdict(list)
    for error in errors:
        by_sentence[error.sentence].append(error)
    hits = []
    for index, gold, suggestion in items:
        remaining = by_sentence[index]
        hit = next((error for error in remaining if _refers_to(error, gold, suggestion)), None)
        if hit is not None:
            remaining.remove(hit)
        hits.append(hit)
    return hits


def _refers_to(error: InjectedError, gold: Entity | None, suggestion: Entity | None) -> bool:
    if error.after is not None:
        return gold == error.after
    return gold is None and suggestion is not None and error.before is not None and suggestion.range == error.before.range


def summarise(items: Sequence[Item], errors: Sequence[InjectedError]) -> dict[str, Any]:
    """Precision among the first N and the first 100 suggestions, and the errors of each kind among the first N."""
    hits = find_hits(items, errors)
    count = len(errors)
    first = [(item, hit) for item, hit in zip(items[:count], hits, strict=False) if hit is not None]
    kinds, ranked = Counter(error.kind for error in errors), Counter(hit.kind for _, hit in first)
    return {
        "errors": count,
        "suggestions": len(items),
        "precision_at_n": len(first) / count,
        "precision_at_100": sum(hit is not None for hit in hits[:100]) / 100,
        "exact": sum(item[2] == hit.before for item, hit in first) / max(1, len(first)),
        "errors_in_first_n": {kind: [ranked[kind], kinds[kind]] for kind in kinds},
    }


def measure(sentences: Sequence[Sentence], seed: int, work: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    changed, errors = inject(sentences, arguments.share, seed)
    positions = {sentence.id: index for index, sentence in enumerate(changed)}
    assert len(positions) == len(changed), "sentence ids are not unique"
    settings = {"epochs": arguments.epochs} if arguments.epochs else {}
    start_time = time.perf_counter()
    result = audit(
        Corpus({"train": tuple(changed)}, work.name), work, folds=arguments.folds, repeats=arguments.repeats,
        recipe=arguments.recipe, encoder=arguments.encoder, overrides=arguments.set, device=arguments.device,
        resume=work.exists(), log=_print_error, **settings,
    )  # fmt: skip
    seconds = time.perf_counter() - start_time
    items = [(positions[item.sentence], item.gold, item.suggestion) for item in result.suggestions]
    counting = [(index, gold, suggestion) for index, _, gold, suggestion, _ in count_suggestions(changed)]
    return {"audit": summarise(items, errors), "counting": summarise(counting, errors), "seconds": round(seconds, 1)}


def _print_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--share", type=float, default=0.05, help="of the entities that are changed")
    parser.add_argument("--sentences", type=int, help="use only the first sentences")
    parser.add_argument("--folds", type=int)
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--recipe")
    parser.add_argument("--encoder")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--set", action="append", default=[], help="SECTION.KEY=VALUE, as in spanwise audit")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--work", type=Path, required=True, help="folder for the audits")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    for corpus in arguments.corpora:
        sentences = read_corpus(corpus)["train"][: arguments.sentences]
        for seed in arguments.seeds:
            name = f"{corpus.name}-{seed}"
            arguments.work.mkdir(parents=True, exist_ok=True)
            results[name] = row = measure(sentences, seed, arguments.work / name, arguments)
            for method in ("audit", "counting"):
                score = row[method]
                kinds = ", ".join(f"{kind} {hits}/{total}" for kind, (hits, total) in score["errors_in_first_n"].items())
                print(
                    f"{name:20} {method:9} at N={score['errors']}: {score['precision_at_n']:.3f}  at 100: "
                    f"{score['precision_at_100']:.2f}  exact: {score['exact']:.2f}  ({kinds})", flush=True
                )  # fmt: skip
            if arguments.json:
                arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
