"""How many entries of torch's tables pass through `webgrad.torch`, and why the others do not.

`python -m tests.torch.opinfo_counts [--only REGEX] [--device webgpu:0] [--most N]`, where torch is installed,
prints a line for each entry that does not pass, and how many do; `--modules` goes through torch's modules
instead, `--errors` through the calls that torch refuses, and `--write` writes counts.json anew.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from typing import Any

from scripts.adapter import adapter_environment


def options() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.torch.opinfo_counts")
    parser.add_argument("--only", default="", help="entries whose names this expression matches")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--most", type=int, default=4, help="samples of an entry in one dtype")
    parser.add_argument("--modules", action="store_true", help="modules instead of functions")
    parser.add_argument("--errors", action="store_true", help="calls that must be refused")
    parser.add_argument("--write", action="store_true", help="write counts.json")
    parser.add_argument("--slow", type=float, default=0.0, help="name entries that take more seconds")
    return parser.parse_args()


def functions(given: argparse.Namespace) -> None:
    """A line for each function that does not pass, and a total."""
    from tests.torch.opinfo import OPS, examined, function, misuses, passing, verdict
    from tests.torch.samples import Tally

    passed, names = 0, [name for name in OPS if re.search(given.only, name)]
    for name in names:
        start = time.process_time()
        if given.errors:
            why = "\n    ".join(misuses(name, given.device))
        else:
            there = function(name) is not None
            why = verdict(name, examined(name, given.most, passing(name), given.device) if there else Tally())
        passed += not why
        if why:
            print(f"{name}: {why}", flush=True)
        if given.slow and time.process_time() - start > given.slow:
            print(f"{name} took {time.process_time() - start:.1f} s", flush=True)
    print(f"{passed} of {len(names)} pass on {given.device}")


def modules(given: argparse.Namespace) -> None:
    """The same of modules."""
    from tests.torch.moduleinfo import MODULES, counterpart, examined_module
    from tests.torch.report import FLOATS

    passed, names = 0, [name for name in MODULES if re.search(given.only, name)]
    for name in names:
        why = "absent"
        if counterpart(name):
            tally = examined_module(name, given.most, FLOATS[:1], given.device)
            why = next(iter([*tally.wrong, *tally.refused]), "" if tally.compared else "nothing to compare")
        passed += not why
        if why:
            print(f"{name}: {why}", flush=True)
    print(f"{passed} of {len(names)} modules pass on {given.device}")


def write() -> None:
    """Count what is compared; print what is wrong."""
    from tests.torch.moduleinfo import MODULES, counterpart, examined_module
    from tests.torch.opinfo import DTYPES, OPS, examined, function
    from tests.torch.report import COUNTED, FLOATS, MOST, MOST_OF_MODULES

    found: dict[str, dict[str, list[int]]] = {"functions": {}, "modules": {}}

    def note(kind: str, name: str, tally: Any) -> None:
        print("\n".join([name, *tally.wrong]), flush=True)
        if tally.compared:
            found[kind][name] = [tally.compared, tally.gradients]

    for name in OPS:
        if function(name):
            note("functions", name, examined(name, MOST, DTYPES))
    for name in MODULES:
        if counterpart(name):
            note("modules", name, examined_module(name, MOST_OF_MODULES, FLOATS))
    text = json.dumps(found, indent=0).replace("[\n", "[").replace(",\n", ", ").replace("\n]", "]")
    COUNTED.write_text(text.replace('], "', '],\n"') + "\n", encoding="utf-8")


def main() -> None:
    """Do what is asked for."""
    given = options()
    if given.device != "cpu":
        os.environ.update(adapter_environment())  # before a driver is loaded
    write() if given.write else modules(given) if given.modules else functions(given)


if __name__ == "__main__":
    main()
