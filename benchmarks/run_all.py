"""Every benchmark, one after the other, each in a process of its own; exits 1 when one misses its target."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = (
    "host_cost",
    "diffusion_stream",
    "feed_forward",
    "transfers",
    "soak",
    "matmul",
    "tensors",
)


def main() -> int:
    failed = []
    for name in SCRIPTS:
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, Path(__file__).with_name(f"{name}.py")], check=False).returncode:
            failed.append(name)
    missed = f"; not {', '.join(failed)}" if failed else ""
    print(f"\n{len(SCRIPTS) - len(failed)} of {len(SCRIPTS)} within their targets{missed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
