"""Write tests/models/smollm2.json: what SmolLM2-135M-Instruct answers, by transformers in float32.

`python -m scripts.smollm2_fixture PATH.gguf`, in the environment of `make test-transformers`. In: the
catalogue's GGUF file, which transformers dequantises. Out: for each prompt its tokens, the next ones taken
greedily, how far the best logit is ahead at every step, and a sample of the first step's logits. Weights are
compared with webgrad's first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from scripts.random_models import DECODER_NAMES, gguf_name, interleaved
from scripts.system import ROOT, say

__all__ = ["PROMPTS", "main"]

FIXTURE = ROOT / "tests" / "models" / "smollm2.json"
STEPS = 32
SAMPLE = 96  # every so many-th logit is kept: 512 of 49,152
# Texts as they are, and messages for the chat template; none is answered in fewer than STEPS tokens.
PROMPTS: tuple[str | list[dict[str, str]], ...] = (
    "The largest planets of the solar system are",
    "Once upon a time, in a village by the sea, there lived an old clockmaker who",
    "def fibonacci(n):\n    ",
    "Water boils at 100 degrees Celsius because",
    "The first ten prime numbers are 2, 3, 5,",
    "import numpy as np\n\n# Compute the mean of every column of a matrix\n",
    "Der schnelle braune Fuchs springt über",
    "La Révolution française a commencé en",
    "El sol sale por el este y",
    "Q: If a train travels 60 miles in 1.5 hours, what is its average speed?\nA:",
    "<html>\n  <body>\n    <h1>",
    "SELECT name, COUNT(*) FROM orders",
    [{"role": "user", "content": "What is gravity?"}],
    [{"role": "user", "content": "Write a short story about the autumn rain."}],
    [{"role": "user", "content": "Explain step by step how to solve 3x + 5 = 20."}],
    [
        {"role": "system", "content": "You answer like a pirate."},
        {"role": "user", "content": "Where can I find a good library?"},
    ],
    [{"role": "user", "content": "Write a Python function that reverses a list without using slicing."}],
    [{"role": "user", "content": "Qu'est-ce que la photosynthèse ? Réponds en français."}],
    [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello, Ada!"},
        {"role": "user", "content": "Tell me three facts about the moon."},
    ],
    [{"role": "user", "content": "日本の首都はどこですか?"}],
)


def main(arguments: list[str]) -> int:
    """Run the reference, and write the fixture."""
    if len(arguments) != 1:
        say("python -m scripts.smollm2_fixture PATH.gguf")
        return 2
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)  # the same sums on every machine
    path = Path(arguments[0])
    where: dict[str, Any] = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(**where)
    say(f"the largest difference of a weight from webgrad's is {weight_difference(path, model.state_dict())}")
    with torch.no_grad():
        cases = [case(model, tokenizer, prompt) for prompt in PROMPTS]
    document = {"sample": SAMPLE, "steps": STEPS, "cases": cases}
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in cases)
    FIXTURE.write_text(
        json.dumps({**document, "cases": []}).replace("[]", f"[\n{lines}\n]") + "\n", encoding="utf-8"
    )
    return 0


def case(model: Any, tokenizer: Any, prompt: str | list[dict[str, str]]) -> dict[str, Any]:
    """A prompt's tokens, what follows greedily, and the logits that led there."""
    import torch

    if isinstance(prompt, str):
        text = prompt
    else:
        text = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    answer: list[int] = []
    cache, rows, given = None, [], torch.tensor([ids])
    for _ in range(STEPS):
        output = model(given, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        rows.append(output.logits[0, -1].double().numpy())
        answer.append(int(rows[-1].argmax()))
        given = torch.tensor([answer[-1:]])
    if {tokenizer.eos_token_id, tokenizer.bos_token_id} & set(answer):
        raise ValueError(f"the answer to {prompt!r} ends after {len(answer)} tokens: choose another prompt")
    best = [np.sort(row)[-2:] for row in rows]
    first = rows[0]
    return {
        "prompt": prompt,
        "ids": ids,
        "answer": answer,
        "margins": [round(float(top - next_), 4) for next_, top in best],
        "norm": round(float(np.linalg.norm(first)), 3),
        "logits": [round(float(each), 3) for each in first[::SAMPLE]],
    }


def weight_difference(path: Path, state: dict[str, Any]) -> float:
    """How far the reference's weights are from webgrad's, at most."""
    config = {"num_attention_heads": 9, "num_key_value_heads": 3}
    largest = 0.0
    with wg.io.open(path) as weights:
        for name, tensor in state.items():
            if name == "lm_head.weight":  # tied: the table of tokens
                continue
            reference, own = tensor.numpy(), gguf_name(name, DECODER_NAMES)
            if own.endswith(("attn_q.weight", "attn_k.weight")):
                heads = "num_key_value_heads" if "attn_k" in own else "num_attention_heads"
                reference = interleaved(reference, config[heads])
            value = weights.read(own, "cpu")
            plain = value if isinstance(value, wg.Tensor) else value.dequantise()
            largest = max(largest, float(np.abs(plain.numpy() - reference).max()))
    return largest


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
