"""llama.cpp (PyPI xllamacpp), decoding when it is told to: `python llama_cpp.py MODEL THREADS`.

In: a line of JSON with the prompt's ids and how many tokens to write. Out: a line of JSON with the tokens a
second that llama.cpp itself measured, and the text. Nothing of a prompt is kept for the next line.
"""

from __future__ import annotations

import json
import os
import sys

import xllamacpp


def main(model: str, threads: int) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # its log
    settings = xllamacpp.CommonParams()
    settings.model.path = model
    settings.n_ctx, settings.n_parallel = 2048, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.warmup = True
    server = xllamacpp.Server(settings)
    answers.write("{}\n")
    answers.flush()
    for line in sys.stdin:
        asked = json.loads(line)
        options = {"temperature": 0, "n_predict": asked["tokens"], "ignore_eos": True, "cache_prompt": False}
        found = server.handle_completions({"prompt": asked["ids"], **options})
        timings = found["timings"]
        record = {
            "prompt_tokens": timings["prompt_n"],
            "tokens": timings["predicted_n"],
            "prefill": timings["prompt_per_second"],
            "decode": timings["predicted_per_second"],
            "text": found.get("content") or found["choices"][0]["text"],
        }
        answers.write(json.dumps(record) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
