"""How quickly SmolLM2 writes: on the cpu, on a WebGPU adapter, and llama.cpp beside them.

    python benchmarks/decode.py [MODEL] [--device cpu --device webgpu:0] [--peer-python PATH] [--json]

Every runner is a process of its own with the same cores, and they take turns: one prompt of 32 tokens, then
64 tokens, greedily; who waits is stopped. Given are medians of tokens a second; what was submitted, launched,
compiled and created after the second token of a warm run; and the share of its time that the main thread
spends in the Python interpreter while it writes (see sampler.py). Ends with 1 where a goal is missed. For
Linux, since cores are shared out and processes stopped in its way.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TEXT = (
    "The capital of France is a city that is known for many things, and among them are the river, the "
    "towers, the museums, the food and the many people who"
)
PROMPT, TOKENS = 32, 64
SUBMISSIONS, KERNELS = 2, 12  # a token, and a token and layer, at most
SHARE = 0.5  # of llama.cpp's speed that the cpu must reach
SAMPLED = 3.0  # seconds
CREATED = ("pipelines_compiled", "buffers_created", "bind_groups_created")
Record = dict[str, Any]


# A runner of ours: told by lines of JSON, like llama.cpp's


def work(name: str, device: str) -> None:
    import webgrad as wg

    model = wg.models.load(name, device=device)
    ids = model.tokenizer.encode(TEXT)[:PROMPT]
    ids = (ids * PROMPT)[:PROMPT]
    _answer({"ids": ids, "layers": model.settings.layers, "device": repr(model.device)})
    for line in sys.stdin:
        asked = json.loads(line)
        if "seconds" in asked:
            _write_for(model, asked)
            continue
        list(model.generate_ids(asked["ids"][-1:], max_tokens=1))  # so that nothing of the prompt is known
        start, times, written, before = time.perf_counter(), [], [], {}
        wg.reset_stats(model.device)
        for each in model.generate_ids(asked["ids"], max_tokens=asked["tokens"], temperature=0):
            times.append(time.perf_counter())
            written.append(each)
            if len(times) == 2:
                before = dict(wg.stats(model.device))
        after = wg.stats(model.device)
        steps = len(times) - 2
        _answer(
            {
                "tokens": len(times),
                "prefill": len(asked["ids"]) / (times[0] - start),
                "decode": (len(times) - 1) / (times[-1] - times[0]),
                "submissions": (after["submissions"] - before["submissions"]) / steps,
                "kernels": (after["dispatches"] - before["dispatches"]) / steps,
                **{each: after[each] - before[each] for each in CREATED},
                "text": model.tokenizer.decode(written),
            }
        )


def _write_for(model: Any, asked: Record) -> None:
    """Write again and again for so many seconds; the prompt is read the first time only."""
    end = time.monotonic() + asked["seconds"]
    while time.monotonic() < end:
        list(model.generate_ids(asked["ids"], max_tokens=asked["tokens"], temperature=0))
    _answer({})


def _answer(record: Record) -> None:
    print(json.dumps(record), flush=True)


# The runners, taking turns


class Runner:
    """A process that decodes when it is told to, and is stopped in between."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        environment = {
            "XDG_RUNTIME_DIR": tempfile.gettempdir(),
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
        }
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        self.speeds: list[float] = []
        self.last: Record = {}
        self.ready = self._heard()
        self._signal(signal.SIGSTOP)

    def run(self, ids: list[int], tokens: int) -> Record:
        self._signal(signal.SIGCONT)
        self.tell({"ids": ids, "tokens": tokens})
        record = self._heard()
        self._signal(signal.SIGSTOP)
        return record

    def sampled(self, ids: list[int], tokens: int) -> Record:
        """Where the main thread is while it writes."""
        from sampler import sample

        self._signal(signal.SIGCONT)
        self.tell({"ids": ids, "tokens": tokens, "seconds": SAMPLED + 1})
        time.sleep(0.5)
        limit = time.monotonic() + SAMPLED
        shares = sample(self.process.pid, lambda: time.monotonic() > limit)
        self._heard()
        return shares

    def tell(self, asked: Record) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def _heard(self) -> Record:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise SystemExit(f"{self.name} failed:\n{self.log.read().decode(errors='replace')[-2000:]}")
        record: Record = json.loads(line)
        return record

    def _signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def measure(runners: list[Runner], rounds: int, tokens: int) -> None:
    ids = next(each.ready["ids"] for each in runners if "ids" in each.ready)
    for turn in range(rounds + 1):
        for each in runners:
            each.last = each.run(ids, tokens)
            if turn:  # the first compiles
                each.speeds.append(each.last["decode"])
    for each in runners:
        if "ids" in each.ready:
            each.last["shares"] = each.sampled(ids, tokens)


def row(each: Runner) -> Record:
    found = {key: value for key, value in each.last.items() if key != "text"}
    found["decode"] = statistics.median(each.speeds)
    if "layers" in each.ready:
        # With those outside of the layers, embedding, logits and sampling, shared out to them.
        found["kernels_a_layer"] = found["kernels"] / each.ready["layers"]
    return {"runner": each.name, **found, "speeds": each.speeds, "text": each.last["text"]}


def goals(rows: list[Record]) -> list[tuple[str, str, bool]]:
    """What the figures must show, and whether they do."""
    named = {each["runner"]: each for each in rows}
    found = []
    for name, each in named.items():
        if name.startswith("webgrad webgpu"):
            created = sum(each[key] for key in CREATED)
            found += [
                (
                    f"{name}: submissions a token ≤ {SUBMISSIONS}",
                    f"{each['submissions']:.2f}",
                    each["submissions"] <= SUBMISSIONS,
                ),
                (
                    f"{name}: kernels a layer ≤ {KERNELS}",
                    f"{each['kernels_a_layer']:.1f}",
                    each["kernels_a_layer"] <= KERNELS,
                ),
                (f"{name}: nothing compiled or created after token 2", str(created), not created),
            ]
    if "webgrad cpu" in named and "llama.cpp" in named:
        share = named["webgrad cpu"]["decode"] / named["llama.cpp"]["decode"]
        found.append((f"cpu's speed ≥ {SHARE} of llama.cpp's", f"{share:.2f}", share >= SHARE))
    return found


def show(rows: list[Record]) -> None:
    for each in rows:
        spread = f"{min(each['speeds']):.1f} to {max(each['speeds']):.1f}"
        text = f"{each['runner']:<18} decode {each['decode']:7.1f} tokens/s ({spread})"
        text += f", prefill {each['prefill']:.0f}"
        if each.get("kernels"):
            text += f", {each['kernels']:.0f} kernels a token ({each['kernels_a_layer']:.1f} a layer)"
            text += f", {each['submissions']:.1f} submissions"
        if "shares" in each:
            text += "; " + ", ".join(
                f"{kind} {each['shares'][kind]:.0%}" for kind in ("python", "native", "waiting")
            )
        print(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", default="smollm2:135m")
    parser.add_argument(
        "--device", action="append", help="may be given several times (default: cpu, webgpu:0)"
    )
    parser.add_argument("--peer-python", help="the Python of an environment with xllamacpp; without, no peer")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--threads", type=int, help="cores for everyone (default: all)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.model, options.worker)
        return 0
    import webgrad as wg

    load = os.getloadavg()[0]
    path = str(wg.models.locate(options.model))
    cores = sorted(os.sched_getaffinity(0))[: options.threads]
    os.sched_setaffinity(0, cores)
    runners = []
    try:
        for device in options.device or ["cpu", "webgpu:0"]:
            command = [sys.executable, __file__, path, "--worker", device]
            runners.append(Runner(f"webgrad {device}", command))
        if options.peer_python:
            command = [options.peer_python, str(HERE / "peers" / "llama_cpp.py"), path, str(len(cores))]
            runners.append(Runner("llama.cpp", command))
        measure(runners, options.rounds, options.tokens)
        rows = [row(each) for each in runners]
    finally:
        for each in runners:
            each.close()
    checked = goals(rows)
    if options.json:
        named = [{"goal": name, "value": value, "reached": ok} for name, value, ok in checked]
        print(
            json.dumps({"threads": len(cores), "load_before": load, "rows": rows, "goals": named}, indent=1)
        )
    else:
        print(f"{options.model}, {PROMPT} tokens read, {options.tokens} written, {len(cores)} threads")
        if load > 0.5:
            print(f"load before: {load:.1f}; speeds mean little unless the machine is quiet")
        show(rows)
        for name, value, ok in checked:
            print(f"{'ok  ' if ok else 'MISS'}  {name:<60} {value:>8}")
    return 0 if all(ok for _, _, ok in checked) else 1


if __name__ == "__main__":
    sys.exit(main())
