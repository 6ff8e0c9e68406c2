"""``bench/unseen.py``: train and dev have no entity in common, and no sentence is in both."""

from __future__ import annotations

from unseen import entity_strings, split_by_entities

from spanwise.core.types import Entity, Sentence


def test_train_and_dev_have_no_entity_in_common() -> None:
    names = [f"name{number % 20}" for number in range(60)]
    single = [Sentence(f"s{i}", ("the", name.upper()), (Entity("X", ((1, 2),)),)) for i, name in enumerate(names)]
    pairs = [
        Sentence(f"p{i}", (one, other), (Entity("X", ((0, 1),)), Entity("X", ((1, 2),))))
        for i, (one, other) in enumerate(zip(names, names[7:], strict=False))
    ]
    empty = [Sentence(f"e{i}", ("nothing",)) for i in range(40)]
    train, dev = split_by_entities([*single, *pairs, *empty], 0.5)
    known, unseen = ({string for sentence in part for string in entity_strings(sentence)} for part in (train, dev))
    assert known
    assert unseen
    assert not known & unseen
    assert any(not sentence.entities for sentence in train)
    assert any(not sentence.entities for sentence in dev)
    assert not {sentence.id for sentence in train} & {sentence.id for sentence in dev}
