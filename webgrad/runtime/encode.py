"""Encoding: rows of (pipeline, bind group, parameters, grid) into an open pass, as fast as Python allows.

The fast encoder calls wgpu-native through `ctypes.PyDLL` with ready-made arguments, four calls a row,
interleaved by `zip` without bytecode; it keeps the GIL, which a busy second thread would otherwise take at
every call. The plain encoder is the same in a cffi loop, for platforms where the other fails. Parameters go
by immediates, or through one uniform buffer and dynamic offsets; the block of them is written anew for
every run.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from ctypes import c_size_t, c_void_p
from itertools import starmap
from typing import TYPE_CHECKING, Any

from wgpu.backends.wgpu_native import ffi, lib

from .calls import address_of, library
from .layer import PARAMS_STRIDE, UNIFORM, Copy, Encoder, Handle, Passes, Prepared, Row

if TYPE_CHECKING:
    from .native import NativeDevice


def make_encoder(kind: str, native: NativeDevice, make_buffer: Callable[[int, int], Handle]) -> Encoder:
    """The encoder called "fast" or "plain"."""
    parameters = _Immediates() if native.params_layout is None else _Uniforms(native, make_buffer)
    return _Fast(native, parameters) if kind == "fast" else _Plain(native, parameters)


class _Immediates:
    """Parameters in host memory, one after another; each row points at its own."""

    def __init__(self) -> None:
        self._block = ctypes.create_string_buffer(1 << 16)
        self._address = ctypes.addressof(self._block)
        self.generation = 0

    def reserve(self, nbytes: int) -> None:
        """Make room. A larger block moves, so rows prepared before are of an older generation."""
        if nbytes > len(self._block):
            self._block = ctypes.create_string_buffer(2 * nbytes)
            self._address = ctypes.addressof(self._block)
            self.generation += 1

    def close(self) -> None:
        """Nothing of it is native."""

    def fill(self, params: Sequence[bytes]) -> None:
        data = b"".join(params)
        ctypes.memmove(self._address, data, len(data))

    def places(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """(address, bytes) for each row; a row without parameters passes four bytes that nobody reads."""
        self.reserve(sum(sizes) + 4)
        found = []
        address = self._address
        for size in sizes:
            found.append((address, size or 4))
            address += size
        return found


class _Uniforms:
    """Parameters in one uniform buffer, a stride each, addressed by dynamic offsets.

    One buffer is enough: a write takes effect after all earlier submissions and before all later ones.
    """

    def __init__(self, native: NativeDevice, make_buffer: Callable[[int, int], Handle]) -> None:
        self._native = native
        self._make_buffer = make_buffer
        self.buffer: Handle = None
        self.group: Handle = None
        self._layout = native.params_layout
        self.generation = 0
        self._rows = 0
        self.reserve(256)

    def reserve(self, rows: int) -> None:
        """Make room for so many rows; a larger buffer means a new bind group, hence a new generation."""
        if rows <= self._rows:
            return
        more = max(rows, 2 * self._rows)
        buffer = self._make_buffer(more * PARAMS_STRIDE, UNIFORM)
        self.close()
        self._rows, self.buffer = more, buffer
        self.group = self._native.create_bind_group(self._layout, [(buffer, 0, PARAMS_STRIDE)])
        self.offsets = ffi.new("uint32_t[]", [row * PARAMS_STRIDE for row in range(self._rows)])
        self.first_offset = address_of(self.offsets)
        self.generation += 1

    def close(self) -> None:
        """Let the buffer and its group go."""
        if self.buffer is not None:
            self._native.release_bind_group(self.group)
            self._native.release_buffer(self.buffer)
            self.buffer = None

    def fill(self, params: Sequence[bytes]) -> None:
        data = b"".join([each.ljust(PARAMS_STRIDE, b"\0") for each in params])
        self._native.write(self.buffer, 0, data)


class _Plain:
    def __init__(self, native: NativeDevice, parameters: _Immediates | _Uniforms) -> None:
        self._native = native
        self._parameters = parameters
        self.close = parameters.close

    def prepare(self, rows: Sequence[Row]) -> Prepared:
        return Prepared(rows)

    def encode(self, prepared: Prepared, params: Sequence[bytes], copies: Iterable[Copy]) -> Handle:
        """A command buffer of rows in one pass, and copies behind it."""
        native = self._native
        encoder, compute_pass = native.begin()
        try:
            self.run(compute_pass, prepared, params)
        except BaseException:
            native.abandon(encoder, compute_pass)
            raise
        return native.finish(encoder, compute_pass, copies)

    def run(self, compute_pass: Handle, prepared: Prepared, params: Sequence[bytes]) -> None:
        self._fill(params)
        for number, row in enumerate(prepared.rows):
            self._add(compute_pass, number, row, params[number])

    def run_apart(self, passes: Passes, prepared: Prepared, params: Sequence[bytes]) -> None:
        self._fill(params)
        for number, row in enumerate(prepared.rows):
            with passes(number) as compute_pass:
                self._add(compute_pass, number, row, params[number])

    def _fill(self, params: Sequence[bytes]) -> None:
        if isinstance(self._parameters, _Uniforms):
            self._parameters.reserve(len(params))
            self._parameters.fill(params)

    def _add(self, compute_pass: Handle, number: int, row: Row, params: bytes) -> None:
        parameters = self._parameters
        lib.wgpuComputePassEncoderSetPipeline(compute_pass, row.pipeline.handle)
        lib.wgpuComputePassEncoderSetBindGroup(compute_pass, 0, row.group.handle, 0, ffi.NULL)
        if isinstance(parameters, _Uniforms):
            offset = parameters.offsets + number
            lib.wgpuComputePassEncoderSetBindGroup(compute_pass, 1, parameters.group, 1, offset)
        elif row.params_size:
            data = ffi.from_buffer(params)
            lib.wgpuComputePassEncoderSetImmediates(compute_pass, 0, data, row.params_size)
        lib.wgpuComputePassEncoderDispatchWorkgroups(compute_pass, *row.grid)


class _Fast(_Plain):
    def __init__(self, native: NativeDevice, parameters: _Immediates | _Uniforms) -> None:
        super().__init__(native, parameters)
        functions = library()
        self._set_pipeline = functions.wgpuComputePassEncoderSetPipeline
        self._set_group = functions.wgpuComputePassEncoderSetBindGroup
        self._set_immediates = functions.wgpuComputePassEncoderSetImmediates
        self._dispatch = functions.wgpuComputePassEncoderDispatchWorkgroups
        for function in (self._set_pipeline, self._set_group, self._set_immediates, self._dispatch):
            function.restype = None
        self._pass = c_void_p(0)  # shared by every prepared argument tuple: set once per run
        self._none, self._zero = c_void_p(0), c_size_t(0)

    def prepare(self, rows: Sequence[Row]) -> Prepared:
        prepared = Prepared(rows)
        self._renew(prepared)
        return prepared

    def _renew(self, prepared: Prepared) -> None:
        open_pass, none, zero = self._pass, self._none, self._zero
        rows = prepared.rows
        prepared.arguments = (
            [(open_pass, row.pipeline.argument) for row in rows],
            [(open_pass, 0, row.group.argument, zero, none) for row in rows],
            self._prepare_params(rows),
            [(open_pass, *row.grid) for row in rows],
        )
        prepared.generation = self._parameters.generation

    def _prepare_params(self, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
        parameters = self._parameters
        if isinstance(parameters, _Immediates):
            places = parameters.places([row.params_size for row in rows])
            sizes = {size: c_size_t(size) for _, size in places}
            return [(self._pass, 0, c_void_p(address), sizes[size]) for address, size in places]
        parameters.reserve(len(rows))
        group, one, first = c_void_p(address_of(parameters.group)), c_size_t(1), parameters.first_offset
        return [(self._pass, 1, group, one, c_void_p(first + 4 * row)) for row in range(len(rows))]

    def run(self, compute_pass: Handle, prepared: Prepared, params: Sequence[bytes]) -> None:
        if prepared.generation != self._parameters.generation:
            self._renew(prepared)
        pipelines, groups, places, grids = prepared.arguments
        self._parameters.fill(params)
        self._pass.value = compute_pass
        set_params = self._set_immediates if isinstance(self._parameters, _Immediates) else self._set_group
        deque(
            zip(
                starmap(self._set_pipeline, pipelines),
                starmap(self._set_group, groups),
                starmap(set_params, places),
                starmap(self._dispatch, grids),
                strict=True,
            ),
            0,
        )
