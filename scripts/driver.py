"""Give the tests a Vulkan adapter: `python -m scripts.driver`.

In: the adapters wgpu finds, and the system. Out: on Debian and Ubuntu, with root or a sudo that asks for
nothing, an installed Mesa software driver. It never fails a run: what it cannot do it says, and the tests say
loudly which of them were skipped.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.sources import Source, backports, has_suite, parse_deb822, parse_one_line, to_deb822
from scripts.system import apt_prefix, os_release, run_apt, say, venv_python

__all__ = ["Adapter", "ensure_driver", "install", "is_debian_12", "is_debian_like", "main", "need"]

APT = Path("/etc/apt")
OWN_SOURCES = APT / "sources.list.d" / "webgrad-backports.sources"
PACKAGES = ("mesa-vulkan-drivers", "libvulkan1")
FAST_MESA = 25  # what Debian 12's backports have; its own 22.3 loads storage buffers lane by lane
PROBE = """
import json, wgpu
rows = [adapter.info for adapter in wgpu.gpu.enumerate_adapters_sync()]
keys = ("device", "backend_type", "adapter_type", "description")
print(json.dumps([[str(row[key]) for key in keys] for row in rows]))
"""


@dataclass(frozen=True, slots=True)
class Adapter:
    """What a probe says of one adapter."""

    name: str
    backend: str
    type: str
    driver: str

    @property
    def mesa(self) -> int:
        """The major version of Mesa, 0 for another driver."""
        found = re.search(r"\bMesa (\d+)\.", self.driver)
        return int(found[1]) if found else 0


def probe() -> list[Adapter]:
    """The adapters of this machine, asked for in a process of its own: a broken driver may crash it."""
    command = [str(venv_python()), "-c", PROBE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    lines = done.stdout.strip().splitlines()
    return [Adapter(*row) for row in json.loads(lines[-1])] if done.returncode == 0 and lines else []


def need(adapters: Sequence[Adapter], system: Mapping[str, str]) -> str:
    """Why a driver should be installed, or "" where the adapters will do."""
    usable = [adapter for adapter in adapters if not adapter.backend.startswith("OpenGL")]
    if not usable:
        return "no Vulkan adapter was found"
    if is_debian_12(system) and all(
        adapter.type == "CPU" and 0 < adapter.mesa < FAST_MESA for adapter in usable
    ):
        return (
            f"the software adapter is Mesa {usable[0].mesa}, which is ten times slower than Mesa {FAST_MESA}"
        )
    return ""


def is_debian_like(system: Mapping[str, str]) -> bool:
    """Debian, Ubuntu, and what is made from them."""
    return not {"debian", "ubuntu"}.isdisjoint([system.get("ID", ""), *system.get("ID_LIKE", "").split()])


def is_debian_12(system: Mapping[str, str]) -> bool:
    """The release whose own Mesa is too old, and whose backports have a newer one."""
    return system.get("ID") == "debian" and system.get("VERSION_ID") == "12"


def read_sources(apt: Path = APT) -> list[Source]:
    """Every entry of the machine's apt sources."""
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    parsers = {".list": parse_one_line, ".sources": parse_deb822}
    return [
        source
        for file in files
        if file.is_file() and file.suffix in parsers
        for source in parsers[file.suffix](file.read_text(encoding="utf-8", errors="replace"))
    ]


def ensure_driver() -> None:
    """Install a software driver where tests would have no adapter, or a slow one."""
    system = os_release()
    if sys.platform != "linux" or not (why := need(probe(), system)):
        return
    problem = bring(why, PACKAGES, "install your distribution's Mesa Vulkan drivers to run the GPU tests")
    if problem is not None and (problem := problem or need(probe(), system)):
        say(f"the driver could not be installed: {problem}")


def bring(why: str, packages: Sequence[str], otherwise: str) -> str | None:
    """Install packages on Debian and its like, and say so; what went wrong, "" where nothing did, or None
    where only advice could be given.
    """
    system = os_release()
    if sys.platform != "linux" or not is_debian_like(system):
        say(f"{why}; {otherwise}")
        return None
    prefix = apt_prefix()
    if prefix is None:
        say(f"{why}; as root, run: apt-get install {' '.join(packages)}")
        return None
    say(f"{why}; installing {' '.join(packages)}")
    return install(prefix, "bookworm" if is_debian_12(system) else "", packages)


def install(prefix: Sequence[str], backports_of: str, packages: Sequence[str] = PACKAGES) -> str:
    """Install the packages, from a release's backports where one is named; what went wrong, or ""."""
    suite = f"{backports_of}-backports"
    added = False
    if backports_of and not has_suite(sources := read_sources(), suite):
        entry = backports(sources, backports_of)
        if entry is None:
            return f"no apt entry for {backports_of} main was found to derive {suite} from"
        if problem := write_as_root(prefix, OWN_SOURCES, to_deb822(entry)):
            return problem
        added = True
    updated = run_apt(prefix, "update")
    options = ["-t", suite] if backports_of else []
    failed = run_apt(prefix, "install", "-y", "--no-install-recommends", *options, *packages)
    if failed and added:  # an entry that does not work would break every later apt-get update
        subprocess.run([*prefix, "rm", "-f", str(OWN_SOURCES)], check=False)
    return "\n".join(text for text in (updated, failed) if text) if failed else ""


def write_as_root(prefix: Sequence[str], path: Path, text: str) -> str:
    """Write a file where only root may, readable by all; what went wrong, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / path.name
        draft.write_text(text, encoding="utf-8")
        command = [*prefix, "install", "-m", "644", str(draft), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def main() -> int:
    """The command line; always 0, because tests without a GPU are worth running too."""
    try:
        ensure_driver()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        say(f"the GPU driver could not be looked after: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
