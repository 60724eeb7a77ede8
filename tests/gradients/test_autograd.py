"""Gradients as a user asks for them: slots, hooks, modes, in place, leaving and coming back."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.errors import GradientError
from webgrad.gradients.history import grad_mode_until_closed


def parameter(values: Any, **more: Any) -> Any:
    """A tensor that asks for a gradient."""
    return wg.asarray(values, **more).requires_grad_()


# Who asks


def test_a_tensor_asks_for_a_gradient_or_not() -> None:
    x = wg.asarray([1.0, 2.0])
    assert not x.requires_grad
    assert x.grad is None
    assert x.is_leaf
    assert x.requires_grad_() is x
    y = x * 2
    assert y.requires_grad
    assert not y.is_leaf
    x.requires_grad = False
    assert not (x * 2).requires_grad


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_only_floats_have_gradients(dtype: str) -> None:
    with pytest.raises(GradientError, match=f"not {dtype}.*astype"):
        wg.zeros(2, dtype=dtype).requires_grad_()


def test_what_was_computed_cannot_stop_asking() -> None:
    with pytest.raises(GradientError, match=r"detach\(\)"):
        (parameter([1.0]) * 2).requires_grad = False


def test_results_of_other_kinds_do_not_require_gradients() -> None:
    x = parameter([1.0, 3.0])
    for result in (
        x > 2,
        x.argmax(),
        x.argsort(),
        x.astype(wg.int32),
        wg.isnan(x),
        wg.ones_like(x),
        x.detach(),
    ):
        assert not result.requires_grad


def test_asking_marks_one_tensor_and_not_those_of_the_same_value() -> None:
    x = wg.asarray([1.0])
    y = x.reshape(1)
    z = copy.copy(x)
    x.requires_grad_()
    assert not y.requires_grad
    assert not z.requires_grad


# Where gradients are put


def test_gradients_add_up_over_uses_and_calls() -> None:
    x = parameter([1.0, 2.0])
    (x * x + 3 * x + x).sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]
    (x * 10).sum().backward()
    assert x.grad.tolist() == [16.0, 18.0]
    x.grad = None
    assert not isinstance(x.grad, wg.Tensor)
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_every_tensor_has_a_gradient_of_its_own() -> None:
    """a + b has one gradient for both; changing it in place, as clipping does, changes one."""
    a, b = parameter([1.0]), parameter([1.0])
    y = a + b
    y.retain_grad()
    seed = wg.asarray([2.0])
    y.backward(seed)
    a.grad *= 3
    y.grad *= 5
    assert (a.grad.item(), b.grad.item(), y.grad.item(), seed.item()) == (6.0, 2.0, 10.0, 2.0)
    first, second = wg.grad(lambda a, b: (a + b).sum(), (0, 1))(a, b)
    first *= 3
    assert second.item() == 1.0


def test_a_hook_that_changes_its_gradient_in_place_changes_no_other() -> None:
    a, b = parameter([1.0]), parameter([1.0])

    def doubled(gradient: Any) -> Any:
        gradient *= 2
        return gradient

    a.register_hook(doubled)
    (a + b).sum().backward()
    assert (a.grad.item(), b.grad.item()) == (2.0, 1.0)


def test_a_gradient_can_be_set_if_it_fits() -> None:
    x = parameter([1.0, 2.0])
    x.grad = wg.asarray([5.0, 6.0])
    x.sum().backward()
    assert x.grad.tolist() == [6.0, 7.0]
    x.grad = np.array([1.0, 1.0])
    assert x.grad.dtype is wg.float32
    with pytest.raises(GradientError, match=r"shape \(3,\) for a tensor of shape \(2,\)"):
        x.grad = wg.zeros(3)
    with pytest.raises(GradientError, match="requires_grad_"):
        wg.zeros(2).grad = wg.zeros(2)
    wg.zeros(2).grad = None


def test_what_does_not_depend_on_it_leaves_no_gradient_and_zeros_where_it_is_constant() -> None:
    x, other = parameter([1.0, 2.0]), parameter([3.0])
    (wg.floor(x) + x.detach() * 3).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert other.grad is None


def test_backward_of_several_elements_wants_to_know_how_much_each_counts() -> None:
    x = parameter([1.0, 2.0])
    with pytest.raises(GradientError, match=r"shape \(2,\).*gradient="):
        (x * x).backward()
    (x * x).backward(gradient=wg.asarray([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 40.0]
    (x * x).backward([1.0, 0.0])
    assert x.grad.tolist() == [4.0, 40.0]
    with pytest.raises(GradientError, match="shape"):
        (x * x).backward(gradient=wg.ones(3))


def test_backward_of_what_no_gradient_goes_through() -> None:
    with pytest.raises(GradientError, match="requires_grad_"):
        wg.ones(()).backward()
    with wg.no_grad():
        y = parameter([1.0]) * 2
    with pytest.raises(GradientError, match="no_grad"):
        y.backward()


def test_backward_of_the_tensor_itself() -> None:
    x = parameter(3.0)
    x.backward()
    assert x.grad.item() == 1.0


def test_backward_twice_needs_what_was_kept() -> None:
    x = parameter([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(GradientError, match="retain_graph=True"):
        y.backward()
    with pytest.raises(GradientError, match="compute the value again"):
        (y * 2).backward()


def test_a_failed_backward_leaves_gradients_as_they_were() -> None:
    x = parameter([1.0])
    shared = x * x
    shared.sum().backward()
    with pytest.raises(GradientError):
        (shared + x * 5).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_create_graph_gives_gradients_that_have_gradients() -> None:
    x = parameter([1.0, 2.0])
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    x.grad = None
    first.sum().backward()
    assert (first.tolist(), x.grad.tolist()) == ([3.0, 12.0], [6.0, 12.0])
    x.grad = None
    (x**3).sum().backward()
    assert not x.grad.requires_grad


def test_values_may_be_read_before_backward() -> None:
    x, w = parameter([[1.0, 2.0]]), parameter([[0.5], [0.25]])
    hidden = wg.relu(x @ w)
    assert hidden.item() == 1.0
    loss = (hidden * hidden).sum()
    assert loss.item() == 1.0
    loss.backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([[1.0, 0.5]], [[2.0], [4.0]])


def test_wg_eval_and_a_full_backlog_do_not_disturb() -> None:
    x = parameter([1.0])
    y = x
    for step in range(1200):
        y = y * 1.0 + 0.001
        if step == 500:
            wg.eval()
    y.backward()
    assert x.grad.item() == 1.0


# retain_grad and hooks


def test_retain_grad_keeps_what_goes_through() -> None:
    x = parameter([1.0, 2.0])
    y = x * 3
    assert not isinstance(y.grad, wg.Tensor)
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [6.0, 12.0]
    with pytest.raises(GradientError, match="retain_grad"):
        wg.ones(1).retain_grad()
    x.retain_grad()  # has a place already


def test_hooks_see_and_change_gradients_in_their_order() -> None:
    x = parameter([1.0, 2.0])
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(("first", g.tolist())))
    second = x.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(("third", g.tolist())))
    (x * x).sum().backward()
    assert seen == [("first", [2.0, 4.0]), ("third", [20.0, 40.0])]
    assert x.grad.tolist() == [20.0, 40.0]
    second.remove()
    second.remove()
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_hook_sees_the_whole_gradient_once() -> None:
    x = parameter([1.0])
    y = x * 2
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: -g)
    (y * 3 + y.exp() * 0 + y).sum().backward()
    assert seen == [[4.0]]
    assert x.grad.tolist() == [-8.0]


def test_hooks_that_give_what_does_not_fit() -> None:
    x = parameter([1.0])
    x.register_hook(lambda g: wg.ones(3))
    with pytest.raises(GradientError, match="hook"):
        x.sum().backward()
    with pytest.raises(GradientError, match="register_hook"):
        wg.ones(1).register_hook(print)


# Modes


def test_no_grad_keeps_no_history_and_enable_grad_does_again() -> None:
    x = parameter([1.0])
    with wg.no_grad():
        assert not wg.is_grad_enabled()
        assert not (x * 2).requires_grad
        with wg.enable_grad():
            assert (x * 2).requires_grad
            with wg.no_grad():
                assert not (x * 2).requires_grad
        assert not wg.is_grad_enabled()
    assert wg.is_grad_enabled()


def test_modes_are_decorators_and_end_with_errors() -> None:
    x = parameter([1.0])

    @wg.no_grad()
    def evaluated(depth: int) -> Any:
        """Its docstring."""
        assert not wg.is_grad_enabled()
        return evaluated(depth - 1) if depth else x * 2

    assert not evaluated(3).requires_grad
    assert evaluated.__doc__ == "Its docstring."
    with pytest.raises(ZeroDivisionError), wg.no_grad():
        _ = 1 / 0
    assert wg.is_grad_enabled()
    again = wg.no_grad()
    with again, again:
        assert not wg.is_grad_enabled()
    assert wg.is_grad_enabled()


def test_no_grad_is_a_threads_own() -> None:
    x, found = parameter([1.0]), []
    with wg.no_grad():
        thread = threading.Thread(target=lambda: found.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert found == [True]


# What gives the tensor itself

VIEWS = [lambda x: x.reshape(2), lambda x: x[:], lambda x: x.T, lambda x: wg.broadcast_to(x, (2,))]
COPIES = [
    lambda x: wg.concat([x]),
    lambda x: wg.pad(x, 0),
    lambda x: x.astype(wg.float32),
    lambda x: x.clone(),
]
SAME = [*VIEWS, *COPIES]


@pytest.mark.parametrize("same", SAME)
def test_results_of_no_grad_require_none_though_they_are_the_tensor_itself(same: Any) -> None:
    x = parameter([1.0, 2.0])
    with wg.no_grad():
        target = same(x)
    assert not target.requires_grad
    (x * target).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("same", VIEWS)
def test_a_view_of_a_leaf_is_none_and_is_changed_with_it(same: Any) -> None:
    x = parameter([1.0, 2.0])
    y = same(x)
    assert y.requires_grad
    assert not y.is_leaf
    with pytest.raises(GradientError, match="through a view"):
        y *= x
    with wg.no_grad():
        y *= 3.0
    assert (x.tolist(), x.is_leaf) == ([3.0, 6.0], True)


@pytest.mark.parametrize("same", COPIES)
def test_a_copy_of_a_leaf_is_none_and_may_be_changed(same: Any) -> None:
    x = parameter([1.0, 2.0])
    y = same(x)
    assert y.requires_grad
    assert not y.is_leaf
    y *= x
    (y + x).sum().backward()
    assert (x.tolist(), x.grad.tolist()) == ([1.0, 2.0], [3.0, 5.0])
    assert x.is_leaf


# In place


def test_a_leaf_is_changed_under_no_grad_only() -> None:
    x = parameter([1.0, 2.0])
    x.sum().backward()
    with pytest.raises(GradientError, match="no_grad"):
        x += 1.0
    with pytest.raises(GradientError, match="no_grad"):
        x[0] = 5.0
    with wg.no_grad():
        x -= 0.5 * x.grad
        x[1] = 7.0
    assert x.requires_grad
    assert x.is_leaf
    assert (x.tolist(), x.grad.tolist()) == ([0.5, 7.0], [1.0, 1.0])
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [1.0, 14.0]


def test_two_leaves_given_one_value_stay_two() -> None:
    a, b, value = parameter([1.0]), parameter([2.0]), wg.asarray([3.0])
    with wg.no_grad():
        a[...] = value
        b[...] = value
    (a * 2 + b * 5).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist(), value.requires_grad) == ([2.0], [5.0], False)


def test_an_old_graph_has_the_old_value_of_a_leaf_that_was_changed() -> None:
    x = parameter([3.0])
    y = (x * x).sum()
    with wg.no_grad():
        x += 1.0
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_computed_values_are_changed_in_place_and_differentiated_rightly() -> None:
    x, y = parameter([1.0, 2.0, 3.0]), parameter([10.0])
    z = x * 2
    before = z * z
    z[1:2] = y
    z *= 3
    (before.sum() + z.sum()).backward()
    assert x.grad.tolist() == [8 + 6, 16.0, 24 + 6]
    assert y.grad.tolist() == [3.0]


def test_a_plain_tensor_that_is_given_a_computed_value_has_its_gradient() -> None:
    rows, x = wg.zeros((2, 2)), parameter([1.0, 2.0])
    rows[0] = x * x
    rows += x
    (rows * rows).sum().backward()
    assert x.grad.tolist() == [2 * 2 * 3 + 2 * 1, 2 * 6 * 5 + 2 * 2]


# Elsewhere


def test_detach_shares_the_value_and_no_gradients() -> None:
    x = parameter([1.0, 2.0])
    y = (x * x).detach()
    assert not y.requires_grad
    (x * y).sum().backward()
    assert x.grad.tolist() == [1.0, 4.0]
    plain = x.detach()
    plain[0] = 9.0
    assert (x.tolist(), x.requires_grad, x.grad.tolist()) == ([9.0, 2.0], True, [1.0, 4.0])


def test_values_leave_as_numpy_and_dlpack() -> None:
    x = parameter([1.0, 2.0])
    for each in (x, x * 1):
        assert np.asarray(each).tolist() == [1.0, 2.0]
        assert np.from_dlpack(each).tolist() == [1.0, 2.0]
        assert each.numpy().tolist() == [1.0, 2.0]
    assert float(x.sum()) == 3.0


def test_copies_ask_for_gradients_of_their_own() -> None:
    x = parameter([1.0, 2.0])
    (x * x).sum().backward()
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.requires_grad
        assert other.is_leaf
        other.grad = None
        (other * 3).sum().backward()
        assert other.grad.tolist() == [3.0, 3.0]
        with wg.no_grad():
            other += 1.0
    assert (x.tolist(), x.grad.tolist()) == ([1.0, 2.0], [2.0, 4.0])
    other = copy.deepcopy(x)
    x.grad *= 2
    assert other.grad.tolist() == [2.0, 4.0]
    assert not pickle.loads(pickle.dumps(wg.ones(2))).requires_grad


def test_a_clone_is_part_of_the_graph() -> None:
    x = parameter([1.0])
    y = x.clone()
    y *= 2
    y.sum().backward()
    assert (x.tolist(), x.grad.tolist()) == ([1.0], [2.0])


def test_repr_says_that_gradients_are_wanted() -> None:
    x = parameter([1.0])
    wanted = "tensor([1.], dtype=float32, device=cpu, requires_grad=True)"
    assert repr(wg.asarray(x, device="cpu") if x.device.name != "cpu" else x) == wanted
    assert "requires_grad" not in repr(x.detach())


def test_astype_goes_through() -> None:
    x = parameter([1.0, 2.0])
    (x.astype(wg.float16) * 2).astype(wg.float64).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (wg.float32, [2.0, 2.0])


def test_numbers_and_their_gradients() -> None:
    """A tensor of one number that the host knows is a leaf like any other."""
    x, y = parameter(wg.full((), 2.0)), parameter(3.0)
    (x * x * y).backward()
    assert (x.grad.item(), y.grad.item()) == (12.0, 4.0)


@pytest.mark.gpu
def test_a_gradient_goes_back_to_the_device_it_came_from() -> None:
    x = parameter([1.0, 2.0], device="cpu")
    there = (x * 3).to_device("webgpu")
    assert there.requires_grad
    back = (there * there).to_device("cpu")
    (back * x).sum().backward()
    assert x.grad.device is x.device
    assert x.grad.tolist() == [27.0, 108.0]
    with wg.no_grad():
        assert not x.to_device("webgpu").requires_grad
    second = wg.grad(wg.grad(lambda x: (x.to_device("webgpu") ** 3).sum().to_device("cpu")))
    assert second(wg.asarray(2.0, device="cpu")).item() == 12.0


@pytest.mark.gpu
def test_training_on_a_gpu() -> None:
    generator = np.random.default_rng(0)
    x, slope = generator.normal(size=(32, 3)), np.array([[1.0], [-2.0], [0.5]])
    inputs = wg.asarray(x, dtype=wg.float32, device="webgpu")
    targets = wg.asarray(x @ slope, dtype=wg.float32, device="webgpu")
    w = parameter(np.zeros((3, 1), np.float32), device="webgpu")
    for _ in range(60):
        ((inputs @ w - targets) ** 2).mean().backward()
        with wg.no_grad():
            w -= 0.2 * w.grad
        w.grad = None
    np.testing.assert_allclose(w.numpy(), slope, atol=1e-3)


@pytest.mark.parametrize("mode", [wg.no_grad, lambda: wg.set_grad_enabled(False)])
def test_a_mode_that_is_left_by_ctrl_c_is_set_back(mode: Any) -> None:
    entered = mode()
    entered.__enter__()
    assert not wg.is_grad_enabled()
    del entered  # Ctrl-C may come at the very beginning of __exit__: then it did nothing
    assert wg.is_grad_enabled()


def test_a_mode_that_ends_late_changes_nothing() -> None:
    """A signal may strike before an inner mode ends; its traceback keeps that mode until later."""
    outer, inner = grad_mode_until_closed(False), grad_mode_until_closed(False)
    next(outer)
    next(inner)
    outer.close()
    assert wg.is_grad_enabled()
    inner.close()
    assert wg.is_grad_enabled()
    with wg.no_grad():
        assert not wg.is_grad_enabled()
    assert wg.is_grad_enabled()
