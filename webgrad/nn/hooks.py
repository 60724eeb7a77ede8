"""Hooks of modules: functions that are called before and after `forward`, and the handles to remove them."""

from __future__ import annotations

from typing import Any

__all__ = ["HookHandle"]


class HookHandle:
    """What takes a hook away again: by `remove()`, or at the end of a with block."""

    def __init__(self, hooks: dict[HookHandle, Any], hook: Any) -> None:
        self._hooks = hooks
        hooks[self] = hook

    def remove(self) -> None:
        """The hook is called no more."""
        self._hooks.pop(self, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
