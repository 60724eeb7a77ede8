"""Functions that unpack quantised blocks in generated kernels, one set for each buffer of them.

In: a `Writer`, a buffer's number and its format. Out: WGSL, from `kernels/decode.pwgsl`, whose names get
the buffer's suffix.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..wgsl.template import expand_template

if TYPE_CHECKING:
    from .writer import Writer

_NAMES = re.compile(r"\b(block_\w+|decode[14])\b")


def decoder_text(writer: Writer, buffer: int, name: str) -> str:
    """The functions `decode1_b…` and `decode4_b…` of a buffer."""
    word = f"fn block_word(i: u32) -> u32 {{ return {writer.load(buffer, 'i', 1)}; }}\n"
    text = word + expand_template("decode.pwgsl", (("FORMAT", name),)).text
    return _NAMES.sub(rf"\1_b{buffer}", text)
