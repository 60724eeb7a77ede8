"""Writes tests/models/smollm2_tokens.json: texts and ids of SmolLM2-135M, by other programs.

    python scripts/make_token_fixture.py MODEL.gguf llama.cpp       texts to ids, by the package xllamacpp
    python scripts/make_token_fixture.py MODEL.gguf transformers    conversations to ids, ids to texts

The ids of texts are llama.cpp's, because transformers 5 reads this GGUF file without its rule that each
digit is a word (" ½" gets other ids than from the tokenizer.json that the model was published with). Texts
come from a fixed seed: words, code, numbers, spaces, many scripts, emoji, special tokens, and any mixture.
"""

from __future__ import annotations

import argparse
import json
import random
import urllib.request
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parents[1] / "tests" / "models" / "smollm2_tokens.json"
PIECES = (
    *("Hello", " world", "The quick brown fox", " it's", " they'LL", "don't", " I'M", "supercalifragilistic"),
    *(
        "def f(x):\n    return x ** 2\n",
        "for (int i = 0; i < n; ++i) {\n\t",
        "a[i]->b",
        "#include <x.h>",
        "`x @ w`",
    ),
    *("0", "7", "42", " 1234567", "3.14159", "1e-5", "0x7fff", " ½", "²³", "٣", "१२", "①"),
    *(" ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u3000", "\u200b", "\u2028"),
    *("naïve café", "Ünïcödé", "Straße", "Привет, мир", "γειά σου", "שלום", "مرحبا بالعالم", "नमस्ते दुनिया"),
    *("日本語のテキスト", "你好，世界", "안녕하세요", "สวัสดี", "e\u0301", "ﬁ", "Ǆ", "𝔘𝔫𝔦", "İstanbul"),
    *("😀", "👩‍👩‍👧", "🇩🇪", "❤️", "…", "—", "“quoted”", "¿?", "€5", "™", "\ufffd", "\u0000", "\x07", "�"),
    *(
        "<|im_start|>",
        "<|im_end|>",
        "<|endoftext|>",
        "<repo_name>",
        "<|im_",
        "end|>",
        "</s>",
        "<think>",
        "[INST]",
    ),
    *(
        "!!!",
        "...",
        "?!",
        "(a,b)",
        "{'k': 1}",
        "https://example.org/a?b=c&d=%20",
        "user@example.org",
        "C:\\x",
        "--",
    ),
    *(
        "Ġ",
        "▁",
        "ĊĊ",
        "aaaaaaaaaaaaaaaaaaaaaaaa",
        "AbCdEf",
        "snake_case_name",
        "camelCaseName",
        "\\n",
        '"',
        "'",
    ),
)
MIXTURES = 320


def make_texts() -> list[str]:
    """The pieces, and mixtures of them."""
    choose = random.Random(6)
    mixtures = ["".join(choose.choices(PIECES, k=choose.randint(2, 8))) for _ in range(MIXTURES)]
    return ["", *PIECES, *mixtures]


def make_conversations() -> list[list[dict[str, str]]]:
    """Conversations without special tokens in their contents, of several shapes."""
    user, system = (
        {"role": "user", "content": "Why is the sky blue?"},
        {"role": "system", "content": "Be brief."},
    )
    answer = {"role": "assistant", "content": "  Because of Rayleigh scattering.\n"}
    return [
        [user],
        [system, user],
        [user, answer, {"role": "user", "content": "日本語で 😀?"}],
        [system, user, answer],
    ]


def by_transformers(path: Path) -> dict[str, Any]:
    """What transformers makes of conversations, and of ids."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    conversations = [
        (
            messages,
            prompt,
            tokenizer.apply_chat_template(messages, add_generation_prompt=prompt, return_dict=False),
        )
        for messages in make_conversations()
        for prompt in (True, False)
    ]
    choose = random.Random(7)
    written = [tokenizer.encode(text) for text in make_texts()[::4]]
    written += [
        [choose.randrange(len(tokenizer)) for _ in range(12)] for _ in range(100)
    ]  # broken characters, too
    return {
        "conversations": conversations,
        "decoded": [(ids, tokenizer.decode(ids, skip_special_tokens=True)) for ids in written],
    }


def by_llama_cpp(path: Path) -> dict[str, Any]:
    """What llama.cpp makes of texts."""
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path, options.n_ctx, options.warmup = str(path), 64, False
    server = xllamacpp.Server(options)  # on 127.0.0.1, at a free port
    return {"texts": [(text, ask(f"{server.listening_address}/tokenize", text)) for text in make_texts()]}


def ask(address: str, text: str) -> list[int]:
    """The ids that a server of llama.cpp gives."""
    body = json.dumps({"content": text, "add_special": True, "parse_special": True}).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        ids: list[int] = json.load(answer)["tokens"]
    return ids


ORACLES = {"transformers": by_transformers, "llama.cpp": by_llama_cpp}


def main() -> None:
    """Ask one of the two and write its part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("oracle", choices=ORACLES)
    arguments = parser.parse_args()
    known = json.loads(FIXTURE.read_text(encoding="utf-8")) if FIXTURE.exists() else {}
    known |= ORACLES[arguments.oracle](arguments.model)
    FIXTURE.write_text(json.dumps(known, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
