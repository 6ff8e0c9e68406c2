"""Write a copy of a corpus with part-of-speech tags, for Locate and Label on corpora that have none.

pip install HanTa==1.2.1; python bench/papers/tag.py DATA/litbank TAGGED/litbank

The Hanover Tagger has its English model in its package (tags of the British National Corpus, C5), so
nothing has to be downloaded. Words are those of the corpus. Other taggers: encoder.parts.1.tagger.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()

    from HanTa.HanoverTagger import HanoverTagger

    tagger = HanoverTagger("morphmodel_en.pgz")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(arguments.data.glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        for record in records:
            record["pos"] = [tag for _, _, tag in tagger.tag_sent(record["tokens"])] if record["tokens"] else []
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        (arguments.out / path.name).write_text("".join(lines), encoding="utf-8")
        print(f"{path.name}: {len(records):,} sentences")


if __name__ == "__main__":
    main()
