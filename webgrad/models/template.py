"""Chat templates: a conversation becomes the text that a model was trained on.

What comes in is the jinja2 text of a model file and messages; what comes out is one text. Model files are
not trusted: a template runs in a sandbox with bounds on time, memory and output (`sandbox.py`), and gets
plain values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from webgrad.errors import ArgumentError, ModelFileError

__all__ = ["CHATML", "ChatTemplate"]

LONGEST_TEMPLATE = 64 * 1024  # jinja2 compiles about so much a second at worst
LONGEST_OUTPUT = 4_000_000

# What a model gets whose vocabulary has these tokens but whose file has no template.
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


class ChatTemplate:
    """A chat template, compiled; `tokens` are the texts it may ask for, such as bos_token.

    >>> template = wg.models.ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}")
    >>> template.render([{"role": "user", "content": "Hello"}])
    'user: Hello '
    """

    def __init__(self, text: str, tokens: Mapping[str, str] | None = None) -> None:
        if len(text) > LONGEST_TEMPLATE:
            raise ModelFileError(
                f"the model's chat template has {len(text):,} characters; {LONGEST_TEMPLATE:,} are read"
            )
        self.text = text
        self.tokens = dict(tokens or {})
        self._compiled: Any = None

    def render(
        self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True, **values: Any
    ) -> str:
        """The conversation as one text; by `add_generation_prompt` it ends where the answer starts."""
        given = {
            **self.tokens,
            "messages": check_messages(messages),
            "tools": None,
            "documents": None,
            "add_generation_prompt": bool(add_generation_prompt),
            **{name: plain(value, name) for name, value in values.items()},
        }
        sandbox = import_sandbox()
        if self._compiled is None:
            self._compiled = self._compile()
        token = sandbox.FUEL.set(sandbox.Fuel())
        try:
            return self._write(given)
        except sandbox.RefusedByTemplate as error:
            raise ArgumentError(f"the model's chat template refuses these messages: {error}") from None
        except Exception as error:  # whatever a stranger's template comes to
            line = line_of(error.__traceback__)
            raise ModelFileError(f"the model's chat template failed{line}: {reason_of(error)}") from None
        finally:
            sandbox.FUEL.reset(token)

    def _write(self, given: dict[str, Any]) -> str:
        parts: list[str] = []
        total = 0
        for part in self._compiled.generate(given):
            total += len(part)
            if total > LONGEST_OUTPUT:
                raise ModelFileError(f"it wrote more than {LONGEST_OUTPUT:,} characters")
            parts.append(part)
        return "".join(parts)

    def _compile(self) -> Any:
        sandbox = import_sandbox()
        try:
            return sandbox.BoundedEnvironment().from_string(self.text)
        except Exception as error:
            # Python's own errors name lines of what jinja2 made of the template.
            is_jinja = isinstance(error, sandbox.jinja2.TemplateSyntaxError)
            line = f", line {getattr(error, 'lineno', '')}" if is_jinja else ""
            raise ModelFileError(
                f"the model's chat template cannot be read{line}: {reason_of(error)}"
            ) from None


def import_sandbox() -> Any:
    """The sandbox's module; jinja2 is an extra."""
    try:
        from . import sandbox  # here: it needs jinja2
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("jinja2", "markupsafe"):
            raise
        raise ModelFileError(
            'chat templates need the package jinja2, which is not installed: pip install "webgrad[lm]"'
        ) from None
    return sandbox


def check_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages as plain values, each with a role and a content."""
    if not isinstance(messages, (list, tuple)):
        raise ArgumentError(
            f'messages must be a list of {{"role": …, "content": …}}, not {type(messages).__name__}'
        )
    if not messages:
        raise ArgumentError("messages is empty: give at least one message")
    checked = []
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise ArgumentError(f'messages[{place}] must have a "role" that is a text, for example "user"')
        if not is_name(message["role"]):
            raise ArgumentError(
                f"messages[{place}] has the role {message['role'][:40]!r}: roles are plain words"
            )
        if "content" not in message and "tool_calls" not in message:
            raise ArgumentError(f'messages[{place}] must have a "content"')
        content = message.get("content")
        # None beside calls of tools; lists are parts of a content, which some templates take.
        if not isinstance(content, str | list | tuple) and not (content is None and "tool_calls" in message):
            raise ArgumentError(
                f"messages[{place}] has a content that is a {type(content).__name__}; it must be a text"
            )
        checked.append(plain(message, f"messages[{place}]"))
    return checked


def is_name(role: str) -> bool:
    """Whether a role can stand in a template's tokens (<|user|>) without making others of them."""
    return 0 < len(role) <= 64 and role.replace("_", "").replace("-", "").isalnum()


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """The same value of plain types only, since methods of other types would be within a template's reach."""
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, int, float):
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    if depth < 32 and isinstance(value, Mapping):
        return {str(key): plain(part, where, depth + 1) for key, part in value.items()}
    if depth < 32 and isinstance(value, (list, tuple)):
        return [plain(part, where, depth + 1) for part in value]
    raise ArgumentError(
        f"{where} holds a {type(value).__name__}"
        + (
            " in a nesting deeper than 32"
            if depth >= 32
            else "; texts, numbers, lists and dictionaries can be given"
        )
    )


def line_of(trace: TracebackType | None) -> str:
    """ ", line 7", the innermost line of the template that was running."""
    found = ""
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            found = f", line {trace.tb_lineno}"
        trace = trace.tb_next
    return found


def reason_of(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it calls itself without end, or is nested too deeply"
    if isinstance(error, ModelFileError) or type(error).__name__ == "Refused":
        return str(error)
    return f"{type(error).__name__}: {str(error)[:300]}"
