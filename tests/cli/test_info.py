"""`webgrad info`: its text and its JSON, with a GPU and without, on any terminal."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import MappingProxyType

import numpy as np
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


def test_extras_and_the_cache(
    machine: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "file").write_bytes(bytes(2 * 2**20))
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "0.o").write_bytes(bytes(2**20))
    machine.setenv("WEBGRAD_CACHE", str(tmp_path))
    machine.setattr(info, "EXTRAS", {"lm": ("numpy", "no-such-package")})
    text = " ".join(text_of(200).split())
    assert f"cache {tmp_path} (3 MiB)" in text
    assert "native code 1 files (1 MiB) of the cache: webgrad native" in text
    assert f'lm numpy {np.__version__}, no-such-package –: pip install "webgrad[lm]"' in text
    assert main(["info", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["extras"] == {"lm": {"numpy": np.__version__, "no-such-package": None}}
    native = {"files": 1, "bytes": 2**20}
    assert report["cache"] == {"path": str(tmp_path), "bytes": 3 * 2**20, "native": native}


def test_extras_are_those_of_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, packages in info.EXTRAS.items():
        wanted = {re.split("[<>=]", each)[0] for each in project["optional-dependencies"][extra]}
        assert set(packages) == wanted


def test_in_short(machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    machine.setattr(adapters, "list_adapters", lambda: (GPU,))
    assert main(["info", "--short"]) == 0
    assert capsys.readouterr().out.endswith(" on webgpu:0 (Radeon RX): the only discrete GPU\n")
    assert main(["info", "--short", "--device", "cpu"]) == 0
    assert " on cpu (" in capsys.readouterr().out


def test_a_device_that_is_not_there(machine: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--device", "webgpu:3"]) == 2
    assert capsys.readouterr().err.startswith("webgrad info: webgpu:3 was asked for, and there is no such")


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
