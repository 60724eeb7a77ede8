"""Facts about the machine, and the advice where there is no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from webgrad.runtime import host as module
from webgrad.runtime.host import (
    Host,
    install_advice,
    memory_bytes,
    parse_os_release,
    processor_cores,
    processor_name,
    this_host,
)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (Host("linux", ("debian",), "12"), "apt-get install -t bookworm-backports mesa-vulkan-drivers"),
        (Host("linux", ("debian",), "13"), "apt-get install mesa-vulkan-drivers libvulkan1"),
        (Host("linux", ("ubuntu", "debian"), "24.04"), "apt-get install mesa-vulkan-drivers libvulkan1"),
        (Host("linux", ("other", "debian"), "12"), "apt-get install mesa-vulkan-drivers libvulkan1"),
        (Host("linux", ("fedora",), "42"), "dnf install"),
        (Host("linux", ("arch",)), "pacman -S vulkan-icd-loader"),
        (Host("linux", ("opensuse-leap", "suse")), "zypper install"),
        (Host("linux", ("unheard-of",)), "install the Mesa Vulkan drivers"),
        (Host("darwin"), "Metal comes with macOS"),
        (Host("win32"), "update the GPU's driver"),
        (Host("freebsd14"), "install a Vulkan driver"),
    ],
)
def test_what_to_install(host: Host, words: str) -> None:
    assert words in install_advice(host)[0]


def test_a_container_without_the_device_is_told_so() -> None:
    inside = Host("linux", ("debian",), "13", container=True)
    assert "--device /dev/dri" in install_advice(inside)[-1]
    assert "/dev/dri" not in install_advice(Host("linux", ("debian",), "13", True, True))[-1]


def test_packages_that_are_there_are_not_advised() -> None:
    advice = install_advice(Host("linux", ("debian",), "12"), has_software=True)
    assert advice == ("an NVIDIA GPU needs NVIDIA's own driver, with its Vulkan part, and libvulkan",)


def test_os_release() -> None:
    text = '# a remark\nID=debian\nPRETTY_NAME="Debian GNU/Linux 12"\n\nVERSION_ID="12"\n'
    assert parse_os_release(text) == {
        "ID": "debian",
        "PRETTY_NAME": "Debian GNU/Linux 12",
        "VERSION_ID": "12",
    }


def test_this_machine_answers() -> None:
    assert this_host().platform
    assert processor_name()
    assert processor_cores() >= 1
    assert memory_bytes() > 1 << 20


def test_the_cache_is_read_in_kib_and_guessed_where_nobody_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "size"
    monkeypatch.setattr(module, "CACHE_SIZE", told)
    assert module.cache_bytes() == 1 << 19
    for text, expected in (("2048K\n", 2 << 20), ("what", 1 << 19)):
        told.write_text(text)
        assert module.cache_bytes() == expected
