"""Modules that are a function with its options: activations, pooling, padding, most losses.

In: options by their names. Out: a module that has them as attributes, shows them in its text, and passes them
to the function at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from .module import Module

__all__ = ["Applied"]


class Applied(Module):
    """A function with options; subclasses name the function and the options."""

    function: ClassVar[Callable[..., Any]]
    renamed: ClassVar[Mapping[str, str]] = {"dim": "axis"}  # what the function calls an option

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, *inputs: Any) -> Any:
        """The function of the inputs."""
        options = {self.renamed.get(name, name): getattr(self, name) for name in self._options}
        return type(self).function(*inputs, **options)

    def extra_repr(self) -> str:
        options = ((name, getattr(self, name)) for name in self._options)
        return ", ".join(f"{name}={value!r}" for name, value in options if value is not None)
