"""docs/errors.md: every error has code that raises it, what is then said, and the code that was meant."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import webgrad
from webgrad import errors

PAGE = (Path(__file__).parents[1] / "docs" / "errors.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
BLOCK = re.compile(r"(<!-- not run: .+? -->\n)?```python\n# (wrong|fixed)\n(.*?)```", re.DOTALL)


def run(code: str) -> str:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/errors.md", "exec"), {"__name__": "__main__"})
    finally:
        webgrad.set_default_device(None)
    return printed.getvalue()


def pattern(shown: str) -> str:
    """What a message must look like, whatever its lines; "…" stands for anything."""
    return ".*".join(map(re.escape, " ".join(shown.split()).split("…")))


def test_every_error_has_its_section() -> None:
    assert sorted(SECTIONS) == sorted(errors.__all__)


@pytest.mark.gpu
@pytest.mark.parametrize("name", SECTIONS)
def test_the_wrong_code_raises_it_and_the_fixed_code_runs(name: str) -> None:
    blocks = {kind: (bool(mark), code) for mark, kind, code in BLOCK.findall(SECTIONS[name])}
    (shown,) = re.findall(r"```text\n(.*?)```", SECTIONS[name], re.DOTALL)
    left_out, code = blocks["wrong"]
    if not left_out:
        with pytest.raises(webgrad.WebgradError) as caught:
            run(code)
        expected = getattr(errors, name)
        # the two that nothing raises themselves are shown by one that is derived from them
        assert caught.type is expected or (
            name in ("WebgradError", "ShaderError") and caught.errisinstance(expected)
        )
        said = " ".join(f"{caught.type.__name__}: {caught.value}".split())
        assert re.fullmatch(pattern(shown), said)
    left_out, code = blocks["fixed"]
    assert not left_out
    printed = run(code)
    promised = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert promised
    assert all(each in printed for each in promised)
