"""Writes tests/models/sentencepiece.json: small SentencePiece models, with what that package makes of texts.

    python scripts/make_sentencepiece_fixture.py    needs the package sentencepiece

Three models, trained on this repository's documents: BPE as Llama has it, BPE as Gemma has it (no space
before a text, tokens of the user's own), unigrams as T5 has them (with a rule that rewrites characters).
"""

from __future__ import annotations

import base64
import io
import json
import random
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIXTURE = ROOT / "tests" / "models" / "sentencepiece.json"
PLAIN = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "byte_fallback": True}
MODELS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "bpe", "split_digits": True, "vocab_size": 560, **PLAIN},
    "gemma": {
        "model_type": "bpe",
        "vocab_size": 560,
        "add_dummy_prefix": False,
        "user_defined_symbols": ["\n", "\n\n", "▁▁", "▁▁▁", "<mask>"],
        "control_symbols": ["<start_of_turn>", "<end_of_turn>"],
        **PLAIN,
    },
    "t5": {"model_type": "unigram", "vocab_size": 300, "bos_id": -1, "eos_id": 1, "unk_id": 2, "pad_id": 0},
}
RULES = "FB01\t66 69\n2026\t2E 2E 2E\n"  # ﬁ and …, as code points
TEXTS = (
    *(
        "",
        " ",
        "a",
        " x",
        "a ",
        "  two  spaces  ",
        "Tensor of 12345 floats",
        "é😀日本語",
        "tabs\tand\nlines\n\nx",
    ),
    *(
        "aaaaaaaaaaaaaaa",
        "١٢٣ ½",
        "ﬁne…",
        "\u200d zero",
        "don't (x @ w)",
        "<0x0A>",
        "<mask> it",
        "   three",
        "A\r\nB",
    ),
)


def make_texts() -> list[str]:
    """The texts above, and mixtures of characters."""
    choose = random.Random(6)
    return [
        *TEXTS,
        *("".join(choose.choices("abtensor .1<>|\n\té日😀 /", k=choose.randint(1, 30))) for _ in range(60)),
    ]


def main() -> None:
    """Train, ask, write."""
    import sentencepiece

    lines = [
        line
        for name in ("README.md", "docs/architecture.md")
        for line in (ROOT / name).read_text().splitlines()
    ]
    found = {}
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write(RULES)
        rules.flush()
        for name, options in MODELS.items():
            model = io.BytesIO()
            if name == "t5":
                options = {**options, "normalization_rule_tsv": rules.name}
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines), model_writer=model, minloglevel=2, num_threads=1, **options
            )
            data = model.getvalue()
            processor = sentencepiece.SentencePieceProcessor(model_proto=data)
            texts = [
                (text, processor.encode(text), processor.decode(processor.encode(text)))
                for text in make_texts()
            ]
            found[name] = {"model": base64.b64encode(data).decode(), "texts": texts}
    FIXTURE.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
