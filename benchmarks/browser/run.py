"""Matmul and a transformer block in one Chromium: webgrad's export beside onnxruntime-web, tfjs and jax-js.

Each candidate has a fresh page of its own; pages take turns (ours, a peer, ours …), and every result is
compared with NumPy's before anything is timed. Prints a table, and writes JSON and Markdown to
benchmarks/results/. Usage: run.py [--install] [--only matmul,block,host_cost] [--rounds 7]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from bundles import export_work  # noqa: E402
from models import models  # noqa: E402
from serving import Server, serving  # noqa: E402
from work import FILES, HEADS, WORK  # noqa: E402

from tests.browser import WEBGPU, Browser, Page  # noqa: E402
from tests.pages import BrowserError  # noqa: E402

OURS = "webgrad"
ONNX = (OURS, "onnxruntime-web")  # who reads ONNX files
CANDIDATES = {OURS: "webgrad", "onnxruntime-web": "onnxruntime", "tfjs": "tfjs", "jax-js": "jax"}
HOST_COST = "host_cost"
TOLERANCE = 1e-3  # of the largest element
DISPATCHES = 1000
PATIENCE = 600.0  # seconds for one answer: some take half a minute for one product on a busy machine
Figure = dict[str, Any]  # of one candidate: median, min, runs, about, error, code; or failed, wrong
CODE = """performance.getEntriesByType("resource")
  .filter(({ name }) => /[.](js|mjs|wasm)$/.test(new URL(name).pathname) && !name.includes("/pages/"))
  .reduce((sum, each) => sum + each.encodedBodySize, 0)"""  # bytes of the library's that the page has loaded


def options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py", description="Measure webgrad in a browser.")
    parser.add_argument("--only", default=",".join((*WORK, HOST_COST)), help="what is measured")
    parser.add_argument("--candidates", default=",".join(CANDIDATES), help="who is measured")
    parser.add_argument("--rounds", type=int, default=7, help="how many turns each has")
    parser.add_argument("--seconds", type=float, default=1.0, help="of one turn, at least one run")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "webgrad", "peers-web")
    parser.add_argument("--peers", type=Path, default=cache, help="the folder the peers are installed in")
    parser.add_argument("--install", action="store_true", help="install the peers by npm, and end")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results", help="written to")
    return parser.parse_args(words)


def install(folder: Path) -> int:
    """The peers, in the versions of package-lock.json, by npm's own registry settings."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    return subprocess.run(command, cwd=folder, check=False).returncode


def prepare_data(folder: Path, name: str) -> np.ndarray[Any, Any]:
    """The files of a workload, and its answer."""
    work = WORK[name]
    inputs = work.inputs()
    (folder / name).mkdir(parents=True)
    for key, value in inputs.items():
        (folder / name / f"{key}.f32").write_bytes(value.tobytes())
    ways = models(name, inputs)
    for way, model in ways.items():
        (folder / name / f"{way}.onnx").write_bytes(model)
    about = {
        "inputs": {key: value.shape for key, value in inputs.items()},
        "models": list(ways),
        "heads": HEADS,
    }
    (folder / name / "work.json").write_text(json.dumps(about), encoding="utf-8")
    export_work(name, inputs, folder / name / "bundle")
    answer = np.asarray(work.answer(inputs))
    (folder / name / "answer.f32").write_bytes(answer.tobytes())
    return answer


def open_candidate(
    browser: Browser, server: Server, name: str, candidate: str, answer: np.ndarray[Any, Any]
) -> tuple[Page | None, Figure]:
    """A page that is ready to be measured, and what is known so far."""
    page = browser.page()
    script = CANDIDATES[candidate]
    try:
        page.open(f"{server.address}/pages/index.html?candidate={script}&workload={name}")
        figure: Figure = page.evaluate("bench.prepare()", seconds=PATIENCE)
        figure["code"] = page.evaluate(CODE)
        page.evaluate(f"bench.result({answer.nbytes})", seconds=PATIENCE)
    except BrowserError as error:
        return None, {"failed": str(error)}
    found = np.frombuffer(server.posted.pop(script), np.float32).reshape(answer.shape)
    figure["error"] = float(np.abs(found - answer).max() / np.abs(answer).max())
    if not figure["error"] <= TOLERANCE:
        return None, {"wrong": f"off by {figure['error']:.1e} of the largest element"}
    return page, figure


def measure(
    browser: Browser, server: Server, name: str, answer: np.ndarray[Any, Any], chosen: argparse.Namespace
) -> dict[str, Figure]:
    """The figures of a workload, by candidate."""
    figures: dict[str, Figure] = {}
    pages: dict[str, Page] = {}
    for candidate in [each for each in chosen.candidates if name not in FILES or each in ONNX]:
        page, figures[candidate] = open_candidate(browser, server, name, candidate, answer)
        if page:
            pages[candidate] = page
    times: dict[str, list[float]] = {candidate: [] for candidate in pages}
    for _ in range(chosen.rounds):
        for candidate, page in pages.items():
            times[candidate] += page.evaluate(f"bench.turn({chosen.seconds})", seconds=PATIENCE)
    for candidate, each in times.items():
        figures[candidate] |= {"median": statistics.median(each), "min": min(each), "runs": len(each)}
    browser.close_pages()
    return figures


def host_cost(browser: Browser, server: Server, rounds: int) -> Figure:
    """Microseconds of run() for each of many tiny dispatches."""
    page = browser.page()
    page.open(f"{server.address}/pages/host_cost.html")
    times = page.evaluate(f"hostCost({DISPATCHES}, {10 * rounds})")
    browser.close_pages()
    each = [1000 * time / DISPATCHES for time in times]
    return {"median": statistics.median(each), "min": min(each), "runs": len(each)}


def machine(browser: Browser) -> dict[str, str]:
    """What the figures belong to."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.is_file() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit or "unknown",
        "processor": f"{named[0] if named else platform.machine()}, {os.cpu_count()} threads",
        "system": platform.platform(),
        "browser": str(browser.call("Browser.getVersion")["product"]),
        "load before": f"{os.getloadavg()[0]:.2f}",
    }


def main(words: Sequence[str]) -> int:
    chosen = options(words)
    if chosen.install:
        return install(chosen.peers)
    chosen.candidates = [each for each in chosen.candidates.split(",") if each]
    names = chosen.only.split(",")
    modules = chosen.peers / "node_modules"
    if not modules.is_dir() and set(chosen.candidates) != {OURS}:
        print(f"{modules} is not there: run.py --install makes it", file=sys.stderr)
        return 2
    figures: dict[str, dict[str, Figure]] = {}
    with tempfile.TemporaryDirectory() as data, Browser(*WEBGPU) as browser:
        folders = {"pages": HERE / "pages", "peers": modules, "data": Path(data)}
        folders["runner"] = ROOT / "webgrad/runtime"
        with serving(folders) as server:
            about = machine(browser)
            for name in names:
                if name == HOST_COST:
                    figures[name] = {OURS: host_cost(browser, server, chosen.rounds)}
                else:
                    answer = prepare_data(Path(data), name)
                    figures[name] = measure(browser, server, name, answer, chosen)
                print(json.dumps({name: figures[name]}), flush=True)
    return write(chosen.results, about, figures)


def missed(figures: Mapping[str, Mapping[str, Figure]]) -> list[str]:
    """The goals that were not reached: as quick as the best peer; a microsecond for a dispatch."""
    found = []
    for name, row in figures.items():
        ours = row.get(OURS, {}).get("median")
        if name == HOST_COST:
            if ours > 1:
                found.append("host cost of a dispatch ≤ 1 µs")
            continue
        theirs = [each["median"] for other, each in row.items() if other != OURS and "median" in each]
        if ours is None or (theirs and ours > min(theirs)):
            found.append(f"{WORK[name].title}: as quick as the best peer")
    return found


def markdown(about: Mapping[str, str], figures: Mapping[str, Mapping[str, Figure]]) -> str:
    """The report."""
    lines = ["# In the browser", *(f"- {key}: {value}" for key, value in about.items()), ""]
    lines += [
        "| median ms (least) | " + " | ".join(CANDIDATES) + " | ours to the best peer |",
        "|---|" + "---|" * (len(CANDIDATES) + 1),
    ]
    notes = []
    for name, row in figures.items():
        if name == HOST_COST:
            each = row[OURS]
            notes.append(f"- host cost of a dispatch: {each['median']:.2f} µs (least {each['min']:.2f})")
            continue
        theirs = [each["median"] for other, each in row.items() if other != OURS and "median" in each]
        ours = row.get(OURS, {}).get("median")
        ratio = f"{min(theirs) / ours:.2f} ×" if ours and theirs else "–"
        cells = [WORK[name].title, *(_cell(row.get(each)) for each in CANDIDATES), ratio]
        lines.append("| " + " | ".join(cells) + " |")
        notes += [f"- {other}: {each['about']}" for other, each in row.items() if each.get("about")]
        notes += [
            f"- {other}, {WORK[name].title}: {each['code'] / 1000:,.0f} kB of code; its first run took "
            f"{each['first']:,.0f} ms"
            for other, each in row.items()
            if each.get("code")
        ]
        notes += [
            f"- {other}, {WORK[name].title}: {word}, {each[word]}"
            for other, each in row.items()
            for word in ("failed", "wrong")
            if word in each
        ]
    return "\n".join([*lines, "", *dict.fromkeys(notes)]) + "\n"


def _cell(figure: Figure | None) -> str:
    if not figure:
        return ""
    if "median" not in figure:
        return next(word for word in ("failed", "wrong") if word in figure)
    return f"{figure['median']:.1f} ({figure['min']:.1f})"


def write(folder: Path, about: Mapping[str, str], figures: Mapping[str, Mapping[str, Figure]]) -> int:
    """The files of a run, and the table on the screen; 1 where a goal is missed."""
    folder.mkdir(parents=True, exist_ok=True)
    text = markdown(about, figures)
    kept = {"machine": about, "figures": figures}
    (folder / "browser.json").write_text(
        json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (folder / "browser.md").write_text(text, encoding="utf-8")
    print("\n" + text)
    for each in missed(figures):
        print(f"missed: {each}")
    return 1 if missed(figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
