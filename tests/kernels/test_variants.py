"""naga takes every declared variant of every template, plain and minified, with immediates and without."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wgsl import naga
from webgrad.wgsl import Program, load_template
from webgrad.wgsl.renderer import render
from webgrad.wgsl.template import template_names
from webgrad.wgsl.variants import variant_keys

TEMPLATES = [template for template in template_names() if any(True for _ in variant_keys(template))]


@pytest.mark.gpu
@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(
    ("immediates", "minify"), [(False, False), (True, True)], ids=["plain uniform", "minified immediates"]
)
def test_naga_takes_every_variant(template: str, immediates: bool, minify: bool) -> None:
    failures: list[str] = []
    for entry, defines in variant_keys(template):
        program = load_template(template, entry, **defines)
        if naga.missing(program.requires | ({"immediates"} if immediates else set())):
            continue
        text = render(
            program, dialect="naga", parameters="immediates" if immediates else "group", minify=minify
        )
        try:
            naga.compiles(text)
        except Exception as error:
            failures.append(f"{program.label}: {str(error)[:600]}")
    assert not failures, f"{len(failures)} variants refused:\n" + "\n".join(failures[:5])


def layout(program: Program) -> Any:
    """The pipeline layout that the runtime's contract promises: group 0 storage, group 1 params."""
    gpu = naga.device()
    kinds = {"read": "read-only-storage", "read_write": "storage"}
    storage = [
        {"binding": number, "visibility": 4, "buffer": {"type": kinds[binding.access]}}
        for number, binding in enumerate(program.bindings)
    ]
    uniform = [{"binding": 0, "visibility": 4, "buffer": {"type": "uniform"}}] if program.params else []
    groups = [gpu.create_bind_group_layout(entries=entries) for entries in (storage, uniform)]
    return gpu.create_pipeline_layout(bind_group_layouts=groups)


@pytest.mark.gpu
@pytest.mark.parametrize("template", TEMPLATES)
def test_the_tables_of_a_program_fit_its_text(template: str) -> None:
    """A pipeline with the layout made from bindings and params is valid only if they agree with the text."""
    first = dict(reversed(list(variant_keys(template))))
    for entry, defines in first.items():
        program = load_template(template, entry, **defines)
        if naga.missing(program.requires):
            continue
        module = naga.device().create_shader_module(code=render(program, minify=True))
        stage = {"module": module, "entry_point": program.entry}
        naga.device().create_compute_pipeline(layout=layout(program), compute=stage)
