"""Types of tensors from before there were dtypes, settings of a process, and modules on one device."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad.torch as torch
from webgrad.torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


def test_typed_tensors_are_made_of_sizes_and_of_values() -> None:
    assert torch.FloatTensor(2, 3).shape == (2, 3)
    assert torch.FloatTensor(np.int64(3)).shape == (3,)
    assert torch.LongTensor([2**40 + 1]).tolist() == [2**40 + 1]
    assert torch.ByteTensor([1, 255]).dtype is torch.uint8
    assert torch.DoubleTensor(np.array([0.1])).tolist() == [0.1]
    assert torch.BoolTensor([True, False]).tolist() == [True, False]
    assert torch.FloatTensor().shape == (0,)
    assert torch.Tensor(torch.Size([2])).shape == (2,)


def test_a_typed_tensor_is_an_instance_of_its_type() -> None:
    assert isinstance(torch.zeros(2), torch.FloatTensor)
    assert not isinstance(torch.zeros(2), torch.LongTensor)
    assert not isinstance(torch.zeros(2), torch.cuda.FloatTensor)
    assert torch.zeros(2).type(torch.LongTensor).dtype is torch.int64
    assert torch.zeros(2).type("torch.DoubleTensor").dtype is torch.float64
    assert repr(torch.cuda.HalfTensor) == "<class 'torch.cuda.HalfTensor'>"


def test_tensors_are_made_of_the_default_float() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.Tensor([0.1]).tolist() == [0.1]
    finally:
        torch.set_default_dtype(torch.float32)


def test_devices_say_what_they_are() -> None:
    device = torch.zeros(1).device
    assert (device.type, device.index, str(device)) == ("cpu", None, "cpu")
    assert torch.accelerator.current_accelerator() is None or torch.accelerator.is_available()


def test_settings_of_a_process_are_taken() -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision(before)
    with pytest.raises(RuntimeError, match="is no precision"):
        torch.set_float32_matmul_precision("exact")
    with pytest.raises(RuntimeError, match="positive number"):
        torch.set_num_threads(0)
    assert torch.get_num_threads() >= 1
    with np.printoptions():
        torch.set_printoptions(precision=2)
        assert np.get_printoptions()["precision"] == 2


def test_a_module_on_one_device_has_torchs_names() -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    assert [name for name, _ in model.named_parameters()] == ["module.weight", "module.bias"]
    x = torch.ones(3, 2)
    with model.no_sync():
        np.testing.assert_array_equal(model(x).detach(), model.module(x).detach())
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert torch.nn.parallel.data_parallel(model.module, x).shape == (3, 1)


def test_many_tensors_are_one_and_back() -> None:
    parts = [torch.ones(2, 2), torch.zeros(3)]
    flat = _flatten_dense_tensors(parts)
    assert flat.tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert [each.shape for each in _unflatten_dense_tensors(flat, parts)] == [(2, 2), (3,)]


def test_switches_of_backends_are_modules_that_can_be_set() -> None:
    import webgrad.torch.imports as imports

    imports.install()
    try:
        import torch.backends.cudnn as cudnn

        assert cudnn is torch.backends.cudnn
        assert cudnn.benchmark is False
    finally:
        imports.uninstall()


def test_a_range_is_an_index() -> None:
    x = torch.arange(6).view(2, 3)
    assert x[range(2), [0, 1]].tolist() == [0, 4]
    x[range(2), torch.tensor([1, 2])] = 9
    assert x.tolist() == [[0, 9, 2], [3, 4, 9]]
    assert x[range(0)].shape == (0, 3)


def test_dtypes_are_promoted_and_cast_as_torch_does() -> None:
    assert torch.promote_types(torch.int64, torch.float16) is torch.float16
    assert torch.promote_types(torch.uint8, torch.int8) is torch.int16
    assert torch.can_cast(torch.float64, torch.float16)
    assert torch.can_cast(torch.bool, torch.uint8)
    assert not torch.can_cast(torch.float32, torch.int64)
    assert not torch.can_cast(torch.int8, torch.bool)


def test_pieces_are_asked_for_by_either_name() -> None:
    x = torch.arange(4)
    assert [each.tolist() for each in x.split(split_size=[1, 3])] == [[0], [1, 2, 3]]
    assert [each.tolist() for each in torch.split(x, split_size_or_sections=3)] == [[0, 1, 2], [3]]
    with pytest.raises(TypeError, match="needs split_size_or_sections"):
        x.split()


def test_a_table_says_whether_sparse_gradients_were_asked_for() -> None:
    assert torch.nn.Embedding(3, 2).sparse is False
    assert torch.nn.Embedding(3, 2, sparse=True).sparse is True


def test_channels_of_a_matrix_are_dropped_with_a_warning() -> None:
    x = torch.ones(20, 50)
    with pytest.warns(UserWarning, match="dropout2d"):
        dropped = torch.nn.functional.dropout2d(x, 0.5)
    assert set(dropped.flatten().tolist()) == {0.0, 2.0}


def test_bytes_are_masks() -> None:
    x = torch.arange(4)
    mask = torch.tensor([1, 0, 2, 0], dtype=torch.uint8)
    assert x[mask].tolist() == [0, 2]
    x.view(2, 2)[:, torch.tensor([0, 1]).byte()] = 7
    assert x.tolist() == [0, 7, 2, 7]


def test_a_device_is_no_other_word() -> None:
    assert torch.device("cpu") != "auto"
    assert torch.device("cpu") == "cpu"


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([np.float64(3)], torch.float64),
        ([np.float32(3), 1.0], torch.float32),
        ([np.int32(1), 2], torch.int64),
        ([np.array([1.0]), [2]], torch.float64),
        ([True, np.float16(1)], torch.float16),
        ([torch.tensor(1), 2.5], torch.float32),
        ([[]], torch.float32),
    ],
)
def test_lists_have_the_dtype_that_all_in_them_are_promoted_to(values: list[object], dtype: object) -> None:
    assert torch.tensor(values).dtype is dtype


def test_tensors_of_one_element_are_numbers_in_lists() -> None:
    assert torch.tensor([[torch.tensor([[2.0]])], [torch.tensor(3.0)]]).tolist() == [[2.0], [3.0]]
    with pytest.raises(ValueError, match="only one element tensors"):
        torch.tensor([torch.ones(2)])


def test_layers_are_made_of_the_default_float() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        model = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 1), torch.nn.BatchNorm1d(3), torch.nn.LSTM(4, 2))
        table = torch.nn.Embedding(3, 2)
        assert torch.nn.Linear(2, 2, dtype=torch.float32).weight.dtype is torch.float32
        assert torch.nn.Linear(2, 2, True, None, torch.float16).weight.dtype is torch.float16
    finally:
        torch.set_default_dtype(torch.float32)
    tensors = [*model.parameters(), *table.parameters(), model[1].running_mean]
    assert {each.dtype for each in tensors} == {torch.float64}
    assert torch.nn.Linear(2, 2).weight.dtype is torch.float32
