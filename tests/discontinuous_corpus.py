"""Invented reports full of discontinuous entities, for tests and for ``bench/discontinuous.py``.

Every sentence is of one to three clauses, so fragments of one type stand side by side that have nothing to do with one another:
finding fragments is not enough, they have to be linked. In a clause's template, letters behind a bar say to which entities
a word belongs: ``left|ac and right|bd knee|abcd`` are two words of the entities a, c and b, d, and one of all four.
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
    # two sides of one site: "left … knee pain" beside "right knee pain"
    "modifiers": "{s1}|a and {s2}|b {p1}|ab {c1}|ab",
    # one site with two complaints: "knee pain" beside "knee … swelling"
    "heads": "{p1}|ab {c1}|a and {c2}|b",
    # both: entities of one, two and three fragments that share and overlap
    "both": "{s1}|ac and {s2}|bd {p1}|abcd {c1}|ab and {c2}|cd",
    # three fragments, two of them shared
    "three": "the {t1}|ab in the {p1}|a and in the {p2}|b was {x1}|ab",
    # everything with everything …
    "product": "the {p1}|ab and the {p2}|cd were {x1}|ac and {x2}|bd",
    # … or in order, which only the clause's last word tells
    "order": "the {p1}|a and the {p2}|b were {x1}|a and {x2}|b respectively",
    # another type, whose fragments stand within and across the others
    "verb": "they switched|A the {d1} off|A",
    "verbs": "they turned|AB the {d1} up|A and the {d2} down|B",
    # entities of one fragment
    "contiguous": "{s2}|a {p1}|a {c1}|a",
    "site": "the {p1}|a was {x1} after {m1}|1 {f1}|1",  # a site and a state that are no fragments
    "drug": "{m1}|1 {f1}|1 and {m2}|2",
    # the same words, and no entity at all
    "trial": "the {s1} and {s2} arm of the trial closed",
    "weather": "the lamp was {x1} and the floor was {x2}",
    "leaflet": "a leaflet on {c1} and {c2}",
}
DISCONTINUOUS = tuple(CLAUSES)[:8]
OPENINGS = ("", "today", "later", "on admission", "at night", "we saw")
JOINTS = (",", "; then", ", while", "and besides")


def clause(kind: str, choose: random.Random) -> tuple[list[str], dict[str, list[int]]]:
    """The words of a clause, and of each entity the words that belong to it."""
    names = {"s1": "", "s2": ""}
    names["s1"], names["s2"] = choose.sample(choose.choice(SIDES), 2)
    pools = {"p": SITES, "t": TISSUES, "c": COMPLAINTS, "x": STATES, "d": DEVICES, "m": DRUGS, "f": FORMS}
    for letter, pool in pools.items():
        names[f"{letter}1"], names[f"{letter}2"] = choose.sample(pool, 2)
    words, places = [], dict[str, list[int]]()
    for number, item in enumerate(CLAUSES[kind].split()):
        word, _, entities = item.partition("|")
        words.append(word.format(**names))
        for entity in entities:
            places.setdefault(entity, []).append(number)
    return words, places


def sentence(number: int, choose: random.Random, kinds: tuple[str, ...] = tuple(CLAUSES)) -> Sentence:
    words = choose.choice(OPENINGS).split()
    entities = []
    for turn in range(choose.randint(1, 3)):
        if turn:
            words += choose.choice(JOINTS).split()
        more, places = clause(choose.choice(kinds), choose)
        for name, own in places.items():
            fragments = tuple(Span(len(words) + place, len(words) + place + 1) for place in own)
            entities.append(Entity(_type(name), fragments))  # fragments that touch are joined
        words += more
    return Sentence(f"s{number}", (*words, "."), tuple(entities))


def _type(name: str) -> str:
    return "Finding" if name.islower() else "Action" if name.isupper() else "Drug"


def sentences(count: int, seed: int = 0) -> Iterator[Sentence]:
    """Different ones."""
    choose = random.Random(seed)
    seen: set[tuple[str, ...]] = set()
    while len(seen) < count:
        one = sentence(len(seen), choose)
        if one.words not in seen:
            seen.add(one.words)
            yield one


def corpus(train: int = 3000, dev: int = 400, test: int = 1000) -> Corpus:
    """Splits that share no sentence."""
    every = tuple(sentences(train + dev + test))
    return Corpus({"train": every[:train], "dev": every[train : train + dev], "test": every[train + dev :]}, "reports")
