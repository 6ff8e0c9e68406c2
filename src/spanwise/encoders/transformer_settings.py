"""The settings of transformer encoders."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from spanwise.encoders.subword_indexing import Context, Pooling

MASKING, MASKING_SENTENCES = 0.1, 500  # automatic masking, and the training sentences from which on it is used


class TransformerSettings(BaseModel):
    """``pooling`` combines the subwords of a word; the top ``layers`` are averaged; ``context`` fills the window."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    kind: Literal["transformer"] = Field(default="transformer", description="kind of encoder")
    name: str = Field(description="minilm, a model folder, or a name on the Hugging Face hub")
    pooling: Pooling = Field(default="max", description="how the subwords of a word are combined")
    layers: int = Field(default=1, ge=1, description="number of top layers that are averaged")
    context: Context = Field(
        default="sentence", description="fill the window with the sentence only, or with neighbouring sentences of the document"
    )
    window: int | None = Field(default=None, ge=16, description="subwords per window; the encoder's limit by default")
    masking: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = Field(
        default=0.0,
        description="share of the subwords that training replaces by the mask token; auto: 0.1, but 0 for small data",
    )
    frozen_embeddings: bool = Field(False, description="do not train the embeddings")
    frozen_layers: int = Field(0, ge=0, description="do not train the embeddings and this many of the lowest layers")

    def resolve(self, sentence_count: int) -> Self:
        """Set automatic masking. Few training sentences leave too little to learn from if words are hidden.

        >>> settings = TransformerSettings(name="minilm", masking="auto")
        >>> [settings.resolve(sentences).masking for sentences in (100, 1000)]
        [0.0, 0.1]
        """
        if self.masking != "auto":
            return self
        return self.model_copy(update={"masking": MASKING if sentence_count >= MASKING_SENTENCES else 0.0})
