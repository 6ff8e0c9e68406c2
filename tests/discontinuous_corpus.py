"""Made-up reports with many discontinuous entities, for tests and ``bench/discontinuous.py``.

Every sentence has one to three clauses, so a sentence has unrelated fragments of the same type: a model
must find fragments and also link them. In the template of a clause, the letters after a bar are the
entities of a word: in ``left|ac and right|bd knee|abcd``, "left" is part of the entities a and c,
"right" of b and d, "knee" of all four.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from spanwise.core.types import Corpus, Entity, Sentence, Span

SITES = "knee hip elbow wrist ankle shoulder heel thumb jaw neck foot hand thigh calf temple rib".split()
TISSUES = "muscle tendon skin joint bone nerve ligament bursa".split()
COMPLAINTS = "pain swelling stiffness numbness bruising cramps weakness itching redness spasms".split()
STATES = "sore swollen stiff numb bruised tender weak red inflamed cold".split()
SIDES = (("left", "right"), ("upper", "lower"), ("inner", "outer"), ("front", "rear"))
DEVICES = "pump heater monitor fan lamp drip alarm".split()
DRUGS = "aspirin codeine heparin insulin ibuprofen morphine".split()
FORMS = "gel tablets drops cream".split()

# {s1} and {s2} are a pair of sides, p sites, t tissues, c complaints, x states, d devices, m drugs, f forms.
CLAUSES = {
    # two sides of one site: "left … knee pain" and "right knee pain"
    "modifiers": "{s1}|a and {s2}|b {p1}|ab {c1}|ab",
    # one site with two complaints: "knee pain" and "knee … swelling"
    "heads": "{p1}|ab {c1}|a and {c2}|b",
    # both: entities of one, two and three fragments that overlap
    "both": "{s1}|ac and {s2}|bd {p1}|abcd {c1}|ab and {c2}|cd",
    # three fragments, two of them shared
    "three": "the {t1}|ab in the {p1}|a and in the {p2}|b was {x1}|ab",
    # all combinations …
    "product": "the {p1}|ab and the {p2}|cd were {x1}|ac and {x2}|bd",
    # … or respective pairs, which only the last word of the clause indicates
    "order": "the {p1}|a and the {p2}|b were {x1}|a and {x2}|b respectively",
    # another type, with fragments inside and across the others
    "verb": "they switched|A the {d1} off|A",
    "verbs": "they turned|AB the {d1} up|A and the {d2} down|B",
    # entities of one fragment
    "contiguous": "{s2}|a {p1}|a {c1}|a",
    "site": "the {p1}|a was {x1} after {m1}|1 {f1}|1",  # a site and a state that are not fragments
    "drug": "{m1}|1 {f1}|1 and {m2}|2",
    # the same words without entities
    "trial": "the {s1} and {s2} arm of the trial closed",
    "weather": "the lamp was {x1} and the floor was {x2}",
    "leaflet": "a leaflet on {c1} and {c2}",
}
DISCONTINUOUS = tuple(CLAUSES)[:8]
OPENINGS = ("", "today", "later", "on admission", "at night", "we saw")
JOINTS = (",", "; then", ", while", "and besides")


def clause(kind: str, choose: random.Random) -> tuple[list[str], dict[str, list[int]]]:
    """Return the words of a clause and the word indices of each entity."""
    names = {"s1": "", "s2": ""}
    names["s1"], names["s2"] = choose.sample(choose.choice(SIDES), 2)
    pools = {"p": SITES, "t": TISSUES, "c": COMPLAINTS, "x": STATES, "d": DEVICES, "m": DRUGS, "f": FORMS}
    for letter, pool in pools.items():
        names[f"{letter}1"], names[f"{letter}2"] = choose.sample(pool, 2)
    words, indices = [], dict[str, list[int]]()
    for index, item in enumerate(CLAUSES[kind].split()):
        word, _, entities = item.partition("|")
        words.append(word.format(**names))
        for entity in entities:
            indices.setdefault(entity, []).append(index)
    return words, indices


def sentence(number: int, choose: random.Random, kinds: tuple[str, ...] = tuple(CLAUSES)) -> Sentence:
    words = choose.choice(OPENINGS).split()
    entities = []
    for turn in range(choose.randint(1, 3)):
        if turn:
            words += choose.choice(JOINTS).split()
        clause_words, indices = clause(choose.choice(kinds), choose)
        for name, members in indices.items():
            fragments = tuple(Span(len(words) + index, len(words) + index + 1) for index in members)
            entities.append(Entity(_type(name), fragments))  # joins adjacent fragments
        words += clause_words
    return Sentence(f"s{number}", (*words, "."), tuple(entities))


def _type(name: str) -> str:
    return "Finding" if name.islower() else "Action" if name.isupper() else "Drug"


def sentences(count: int, seed: int = 0) -> Iterator[Sentence]:
    """Yield distinct sentences."""
    choose = random.Random(seed)
    seen: set[tuple[str, ...]] = set()
    while len(seen) < count:
        candidate = sentence(len(seen), choose)
        if candidate.words not in seen:
            seen.add(candidate.words)
            yield candidate


def corpus(train: int = 3000, dev: int = 400, test: int = 1000) -> Corpus:
    """Make splits without common sentences."""
    pool = tuple(sentences(train + dev + test))
    return Corpus({"train": pool[:train], "dev": pool[train : train + dev], "test": pool[train + dev :]}, "reports")
