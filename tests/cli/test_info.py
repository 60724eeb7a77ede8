"""`webgrad info`: its text and its JSON, with a GPU and without, on any terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

from webgrad import config
from webgrad.cli import info, main
from webgrad.runtime import adapters
from webgrad.runtime.adapters import AdapterInfo

ROOT = Path(__file__).parents[2]
GPU = AdapterInfo(
    device="webgpu:0",
    index=0,
    name="Radeon RX",
    vendor="AMD",
    backend="vulkan",
    type="discrete",
    driver="Mesa 25.0.7",
    features=frozenset({"f16", "subgroups"}),
    raw_features=frozenset({"shader-f16", "subgroup"}),
    limits=MappingProxyType({"max-buffer-size": 2**31, "max-immediate-size": 128, "max-samplers": 3}),
    subgroup_sizes=(32, 64),
)


@pytest.fixture
def machine(clean_environment: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with no GPU adapter; tests add to it."""
    clean_environment.setattr(adapters, "list_adapters", lambda: ())
    clean_environment.setattr(adapters, "enumeration_problem", lambda: "")
    return clean_environment


def text_of(width: int = 100, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    info.show(info.collect(), stream, width)
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_with_a_gpu(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(adapters, "list_adapters", lambda: (GPU,))
    text = text_of()
    assert "Radeon RX · discrete · vulkan · Mesa 25.0.7" in text
    assert "features: ✓ f16, – f64, – int64, ✓ subgroups, – timestamps" in text
    assert "subgroup size: 32 to 64" in text
    assert "limits: buffer 2 GiB, immediates 128 B\n" in text
    assert "webgpu:0          the only discrete GPU\n" in text
    assert "To get a GPU adapter" not in text


def test_without_a_gpu_it_says_what_to_install(
    machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.setattr(adapters, "enumeration_problem", lambda: "wgpu cannot be loaded")
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert "no GPU adapter was found" in text
    assert "To get a GPU adapter" in text
    assert "wgpu cannot be loaded" in text


def test_a_gpu_asked_for_that_is_not_there(machine: pytest.MonkeyPatch) -> None:
    machine.setenv("WEBGRAD_DEVICE", "webgpu:3")
    text = text_of()
    assert "none              webgpu:3 was asked for by WEBGRAD_DEVICE, and there is no such" in text


def test_settings_and_where_they_come_from(machine: pytest.MonkeyPatch) -> None:
    machine.setenv("WEBGRAD_MEMORY", "50%")
    machine.setenv("WEBGRAD_DEVISE", "cpu")
    text = text_of()
    assert "memory            50% (WEBGRAD_MEMORY)\n" in text
    assert "in_flight         3\n" in text
    assert "WEBGRAD_DEVISE means nothing; did you mean WEBGRAD_DEVICE?" in text
    assert [option.name for option in config.OPTIONS if f"  {option.name} " not in text] == []


@pytest.mark.parametrize("width", [1, 20, 40, 59, 60, 80, 200])
def test_any_width(width: int, machine: pytest.MonkeyPatch) -> None:
    machine.setattr(adapters, "list_adapters", lambda: (GPU,))
    lines = text_of(width).splitlines()
    too_wide = [line for line in lines if len(line) > max(width, 12) and len(line.split()) > 1]
    # What is left is one long word after a short mark or label, which cannot be broken.
    assert [line for line in too_wide if len(max(line.split(), key=len)) < width // 3] == []
    assert "✓ f16" in " ".join(" ".join(lines).split())


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-16"])
def test_any_encoding(encoding: str, machine: pytest.MonkeyPatch) -> None:
    machine.setattr(adapters, "list_adapters", lambda: (GPU,))
    text = text_of(encoding=encoding)
    assert ("✓ f16, – f64" if encoding == "utf-16" else "+ f16, - f64") in text
    assert "?" not in text


def test_json(machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    machine.setattr(adapters, "list_adapters", lambda: (GPU,))
    machine.setenv("WEBGRAD_DISABLE_BACKENDS", "opengl")
    assert main(["info", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["default"] == {"device": "webgpu:0", "reason": "the only discrete GPU"}
    assert [device["device"] for device in report["devices"]] == ["webgpu:0", "cpu"]
    assert report["devices"][0]["features"] == ["f16", "subgroups"]
    assert report["config"]["settings"]["disable_backends"] == {
        "value": ["opengl"],
        "source": "WEBGRAD_DISABLE_BACKENDS",
    }
    assert set(report["config"]["settings"]) == {option.name for option in config.OPTIONS}


def fail_noisily() -> None:
    os.write(2, b"a reason")
    raise OSError("broken")


def test_drivers_noise_is_kept_back_unless_something_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with info._quiet():
        os.write(2, b"noise")
    assert capfd.readouterr().err == ""
    with pytest.raises(OSError, match="broken"), info._quiet():
        fail_noisily()
    assert capfd.readouterr().err == "a reason"


def test_the_command_on_this_machine() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    done = subprocess.run(
        [sys.executable, "-m", "webgrad.cli", "info"],
        cwd=ROOT,
        env=environment | {"PYTHONIOENCODING": "ascii", "COLUMNS": "70"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Default device" in done.stdout
