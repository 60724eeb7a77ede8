"""Typed calls made from templates."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from webgrad.errors import LaunchError, TemplateError
from webgrad.wgsl import template
from webgrad.wgsl.bindings import function_name, generate, main

KERNEL = """\
//! variants: scale INPLACE=0|1
//! variants: clear
#ifndef INPLACE
#define INPLACE 0
#endif
struct Params { n: u32, shift: vec2<i32>, factor: f32 }
var<uniform> p: Params;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> lambda: array<f32>;
@compute @workgroup_size(1) fn scale() {
#if INPLACE
    x[p.n] *= p.factor;
#else
    lambda[p.n] = x[p.n] * p.factor;
#endif
}
@compute @workgroup_size(1) fn clear() { x[0] = 0; }
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with one template in the place of webgrad/kernels."""
    (tmp_path / "scale.pwgsl").write_text(KERNEL)
    monkeypatch.setattr(template, "KERNELS", tmp_path)
    template.clear_templates()
    yield tmp_path
    template.clear_templates()


def functions() -> dict[str, Callable[..., tuple[tuple[object, ...], bytes]]]:
    namespace: dict[str, Callable[..., tuple[tuple[object, ...], bytes]]] = {}
    exec(generate(), namespace)
    return namespace


@pytest.mark.usefixtures("kernels")
def test_buffers_come_in_binding_order_and_params_packed() -> None:
    scale = functions()["scale"]
    buffers, params = scale(lambda_="out", x="in", factor=0.5, n=3, shift=(-1, 2))
    assert buffers == ("in", "out")
    assert params.hex() == "0300000000000000" + "ffffffff02000000" + "0000003f00000000"


@pytest.mark.usefixtures("kernels")
def test_an_entry_without_params_packs_nothing() -> None:
    assert functions()["scale_clear"](x="in") == (("in",), b"")


@pytest.mark.usefixtures("kernels")
def test_wrong_calls_fail_in_python() -> None:
    scale = functions()["scale"]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'x'"):
        scale(lambda_="out", factor=0.5, n=3, shift=(0, 0))
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        scale(z=1)
    with pytest.raises(LaunchError, match="scale: param `n` is -3; u32 holds 0 to 4294967295"):
        scale(x="in", lambda_="out", factor=0.5, n=-3, shift=(0, 0))


def test_the_generated_text_is_typed_and_formatted(kernels: Path) -> None:
    path = kernels / "made.py"
    path.write_text(
        generate()
        + "\n\nok: tuple[tuple[str, ...], bytes] = scale(x='a', lambda_='b', factor=1.0, n=1, shift=(1, 2))\n"
    )
    for command in (["mypy", "--strict"], ["ruff", "check", "--select", "E,F,I", "--line-length", "110"]):
        done = subprocess.run(
            [sys.executable, "-m", *command, str(path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    path.write_text(generate())
    formatted = [sys.executable, "-m", "ruff", "format", "--check", "--line-length", "110", str(path)]
    done = subprocess.run(formatted, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_name_cannot_be_a_buffer_and_a_field(kernels: Path) -> None:
    (kernels / "scale.pwgsl").write_text(KERNEL.replace("factor", "x"))
    template.clear_templates()
    with pytest.raises(
        TemplateError, match=r"scale.pwgsl scale: \['x'\] names both a buffer and a params field"
    ):
        generate()


@pytest.mark.parametrize(
    ("file", "entry", "name"),
    [
        ("map.pwgsl", "map_grid", "map_grid"),
        ("map.pwgsl", "map", "map"),
        ("map.pwgsl", "mapped", "map_mapped"),
        ("softmax.pwgsl", "rows", "softmax_rows"),
    ],
)
def test_function_names(file: str, entry: str, name: str) -> None:
    assert function_name(file, entry) == name


def test_the_kept_bindings_are_those_of_the_templates(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--check"])
    assert status == 0, capsys.readouterr().out
