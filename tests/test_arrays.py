"""NumPy's stand-in: loaded at its first use, as quick as the real one then, and clear where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from webgrad import arrays
from webgrad.errors import MissingPackageError, WebgradError

ROOT = Path(__file__).parents[1]


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_becomes_numpy() -> None:
    assert arrays.np.float32 is np.float32
    assert arrays.np.linalg is np.linalg
    assert [name for name in np.__all__ if getattr(arrays.np, name) is not getattr(np, name)] == []
    assert arrays.has_numpy()


def test_names_that_numpy_has_not_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        arrays.np.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_it_is_loaded_at_the_first_use() -> None:
    code = """
import sys
import webgrad, webgrad.nn, webgrad.optim
assert not {"numpy", "ml_dtypes"} & set(sys.modules), "imported early"
assert webgrad.float32.itemsize == 4 and webgrad.as_dtype("int8") is webgrad.int8
assert not hasattr(webgrad.arrays.np, "__wrapped__")  # as inspect and doctest ask
assert not {"numpy", "ml_dtypes"} & set(sys.modules), "imported for what does not need it"
webgrad.arrays.np.float32
assert "numpy" in sys.modules and "ml_dtypes" not in sys.modules
"""
    run(code)


def test_where_it_is_missing() -> None:
    code = """
import sys
sys.modules["numpy"] = sys.modules["ml_dtypes"] = None
from webgrad import arrays, errors
assert not arrays.has_numpy()
assert not isinstance(1.5, (arrays.np.ndarray, arrays.np.generic))
for call in (lambda: arrays.np.zeros(3), lambda: arrays.ml_dtypes.bfloat16):
    try:
        call()
    except errors.MissingPackageError as error:
        print(error)
"""
    first, second = run(code).splitlines()
    assert first.startswith("numpy.zeros needs NumPy, which is not installed here: `pip install numpy`")
    assert second.startswith("ml_dtypes.bfloat16 needs ml_dtypes, which is not installed here")


def test_the_error_is_an_import_error() -> None:
    error = arrays.missing("x.numpy()", "x.tolist() does")
    assert isinstance(error, MissingPackageError)
    assert isinstance(error, ImportError)
    assert isinstance(error, WebgradError)
    assert str(error).endswith("Without it x.tolist() does")


def test_it_is_looked_for_once_and_again_when_it_may_have_come(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("__version__ = '9.0'", encoding="utf-8")
    code = f"""
import importlib, sys
searches = []
class Without:
    away = True
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            searches.append(name)
            if self.away:
                raise ImportError(name)
without = Without()
sys.meta_path.insert(0, without)
from webgrad.arrays import has_numpy
assert [has_numpy() for _ in range(5)] == [False] * 5 and len(searches) == 1, searches
importlib.invalidate_caches()  # something was installed, but not NumPy
assert not has_numpy() and not has_numpy() and len(searches) == 2, searches
without.away = False
way = sys.argv[1]
if way == "on a new path":
    sys.path.insert(0, {str(tmp_path)!r})
elif way == "announced":
    importlib.invalidate_caches()
elif way == "imported":
    import numpy
assert has_numpy(), way
"""
    for way in ("on a new path", "announced", "imported"):
        run(code, way)
