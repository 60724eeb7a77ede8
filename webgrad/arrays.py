"""NumPy and ml_dtypes, imported at their first use: `from webgrad.arrays import np` costs nothing.

`np` and `ml_dtypes` are empty modules until an attribute of theirs is used; then they become copies of the
real ones, and are as fast. Where a package is not installed, as in a browser without it, an attribute raises
a MissingPackageError, except the types in `_TYPES`: these then have no instances, so that
`isinstance(x, np.ndarray)` is just False.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .errors import MissingPackageError

if TYPE_CHECKING:
    import ml_dtypes
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["Array", "has_numpy", "missing", "ml_dtypes", "np"]

_TYPES = ("ndarray", "generic", "bool_", "integer", "floating", "complexfloating", "number")


def _stand_in(name: str, called: str) -> ModuleType:
    """A module that copies the package `name` into itself when one of its attributes is first used."""
    module = ModuleType(name)

    def load(attribute: str) -> Any:
        if attribute.startswith("__") and attribute != "__version__":
            # what inspect asks
            raise AttributeError(f"module {name!r} is not loaded yet, and has no {attribute!r}")
        try:
            package = importlib.import_module(name)
        except ImportError as error:
            if attribute in _TYPES:
                return _absent(module, attribute)
            raise missing(f"{name}.{attribute}", package=name, called=called) from error
        module.__dict__.update(package.__dict__)
        return getattr(package, attribute)

    module.__dict__["__getattr__"] = load
    return module


def _absent(module: ModuleType, attribute: str) -> type:
    """A type without instances, in place of one that is not installed."""
    made = type(attribute, (), {"__module__": module.__name__})
    setattr(module, attribute, made)
    return made


def missing(
    what: str, instead: str = "", *, package: str = "numpy", called: str = "NumPy"
) -> MissingPackageError:
    """The error of something that needs a package; `instead` ends "Without it …"."""
    return MissingPackageError(
        f"{what} needs {called}, which is not installed here: `pip install {package}`, in Pyodide `await "
        f'pyodide_js.loadPackage("{package}")`. Without it {instead or "there are tensors on a GPU"}'
    )


class _Missed:
    """Remembers that NumPy was not found: a search before each read and upload would cost too much.

    It is the last of Python's finders, finds nothing, and is called when packages may have been installed
    (`importlib.invalidate_caches`, which Pyodide's and micropip's installers call).
    """

    def __init__(self) -> None:
        self.path: list[str] | None = None

    def note(self) -> None:
        """NumPy was not found."""
        self.path = list(sys.path)
        if self not in sys.meta_path:
            sys.meta_path.append(self)

    def holds(self) -> bool:
        """Whether NumPy is still missing, as far as an import could know."""
        return self.path == sys.path and sys.modules.get("numpy") is None

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Nothing."""

    def invalidate_caches(self) -> None:
        """Look again."""
        self.path = None


_missed = _Missed()


def has_numpy() -> bool:
    """Whether NumPy is installed; it is imported then."""
    if "__version__" in np.__dict__:  # it is loaded
        return True
    if _missed.holds():
        return False
    try:
        return bool(np.__version__)
    except MissingPackageError:
        _missed.note()
        return False


if not TYPE_CHECKING:
    np = _stand_in("numpy", "NumPy")
    ml_dtypes = _stand_in("ml_dtypes", "ml_dtypes")
    Array = Any
