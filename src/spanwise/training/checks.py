"""Problems in the data that a user should know about before training, and likely causes of a score of 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from spanwise.core.counting import counted, join_names
from spanwise.core.partial import known_types
from spanwise.core.types import Corpus, Entity, Sentence, Span
from spanwise.encoders.base import Encoder
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.encoders.word_tokenizer import WordTokenizer
from spanwise.heads.base import Head
from spanwise.models.model import entity_types
from spanwise.prediction.windows import MAX_WORDS, window_ranges

COVERAGE_SAMPLE = 20_000  # words of the training data that are checked
MAX_LISTED = 10  # names in a note; corpora may have hundreds of types
MAX_KNOWN = 0.01  # share of dev or test sentences that are also in train; below it, scores hardly change
MAX_UNCOVERED = 0.2  # share of words; names and sequences of letters in biomedical text are far below it


def check_corpus(corpus: Corpus, head: Head) -> list[str]:
    """Return notes about what the head cannot predict, and about labels and sentences of the splits."""
    return [
        *_unreachable_entity_notes(corpus, head),
        *_relation_notes(corpus, head),
        *_label_notes(corpus),
        *_known_sentence_notes(corpus),
    ]


def check_coverage(corpus: Corpus, encoder: Encoder) -> list[str]:
    """Return a note for each pretrained encoder that hardly knows the script or language of the training data."""
    notes = []
    for part in encoder.modules():
        if isinstance(part, TransformerEncoder):
            share = _share_of_uncovered_words(corpus["train"], part.indexer.tokenize)
            if share > MAX_UNCOVERED:
                notes.append(
                    f"the encoder {part.settings.name} hardly knows the script or language of this data: "
                    f"{100 * share:.0f}% of the words are unknown or split into single characters; "
                    "use an encoder for this language, such as hf:xlm-roberta-base, or --encoder static"
                )
    return notes


def is_covered(sentences: Sequence[Sentence], tokenize: WordTokenizer) -> bool:
    """Whether the pretrained encoder of a tokenizer knows the script and language of sentences."""
    return _share_of_uncovered_words(sentences, tokenize) <= MAX_UNCOVERED


def _share_of_uncovered_words(sentences: Sequence[Sentence], tokenize: WordTokenizer) -> float:
    """The share of words with letters that contain an unknown subword, or have no subword longer than a character."""
    has_letter = (word for sentence in sentences for word in sentence.words if any(map(str.isalpha, word)))
    words = list(islice(has_letter, COVERAGE_SAMPLE))
    counts = Counter(words)
    uncovered = 0
    for (ids, _), (word, count) in zip(tokenize([[word] for word in counts]), counts.items(), strict=True):
        # A single character is covered by one subword; bytes of a character are more than one.
        is_split = len(ids) >= len(word) if len(word) > 2 else len(ids) > len(word)
        uncovered += count * (is_split or tokenize.unknown_id in ids)
    return uncovered / max(1, len(words))


def _unreachable_entity_notes(corpus: Corpus, head: Head) -> Iterator[str]:
    for split in corpus:
        causes = sum((unreachable_causes(sentence, head) for sentence in corpus[split]), Counter[str]())
        if missed := causes.total():
            total = sum(len(set(sentence.entities)) for sentence in corpus[split])
            listed = ", ".join(f"{count:,} {cause}" for cause, count in causes.most_common())
            yield (
                f"{split}: this model cannot predict {missed:,} of {total:,} entities ({missed / total:.1%}): {listed}; "
                "they count as missed in every score"
            )


def _relation_notes(corpus: Corpus, head: Head) -> Iterator[str]:
    count = sum(len(sentence.relations) for sentence in corpus["train"])
    if count and not head.finds_relations:
        can_learn = hasattr(head.configured_head.settings, "relations")
        advice = "pass --set head.relations=auto" if can_learn else "use the recipe spanwise"
        yield f"train has {counted(count, 'relation')}, which this model does not learn; to learn them, {advice}"
    links = sum(len(sentence.links) for sentence in corpus["train"])
    if links and not head.finds_relations:
        yield f"train has {counted(links, 'relation')} between sentences, which no recipe learns"
    if head.finds_relations:
        for split in corpus:
            if note := _unreachable_relations(corpus[split], head):
                yield f"{split}: {note}"


def _label_notes(corpus: Corpus) -> Iterator[str]:
    known = set(entity_types(corpus["train"]))
    for split in corpus:
        counts = Counter(entity.type for sentence in corpus[split] for entity in sentence.entities)
        unseen = {name: count for name, count in counts.items() if name not in known}
        if unseen:
            listed = join_names([f"{name} ({count})" for name, count in sorted(unseen.items())], MAX_LISTED)
            yield f"{split} has entity types that are not in train and cannot be learned: {listed}"
        absent = known - counts.keys() - _unannotated(corpus[split], known)
        if split != "train" and counts and absent:
            yield f"{split} has no entity of {join_names(sorted(absent), MAX_LISTED)}"
        if split != "train" and not counts:
            yield f"{split} has no entities: its scores will be 0"


def _known_sentence_notes(corpus: Corpus) -> Iterator[str]:
    known = {sentence.words for sentence in corpus["train"]} - {()}
    for split in corpus:
        count, total = sum(sentence.words in known for sentence in corpus[split]), len(corpus[split])
        if split != "train" and count > MAX_KNOWN * total:
            share = f"{count / total:.1%} of the sentences are also in train ({count:,} of {total:,})"
            yield f"{split}: {share}; scores on new text are probably lower"


def _unannotated(sentences: Sequence[Sentence], types: set[str]) -> set[str]:
    """The types that no sentence annotates completely."""
    annotated = [known_types(sentence) for sentence in sentences]
    return set() if None in annotated else types - {type for listed in annotated for type in listed or ()}


def unreachable_causes(sentence: Sentence, head: Head) -> Counter[str]:
    """Count the entities of a sentence that a head can never predict, by cause.

    The cause follows from what the head can predict when it is given single entities, or those of one span.
    """
    missed = head.count_unreachable(sentence)
    causes: Counter[str] = Counter()
    if not missed:
        return causes
    by_span: dict[tuple[Span, ...], list[Entity]] = {}
    for entity in dict.fromkeys(sentence.entities):
        if head.count_unreachable(_with_entities(sentence, entity)):
            causes[_single_cause(entity, head)] += 1
        else:
            by_span.setdefault(entity.fragments, []).append(entity)
    same_span = [entities for entities in by_span.values() if len(entities) > 1]
    causes["of a second type on their span"] = sum(head.count_unreachable(_with_entities(sentence, *row)) for row in same_span)
    causes["overlapping another"] = missed - causes.total()
    return +causes


def _unreachable_relations(sentences: Sequence[Sentence], head: Head) -> str | None:
    """Describe the relations that can never be predicted, with causes; None if there are none."""
    causes: Counter[str] = Counter()
    for sentence in sentences:
        causes["between sentences"] += len(set(sentence.links))
        unreachable = set()
        if head.count_unreachable(sentence):
            single = [_with_entities(sentence, entity) for entity in sentence.entities]
            unreachable = {index for index, part in enumerate(single) if head.count_unreachable(part)}
        ranges = window_ranges(len(sentence.words))
        for relation in set(sentence.relations):
            if relation.type not in head.labels.relations:
                causes["of a type that is not in train"] += 1
            elif unreachable & {relation.head, relation.tail}:
                causes["between entities that cannot be predicted"] += 1
            elif not _is_in_one(ranges, sentence.entities[relation.head].range, sentence.entities[relation.tail].range):
                causes[f"between entities that no window of {MAX_WORDS} words contains"] += 1
    missed = causes.total()
    if not missed:
        return None
    total = sum(len(set(s.relations)) + len(set(s.links)) for s in sentences)
    listed = ", ".join(f"{count:,} {cause}" for cause, count in causes.most_common() if count)
    return f"this model cannot predict {missed:,} of {total:,} relations ({missed / total:.1%}): {listed}; they count as missed"


def _is_in_one(ranges: Sequence[Span], *parts: Span) -> bool:
    """Whether one of the ranges contains all parts."""
    return any(all(span.start <= part.start and part.end <= span.end for part in parts) for span in ranges)


def _with_entities(sentence: Sentence, *entities: Entity) -> Sentence:
    return replace(sentence, entities=entities, relations=(), links=())


def _single_cause(entity: Entity, head: Head) -> str:
    """Why an entity cannot be predicted even in a sentence without others."""
    if entity.type not in head.labels.entities:
        return "of a type that is not in train"
    if not entity.is_discontinuous:
        return "too wide"
    return "with fragments too wide or too far apart" if entity.type in head.discontinuous_types else "discontinuous"


def explain_zero_score(gold: Sequence[Sentence], predicted: Sequence[Sentence], head: Head, rate: float) -> str:
    """Return the likely cause of a score of 0 after the first epoch."""
    gold_count = sum(len(set(sentence.entities)) for sentence in gold)
    predictions = [entity for sentence in predicted for entity in sentence.entities]
    if not gold_count:
        return "dev has no entities"
    if sum(head.count_unreachable(sentence) for sentence in gold) == gold_count:
        return "this model cannot predict any entity of dev; see the notes above"
    if not predictions:
        return (
            "the model predicts no entities yet. This is normal for very small data; otherwise raise training.head_rate "
            f"(now {rate:g}) or train longer"
        )
    spans = {(s.id, e.fragments) for s in gold for e in s.entities}
    fragments = {(s.id, *fragment) for s in gold for e in s.entities for fragment in e.fragments}
    exact = sum((s.id, e.fragments) in spans for s in predicted for e in s.entities)
    if exact:
        return (
            f"{exact} of {len(predictions)} predictions have the right boundaries and a wrong type. "
            "Do dev and train use the same labels?"
        )
    off_by_one = sum(
        (s.id, e.range.start, e.range.end + offset) in fragments for s in predicted for e in s.entities for offset in (-1, 1)
    )
    if off_by_one > len(predictions) / 2:
        return "most predictions end one word early or late. Are the ends in one of the files inclusive?"
    return (
        f"{counted(len(predictions), 'entity')} predicted, none of {gold_count:,} correct yet: train longer, or check the data"
    )
