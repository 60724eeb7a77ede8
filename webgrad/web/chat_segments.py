"""A model's chat template as plain texts that a page joins: what stands between two messages.

In comes a `Tokenizer` with a template, out come the texts by the roles before and after them, and what the
template does with contents. Both are found by rendering conversations, and checked by rendering many more; a
template that is more than that is refused. webgrad/web/chat.js joins them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

from webgrad.errors import ArgumentError, ModelFileError
from webgrad.models.template import ChatTemplate
from webgrad.models.tokenizer import BREAK, Tokenizer

__all__ = ["chat_segments"]

START, END = "start", "end"
Roles = tuple[str, ...]
WITHOUT_SYSTEM: tuple[Roles, ...] = (("user",), ("user", "assistant", "user"))
END_OF_THOUGHTS = "</think>"

# What templates do with a content; the same names are in chat.js.
CUTS: dict[str, Callable[[str], str]] = {
    "none": lambda text: text,
    "thoughts": lambda text: text.split(END_OF_THOUGHTS)[-1],
    "thoughtsAndLines": lambda text: (
        text.split(END_OF_THOUGHTS)[-1].lstrip("\n") if END_OF_THOUGHTS in text else text
    ),
}
STRIPS: dict[str, Callable[[str], str]] = {
    "none": lambda text: text,
    "both": lambda text: text.strip(),
    "start": lambda text: text.lstrip(),
    "end": lambda text: text.rstrip(),
}
# Contents that show what a template does to them.
TELLING = ("\n \u2003a b\x1f\n\t", "so</think>\n\n yes ", "\n\n<think>\nwhy\n</think>\n\n\na</think>b")
ODD = (
    *("x", " ", "\n", "{{ bos_token }}", "{% if %}", "{'a': 1}", "a\r\n\r\nb", "\x85 é\u3000", "日本語 😀"),
    *("<|im_end|>", "[INST] b [/INST]", "</s><s>", f"a<{BREAK}b", "$& $1 \\n", "<think>", "'\"`", "\u200bx"),
    *TELLING,
)
CONVERSATIONS = 40


def chat_segments(tokenizer: Tokenizer) -> dict[str, Any]:
    """The texts between messages, and the rules for contents, as plain values."""
    template = tokenizer.template
    if template is None:
        raise ModelFileError("this model has no chat template: it was not trained on conversations")
    orders = legal_orders(template)
    segments = Segments(joints_of(template, orders))
    for role in sorted({role for roles in orders for role in roles}):
        segments.contents[role] = rule_of(template, segments, orders, role)
    segments.never_empty = [
        role for role in segments.contents if is_changed(template, segments, orders, role)
    ]
    check(template, segments, orders)
    return {
        "joints": segments.joints,
        "contents": {role: list(rule) for role, rule in segments.contents.items()},
        "neverEmpty": segments.never_empty,
    }


class Segments:
    """What has been found of a template."""

    def __init__(self, joints: dict[str, dict[str, str]]) -> None:
        self.joints = joints
        self.contents: dict[str, tuple[str, str]] = {}
        self.never_empty: list[str] = []

    def content(self, role: str, text: str) -> str:
        """What a template writes of a content; roles that nothing is known of yet have plain ones."""
        cut, strip = self.contents.get(role, ("none", "none"))
        return STRIPS[strip](CUTS[cut](text))

    def join(self, roles: Sequence[str], contents: Sequence[str]) -> str:
        """The conversation as a page writes it."""
        steps = itertools.pairwise((START, *roles, END))
        written = [self.content(role, text) for role, text in zip(roles, contents, strict=True)]
        joints = [self.joints[before][after] for before, after in steps]
        return "".join(itertools.chain(*zip(joints, written, strict=False), joints[-1:]))


def refused(why: str) -> ModelFileError:
    return ModelFileError(
        f"the model's chat template does not come apart into texts between messages: {why}. A page can let "
        "it complete plain text instead"
    )


def render(template: ChatTemplate, roles: Sequence[str], contents: Sequence[str]) -> str:
    messages = [{"role": role, "content": text} for role, text in zip(roles, contents, strict=True)]
    return template.render(messages, add_generation_prompt=True)


def legal_orders(template: ChatTemplate) -> tuple[Roles, ...]:
    """The orders of roles that pages use: some templates refuse a system message."""
    with_system = tuple(("system", *roles) for roles in WITHOUT_SYSTEM)
    try:
        render(template, with_system[0], ("x", "x"))
    except ArgumentError:
        return WITHOUT_SYSTEM
    return WITHOUT_SYSTEM + with_system


def joints_of(template: ChatTemplate, orders: Sequence[Roles]) -> dict[str, dict[str, str]]:
    """The texts between contents that can be told from everything else."""
    joints: dict[str, dict[str, str]] = {}
    for roles in orders:
        contents = [f"Qz{place}zQ" for place in range(len(roles))]
        texts = texts_between(render(template, roles, contents), contents)
        for (before, after), text in zip(itertools.pairwise((START, *roles, END)), texts, strict=True):
            if joints.setdefault(before, {}).setdefault(after, text) != text:
                raise refused(f"what it writes between {before} and {after} is not always the same")
    return joints


def texts_between(text: str, contents: Sequence[str]) -> list[str]:
    texts = []
    for content in contents:
        if text.count(content) != 1:
            raise refused("it writes a message other than once, or not in order")
        before, _, text = text.partition(content)
        texts.append(before)
    return [*texts, text]


def rule_of(
    template: ChatTemplate, segments: Segments, orders: Sequence[Roles], role: str
) -> tuple[str, str]:
    """What a template does with the contents of a role: the first rule that explains all it writes."""
    known = segments.contents
    for rule in itertools.product(CUTS, STRIPS):
        segments.contents = known | {role: rule}
        if all(
            is_same(template, segments, roles, [text if each == role else "x" for each in roles])
            for roles in orders
            for text in TELLING
        ):
            segments.contents = known
            return rule
    raise refused(f"what it does with messages of the role {role} is unknown")


def is_same(template: ChatTemplate, segments: Segments, roles: Roles, contents: Sequence[str]) -> bool:
    return render(template, roles, contents) == segments.join(roles, contents)


def is_changed(template: ChatTemplate, segments: Segments, orders: Sequence[Roles], role: str) -> bool:
    """Whether an empty message of this role is written in another way, or refused."""
    try:
        return not all(
            is_same(template, segments, roles, ["" if each == role else "x" for each in roles])
            for roles in orders
        )
    except ArgumentError:
        return True


def check(template: ChatTemplate, segments: Segments, orders: Sequence[Roles]) -> None:
    """Conversations of all orders, longer ones too, with odd contents, are written as the template does."""
    choose = random.Random(9)
    longer = [(*roles, *("assistant", "user") * more) for roles in orders for more in (0, 1, 3)]
    for number in range(CONVERSATIONS):
        roles = longer[number % len(longer)]
        contents = [choose.choice(allowed(segments, role)) for role in roles]
        if not is_same(template, segments, roles, contents):
            raise refused(f"it writes the messages {contents!r:.200} in another way than others")


def allowed(segments: Segments, role: str) -> list[str]:
    """Odd contents, and the empty one where a template writes it like any other."""
    texts = ["", *ODD]
    return [text for text in texts if segments.content(role, text) or role not in segments.never_empty]
