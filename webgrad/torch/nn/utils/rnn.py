"""torch.nn.utils.rnn: sequences of different lengths, padded or packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import webgrad as wg

from ...binding import bind
from ...devices import device as Device
from ...devices import place

_rnn = wg.nn.utils.rnn

ROWS = """
[function]
invert_permutation(permutation) = _rnn.invert_permutation(permutation)
pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True) =
    packed(_rnn.pack_padded_sequence(input, lengths, batch_first, enforce_sorted))
pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None) =
    _rnn.pad_packed_sequence(sequence, batch_first, padding_value, total_length)
pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right") =
    _rnn.pad_sequence(rows(sequences), batch_first, padding_value, padding_side)
pack_sequence(sequences, enforce_sorted=True) = packed(_rnn.pack_sequence(sequences, enforce_sorted))
unpad_sequence(padded_sequences, lengths, batch_first=False) = _rnn.unpad_sequence(padded_sequences, lengths,
    batch_first)
unpack_sequence(packed_sequences) = _rnn.unpack_sequence(packed_sequences)
"""


class PackedSequence(_rnn.PackedSequence):
    """Sequences of different lengths, the elements of every time one after the other."""

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> Any:
        if unsorted_indices is None:
            unsorted_indices = _rnn.invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    @property
    def is_cuda(self) -> bool:
        """Whether its data is on a GPU."""
        return bool(self.data.device.is_gpu)

    def to(self, *targets: Any, **options: Any) -> Any:
        """The same with its data in another dtype, or all of it on another device."""
        options = {**options, "device": place(options["device"])} if options.get("device") else options
        found = [place(each) if isinstance(each, str | int | Device) else each for each in targets]
        return super().to(*found, **options)

    def cuda(self, device: Any = None) -> Any:
        """On the best device."""
        return self.to("cuda" if device is None else device)

    def cpu(self) -> Any:
        """On the cpu."""
        return self.to("cpu")

    def pin_memory(self) -> Any:
        """Itself."""
        return self

    def float(self) -> Any:
        """Data in float32."""
        return self.to(wg.float32)

    def double(self) -> Any:
        """Data in float64."""
        return self.to(wg.float64)

    def half(self) -> Any:
        """Data in float16."""
        return self.to(wg.float16)

    def long(self) -> Any:
        """Data in int64."""
        return self.to(wg.int64)


def packed(sequence: Any) -> Any:
    """The same as torch's class."""
    return PackedSequence(*sequence)


def rows(sequences: Any) -> Any:
    """Sequences one by one; a tensor is its first dimension's."""
    return list(sequences)


functions = bind(ROWS, globals())
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


globals().update(functions)
__all__ = ["PackedSequence", *functions]
