"""Search for many phrases in a sentence at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Phrase = tuple[str, ...]


def find_phrases(words: Sequence[str], phrases: Iterable[Phrase], max_count: int = 2) -> dict[Phrase, list[int]]:
    """Return where the first ``max_count`` occurrences of each phrase start; phrases that do not occur are missing.

    The work is linear in the number of words of the sentence and of all phrases (Aho and Corasick,
    1975): the phrases are a tree of words, and a failed match continues at the longest end of the
    matched words that starts a phrase.

    >>> find_phrases("New York , New York".split(), [("New", "York"), ("York",), ("New", "Delhi"), ()])
    {('New', 'York'): [0, 3], ('York',): [1, 4]}
    """
    tree = _PhraseTree(words, phrases)
    starts: dict[int, list[int]] = {node: [] for node in tree.phrase_at}
    node = 0
    for end, word in enumerate(words, 1):
        node = tree.next_node(node, word)
        match = node if node in starts else tree.shorter_match[node]
        # A phrase with enough occurrences needs no more, nor do the phrases at its end, which occur at least as often.
        while match and len(starts[match]) < max_count:
            starts[match].append(end - tree.depth[match])
            match = tree.shorter_match[match]
    return {tree.phrase_at[node]: positions for node, positions in starts.items() if positions}


class _PhraseTree:
    """The phrases as a tree. Node 0 is the root."""

    def __init__(self, words: Sequence[str], phrases: Iterable[Phrase]) -> None:
        vocabulary = set(words)
        self.children: list[dict[str, int]] = [{}]
        self.depth = [0]
        self.phrase_at: dict[int, Phrase] = {}
        for phrase in dict.fromkeys(phrases):
            if phrase and len(phrase) <= len(words) and vocabulary.issuperset(phrase):
                self._add(phrase)
        self.fallback = [0] * len(self.depth)  # the node of the longest proper end of a node's words
        self.shorter_match = [0] * len(self.depth)  # the same, of those that are a phrase
        self._link()

    def _add(self, phrase: Phrase) -> None:
        node = 0
        for word in phrase:
            child = self.children[node].setdefault(word, len(self.depth))
            if child == len(self.depth):
                self.children.append({})
                self.depth.append(self.depth[node] + 1)
            node = child
        self.phrase_at[node] = phrase

    def _link(self) -> None:
        level = list(self.children[0].values())
        while level:
            below = []
            for node in level:
                for word, child in self.children[node].items():
                    self.fallback[child] = end = self.next_node(self.fallback[node], word)
                    self.shorter_match[child] = end if end in self.phrase_at else self.shorter_match[end]
                    below.append(child)
            level = below

    def next_node(self, node: int, word: str) -> int:
        """Return the node of the longest end of a node's words and this word."""
        while node and word not in self.children[node]:
            node = self.fallback[node]
        return self.children[node].get(word, 0)
