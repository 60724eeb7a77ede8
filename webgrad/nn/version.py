"""The version of all modules together: what captured functions look at instead of asking each module.

In: changes, told after they were made. Out: an object, another one after every change. The invariant: it is
an object of its own each time, so that no two threads that tell of changes at once make one of them.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Hooks", "version"]


class Version:
    """Called, it gives the object."""

    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now = object()

    def __call__(self) -> object:
        return self._now

    def changed(self, *_: object) -> None:
        """A module is another now, or is gone."""
        self._now = object()


version = Version()


class Hooks(dict[Any, Any]):
    """Hooks by their handles, which put them there and take them away."""

    are_used = False  # whether there ever was one

    def __setitem__(self, handle: Any, hook: Any) -> None:
        super().__setitem__(handle, hook)
        Hooks.are_used = True
        version.changed()

    def pop(self, *arguments: Any) -> Any:
        """As a dictionary's."""
        found = super().pop(*arguments)
        version.changed()
        return found

    def clear(self) -> None:
        """No hooks any more."""
        super().clear()
        version.changed()

    def __delitem__(self, handle: Any) -> None:
        super().__delitem__(handle)
        version.changed()

    def to_front(self, handle: Any) -> None:
        """Call this hook before the others."""
        others = {each: hook for each, hook in self.items() if each is not handle}
        hook = self[handle]
        super().clear()
        self[handle] = hook
        self.update(others)
