"""Transfers: any length there and back, what cannot be uploaded, large uploads, reads that do not block."""

from __future__ import annotations

import asyncio
import mmap
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.helpers import Bench, floats
from webgrad.errors import BufferError, DTypeError
from webgrad.runtime import contents
from webgrad.runtime.context import UPLOADS_PER_SUBMIT
from webgrad.runtime.native import native_object_counts
from webgrad.runtime.transfer import as_bytes, is_constant, write_bytes

# Host memory


@pytest.mark.parametrize(
    "data",
    [b"\x01\x02\x03", bytearray(b"\x01\x02\x03"), memoryview(b"\x01\x02\x03"), np.array([1, 2, 3], np.uint8)],
    ids=["bytes", "bytearray", "memoryview", "array"],
)
def test_anything_with_the_buffer_protocol_has_bytes(data: object) -> None:
    assert as_bytes(data).tolist() == [1, 2, 3]


def test_a_contiguous_array_is_not_copied() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.shares_memory(as_bytes(array), array)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.int16).reshape(4, 6)[:, ::2],
        np.arange(24, dtype=np.int16).reshape(4, 6).T,
        np.arange(24, dtype=np.int16)[::-1],
        np.broadcast_to(np.int16(7), (3, 4)),
        np.array(5.0),
        np.zeros((0, 3)),
        np.array([True, False, True]),
        np.array([1.5, -2], ml_dtypes.bfloat16),
        np.array([(1, 2.5)], [("a", "i4"), ("b", "f4")]),
    ],
    ids=["strided", "transposed", "reversed", "broadcast", "scalar", "empty", "bool", "bfloat16", "record"],
)
def test_an_array_is_laid_out_as_numpy_would_write_it(array: np.ndarray[Any, Any]) -> None:
    assert as_bytes(array).tobytes() == array.tobytes()


def test_a_foreign_byte_order_is_refused() -> None:
    foreign = np.arange(3, dtype=np.dtype(np.float32).newbyteorder("S"))
    with pytest.raises(
        DTypeError, match=r"foreign byte order.*array\.astype\(array\.dtype\.newbyteorder\('='\)\)"
    ):
        as_bytes(foreign)
    assert as_bytes(foreign.astype(foreign.dtype.newbyteorder("="))).view(np.float32).tolist() == [0, 1, 2]


def test_python_objects_are_refused() -> None:
    with pytest.raises(DTypeError, match="dtype object: its elements are Python objects"):
        as_bytes(np.array([1, "a", None], object))


@pytest.mark.parametrize("data", [3, 1.5, "text", [1, 2], None, {1: 2}, memoryview(b"abcd")[::2]])
def test_what_has_no_bytes_is_refused(data: object) -> None:
    with pytest.raises(DTypeError, match=f"cannot upload a {type(data).__name__}"):
        as_bytes(data)


@pytest.mark.property
@given(st.binary(max_size=40), st.integers(0, 10))
def test_bytes_are_written_in_whole_words(data: bytes, start: int) -> None:
    memory = bytearray(b"\xff" * 60)

    def write(offset: int, words: Any) -> None:
        assert len(words) % 4 == 0
        memory[offset : offset + len(words)] = bytes(words)

    write_bytes(write, as_bytes(data), start)
    end = start + len(data)
    assert memory[start:end] == data
    assert memory[end : start + -(-len(data) // 4) * 4] == bytes(-len(data) % 4)
    assert set(memory[:start] + memory[start + -(-len(data) // 4) * 4 :]) <= {0xFF}


def test_what_can_be_changed_is_told_from_what_cannot(tmp_path: Path) -> None:
    array = np.arange(4)
    assert not is_constant(array)
    window = array[:2]
    window.flags.writeable = False
    assert not is_constant(window)  # the array under it can be written to
    frozen = np.arange(4)
    frozen.flags.writeable = False
    assert is_constant(frozen)
    assert is_constant(frozen[1:])
    assert is_constant(np.frombuffer(b"abcd", np.uint8))
    assert not is_constant(np.frombuffer(memoryview(bytearray(4)), np.uint8))
    path = tmp_path / "weights"
    path.write_bytes(b"abcd")
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    assert is_constant(np.frombuffer(mapped, np.uint8))


# Through a device


@pytest.mark.gpu
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 7, 255, 256, 257, 4095, 4099, 65_537])
def test_any_length_comes_back(shared: Bench, length: int) -> None:
    data = np.random.default_rng(length).integers(0, 256, length, np.uint8)
    back = shared.device.read(shared.device.upload(data))
    assert back.dtype == np.uint8
    assert back.tobytes() == data.tobytes()


@pytest.mark.gpu
@pytest.mark.property
@given(data=st.binary(max_size=2000))
def test_bytes_come_back(shared: Bench, data: bytes) -> None:
    assert shared.device.read(shared.device.upload(data)).tobytes() == data


@pytest.mark.gpu
def test_a_tail_is_padded_with_zeros_not_with_what_was_there_before(alone: Bench) -> None:
    alone.device.upload(b"\xff" * 256)
    alone.device.flush()
    buffer = alone.device.upload(b"\x01\x02\x03\x04\x05")
    assert alone.stats["buffers_created"] == 1
    out = alone.device.allocate(8)
    source = """
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(1) fn copy() { y[0] = x[0]; y[1] = x[1]; }
    """
    alone.device.dispatch(alone.pipeline(source, "copy"), [buffer, out])
    assert alone.device.read(out).view(np.uint32).tolist() == [0x04030201, 0x05]


@pytest.mark.gpu
def test_read_only_and_strided_arrays_are_uploaded(shared: Bench) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    array.flags.writeable = False
    assert shared.numbers(shared.device.upload(array)).tolist() == list(range(12))
    assert shared.numbers(shared.device.upload(array.T)).tolist() == array.T.ravel().tolist()


@pytest.mark.gpu
def test_a_result_may_be_changed_by_its_reader(shared: Bench) -> None:
    buffer = shared.upload(floats(1, 2))
    result = shared.numbers(buffer)
    result[0] = 9
    assert shared.numbers(buffer).tolist() == [1, 2]


@pytest.mark.gpu
def test_an_upload_is_a_copy(shared: Bench) -> None:
    array = floats(1, 2)
    buffer = shared.device.upload(array, keep=True)
    array[:] = 0
    assert shared.numbers(buffer).tolist() == [1, 2]


@pytest.mark.gpu
@pytest.mark.parametrize("length", [0, 7, 9, 400])
def test_a_write_of_another_size_is_refused(shared: Bench, length: int) -> None:
    buffer = shared.device.upload(bytes(range(8)), "eight")
    with pytest.raises(BufferError, match=rf"'eight' \(8 bytes\) cannot take {length} bytes"):
        shared.queue.write(buffer, bytes(length))
    assert shared.device.read(buffer).tolist() == list(range(8))


@pytest.mark.gpu
def test_uploads_of_many_megabytes_are_submitted_on_the_way(alone: Bench) -> None:
    data = np.random.default_rng(0).integers(0, 256, 20_000_003, np.uint8)
    assert data.nbytes > UPLOADS_PER_SUBMIT
    buffer = alone.device.upload(data)
    assert alone.stats["submissions"] == 1
    assert alone.device.read(buffer).tobytes() == data.tobytes()
    assert alone.stats["bytes_uploaded"] == alone.stats["bytes_downloaded"] == data.nbytes


@pytest.mark.gpu
def test_many_small_uploads_are_submitted_on_the_way(alone: Bench) -> None:
    megabyte = np.zeros(1 << 18)
    buffers = [alone.upload(megabyte + number) for number in range(20)]
    assert alone.stats["submissions"] == 1
    assert [alone.numbers(buffer)[-1] for buffer in buffers] == list(range(20))


@pytest.mark.gpu
def test_a_large_upload_does_not_overtake_what_is_pending(alone: Bench) -> None:
    x = alone.upload(np.full(5_000_000, 1))
    y = alone.device.allocate(4)
    alone.scale_into(x, y, 1)
    alone.queue.write(x, np.full(5_000_000, 2, np.float32))
    z = alone.device.allocate(4)
    alone.scale_into(x, z, 1)
    assert (alone.numbers(y).tolist(), alone.numbers(z).tolist()) == ([1], [2])


# Host copies


@pytest.mark.gpu
def test_a_host_copy_is_kept_only_when_asked_for(shared: Bench) -> None:
    assert shared.upload(floats(1)).virtual.host is None
    kept = shared.upload(floats(1), keep=True)
    assert kept.virtual.host.view(np.float32).tolist() == [1]


@pytest.mark.gpu
def test_a_host_copy_shares_memory_only_with_what_cannot_change(shared: Bench) -> None:
    array = floats(1, 2)
    kept = shared.device.upload(array, keep=True)
    array[0] = 9
    assert kept.virtual.host.view(np.float32).tolist() == [1, 2]
    frozen = floats(3, 4)
    frozen.flags.writeable = False
    assert np.shares_memory(shared.device.upload(frozen, keep=True).virtual.host, frozen)


@pytest.mark.gpu
def test_a_write_replaces_the_host_copy(shared: Bench) -> None:
    kept = shared.upload(floats(1), keep=True)
    shared.queue.write(kept, floats(2), keep=True)
    assert kept.virtual.host.view(np.float32).tolist() == [2]
    shared.queue.write(kept, floats(3))
    assert kept.virtual.host is None


@pytest.mark.gpu
@pytest.mark.parametrize("through_a_view", [False, True], ids=["whole", "view"])
def test_a_kernel_that_writes_ends_the_host_copy(alone: Bench, through_a_view: bool) -> None:
    x = alone.upload(floats(5))
    for _ in range(3):  # resolved, then replayed
        kept = alone.upload(floats(1), keep=True)
        untouched = alone.upload(floats(2), keep=True)
        target = alone.queue.view(kept, 0, 4) if through_a_view else kept
        alone.scale_into(x, target, 2)
        alone.device.flush()
        assert kept.virtual.host is None
        assert untouched.virtual.host is not None
        assert alone.numbers(kept).tolist() == [10]


@pytest.mark.gpu
def test_a_read_leaves_a_host_copy_where_asked_to(alone: Bench) -> None:
    x = alone.scale(alone.upload(floats(1, 2)), 3)
    assert alone.device.read(x).flags.writeable
    assert x.virtual.host is None
    trips = alone.stats["host_round_trips"]
    for _ in range(3):
        found = alone.device.read(x, keep=True)
        assert found.view(np.float32).tolist() == [3, 6]
        assert not found.flags.writeable
    assert alone.stats["host_round_trips"] == trips + 1


@pytest.mark.gpu
@pytest.mark.parametrize("how", ["a write", "a kernel", "a pending kernel"])
def test_what_changes_during_a_read_leaves_no_old_host_copy(
    alone: Bench, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    x, kept = alone.upload(floats(5)), alone.upload(floats(1))
    collected = contents.collected

    def overtaken(*arguments: Any) -> Any:
        """As if another thread had come while this one waited."""
        result = collected(*arguments)
        if how == "a write":
            alone.queue.write(kept, floats(10))
        else:
            alone.scale_into(x, kept, 2)
        if how == "a kernel":
            alone.device.flush()
        return result

    monkeypatch.setattr(contents, "collected", overtaken)
    assert alone.device.read(kept, keep=True).view(np.float32).tolist() == [1]
    monkeypatch.undo()
    assert alone.device.read(kept, keep=True).view(np.float32).tolist() == [10]


@pytest.mark.gpu
def test_a_pending_write_is_seen_in_spite_of_a_host_copy(alone: Bench) -> None:
    x, kept = alone.upload(floats(5)), alone.upload(floats(1))
    assert alone.device.read(kept, keep=True).view(np.float32).tolist() == [1]
    alone.scale_into(x, kept, 2)
    assert alone.device.read(kept, keep=True).view(np.float32).tolist() == [10]
    assert alone.device.read(kept, keep=True).view(np.float32).tolist() == [10]


# Reads that do not block


@pytest.mark.gpu
def test_an_async_read(encoded: Bench) -> None:
    y = encoded.scale(encoded.upload(floats(1, 2)), 3)
    assert asyncio.run(encoded.device.read_async(y)).view(np.float32).tolist() == [3, 6]


@pytest.mark.gpu
def test_an_async_read_of_nothing(shared: Bench) -> None:
    assert asyncio.run(shared.device.read_async(shared.device.upload(b""))).size == 0


@pytest.mark.gpu
def test_other_tasks_run_during_an_async_read(shared: Bench) -> None:
    busy = shared.upload(floats(1))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    async def main() -> None:
        ticking = asyncio.create_task(tick())
        for doublings in range(8):  # on a busy machine a short wait may be over before a tick
            before = ticks
            shared.spin(busy, 2_000_000 << doublings)
            await shared.device.read_async(busy)
            if ticks > before + 3:
                break
        else:
            pytest.fail("no task ran meanwhile")
        ticking.cancel()

    asyncio.run(main())


@pytest.mark.gpu
def test_many_async_reads_at_once(shared: Bench) -> None:
    async def main() -> list[float]:
        buffers = [shared.scale(shared.upload(floats(number)), 2) for number in range(20)]
        results = await asyncio.gather(*(shared.device.read_async(buffer) for buffer in buffers))
        return [float(result.view(np.float32)[0]) for result in results]

    assert asyncio.run(main()) == [2.0 * number for number in range(20)]


@pytest.mark.gpu
def test_a_cancelled_async_read_gives_its_buffer_back(alone: Bench) -> None:
    busy = alone.upload(floats(1))
    alone.give_up_a_read(busy)
    alone.device.synchronize()
    for _ in range(2):
        alone.device.read(busy)
    assert alone.queue.context.staging.bytes_kept == 4096  # one buffer, which served all three


@pytest.mark.gpu
def test_read_back_buffers_are_kept_for_the_next_read(alone: Bench) -> None:
    x = alone.upload(np.zeros(5000))
    sizes = []
    for _ in range(4):
        alone.numbers(x)
        sizes.append(alone.queue.context.staging.bytes_kept)
    assert sizes == [32768] * 4


@pytest.mark.gpu
def test_a_closed_asynchronous_read_gives_its_buffer_back(alone: Bench) -> None:
    x = alone.upload(floats(1, 2, 3))
    target = alone.device.allocate(4)

    def leave_reads() -> int:
        for _ in range(6):
            alone.spin(target, 2_000_000)  # so that the bytes are not here at once
            read = alone.device.read_async(x)
            read.send(None)
            read.close()
        alone.device.synchronize()
        assert alone.numbers(x).tolist() == [1, 2, 3]
        assert not alone.queue.context.staging._abandoned
        return native_object_counts()["Buffer"]

    counts = [leave_reads() for _ in range(4)]
    assert counts[-1] - counts[0] <= 5  # how many are under way at once is the machine's to say
