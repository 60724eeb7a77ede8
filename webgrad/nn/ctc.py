"""Connectionist temporal classification (Graves et al., 2006): the loss of sequences without an alignment.

In: log-probabilities of classes at every time (T, N, C), targets, and how long both are. Out: one number for
each sequence, or their mean or sum. Everything is computed in logarithms: forwards over time in the loss,
backwards in its gradient, and neither is differentiated step by step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import webgrad as wg

from .checks import check_floats

__all__ = ["ctc_loss"]

Lengths = wg.Tensor | Sequence[int]


class _Paths(NamedTuple):
    """The targets of all sequences with blanks around every class: what a path goes through, one by one."""

    labels: wg.Tensor  # (N, 2 S + 1)
    jumps: wg.Tensor  # whether a path may come from two places before
    ends: wg.Tensor  # the places at which a path may end
    lengths: wg.Tensor  # (N,): how many times there are
    steps: int  # most of these


def ctc_loss(
    log_probs: wg.Tensor,
    targets: wg.Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> wg.Tensor:
    """-log of the probability that log_probs (T, N, C) give to all alignments of targets (N, S).

    Targets may be one after the other in one axis; `target_lengths` says where each ends. "mean" divides by
    the length of each target, then takes the mean. A target that is too long for its input has an infinite
    loss, or 0 with `zero_infinity`. Log-probabilities come from `log_softmax`; as in PyTorch the gradient is
    that of the scores before it.

    >>> log_probs = wg.log_softmax(wg.zeros((4, 1, 3)), axis=-1)
    >>> round(wg.nn.functional.ctc_loss(log_probs, wg.asarray([[1, 2]]), [4], [2]).item(), 4)
    0.8432
    """
    check_floats("ctc_loss", log_probs)
    if reduction not in ("none", "mean", "sum"):
        raise wg.ArgumentError(f'ctc_loss: reduction must be one of "none", "mean", "sum", not {reduction!r}')
    batched = log_probs.ndim == 3
    if log_probs.ndim not in (2, 3):
        raise wg.ShapeError(f"ctc_loss takes log-probabilities (T, N, C) or (T, C), not {log_probs.shape}")
    wide = log_probs.astype(log_probs.dtype.wide, copy=False)
    wide = wide if batched else wg.unsqueeze(wide, 1)
    times, samples, classes = wide.shape
    if not 0 <= blank < classes:
        raise wg.ArgumentError(f"ctc_loss: blank is one of {classes} classes, not {blank!r}")
    lengths = _lengths("input_lengths", input_lengths, samples)
    sizes = _lengths("target_lengths", target_lengths, samples)
    if max(lengths, default=0) > times:
        raise wg.ArgumentError(f"ctc_loss: input_lengths go to {max(lengths)}, and there are {times} times")
    paths = _paths(_rows(targets, sizes, log_probs), sizes, lengths, blank)
    loss = _loss(wide, paths)
    if zero_infinity:
        loss = wg.where(loss == math.inf, 0.0, loss)
    if reduction == "mean":
        loss = (loss / wg.asarray([float(max(each, 1)) for each in sizes], device=loss.device)).mean()
    elif reduction == "sum":
        loss = loss.sum()
    loss = loss.astype(log_probs.dtype, copy=False)
    return loss if batched or reduction != "none" else loss[0]


# Targets


def _lengths(name: str, given: Any, samples: int) -> list[int]:
    found = given.reshape((-1,)).tolist() if isinstance(given, wg.Tensor) else list(given)
    if len(found) != samples or any(each < 0 for each in found):
        raise wg.ArgumentError(f"ctc_loss: {name} is one length for each of {samples} sequences, not {found}")
    return [int(each) for each in found]


def _rows(targets: wg.Tensor, sizes: Sequence[int], like: wg.Tensor) -> wg.Tensor:
    """Targets as (N, S), on the device of the log-probabilities."""
    if targets.dtype.kind not in "iu":
        raise wg.DTypeError(f"ctc_loss takes targets of integers, classes, not of {targets.dtype.name}")
    targets, most = targets.astype(wg.int32, copy=False).to_device(like.device), max(sizes, default=0)
    if targets.ndim == 2 or (targets.ndim == 1 and like.ndim == 2):
        rows = targets.reshape((len(sizes), -1))
        if rows.shape[1] < most:
            raise wg.ShapeError(f"ctc_loss: target_lengths go to {most}, and the targets are {targets.shape}")
        return rows[:, :most]
    if targets.ndim != 1 or targets.shape[0] < sum(sizes):
        raise wg.ShapeError(
            f"ctc_loss: targets are (N, S), or the {sum(sizes)} of all sequences in one axis, not "
            f"{targets.shape}"
        )
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    last = max(targets.shape[0] - 1, 0)
    places = [[min(start + at, last) for at in range(most)] for start in starts]
    if not most:
        return wg.zeros((len(sizes), 0), dtype=wg.int32, device=like.device)
    return wg.take(targets, wg.asarray(places, device=like.device), axis=0)


def _paths(rows: wg.Tensor, sizes: Sequence[int], lengths: Sequence[int], blank: int) -> _Paths:
    samples, most = rows.shape
    device = rows.device
    blanks = wg.full((samples, most, 1), blank, dtype=rows.dtype, device=device)
    pairs = wg.concat([blanks, wg.unsqueeze(rows, -1)], axis=-1).reshape((samples, 2 * most))
    labels = wg.pad(pairs, ((0, 0), (0, 1)), constant_values=blank)
    before = wg.pad(labels, ((0, 0), (2, 0)), constant_values=-1)[:, : 2 * most + 1]
    places = wg.arange(2 * most + 1, device=device)
    last = wg.asarray([[2 * each] for each in sizes], device=device).reshape((samples, 1))
    ends = (places == last) | (places == last - 1)
    jumps = (labels != blank) & (labels != before) & (places >= 2)
    steps = wg.asarray(list(lengths), dtype=wg.int32, device=device)
    return _Paths(labels, jumps, ends, steps, max(lengths, default=0))


# The loss and its gradient


def _sum(first: wg.Tensor, *others: wg.Tensor) -> wg.Tensor:
    """log Σ exp, which is -inf where all are."""
    largest = first
    for each in others:
        largest = wg.maximum(largest, each)
    shift = wg.where(largest == -math.inf, 0.0, largest)
    total = wg.exp(first - shift)
    for each in others:
        total = total + wg.exp(each - shift)
    return wg.log(total) + shift


def _moved(x: wg.Tensor, by: int) -> wg.Tensor:
    """Every place's value from so many places before it (behind it, if negative)."""
    size = x.shape[1]
    padded = wg.pad(x, ((0, 0), (max(by, 0), max(-by, 0))), constant_values=-math.inf)
    return padded[:, :size] if by > 0 else padded[:, -by : size - by]


def _forwards(scores: wg.Tensor, paths: _Paths) -> list[wg.Tensor]:
    """For every time the log-probability of all beginnings that are at each place then."""
    places = wg.arange(scores.shape[2], device=scores.device)
    state = wg.where(places < 2, scores[0], -math.inf)
    states = [state]
    for time in range(1, paths.steps):
        jumped = wg.where(paths.jumps, _moved(state, 2), -math.inf)
        following = _sum(state, _moved(state, 1), jumped) + scores[time]
        state = wg.where(wg.unsqueeze(paths.lengths > time, 1), following, state)
        states.append(state)
    return states


def _backwards(scores: wg.Tensor, paths: _Paths) -> list[wg.Tensor]:
    """For every time the log-probability of all endings from each place."""
    state = wg.where(paths.ends, wg.zeros_like(scores[0]), -math.inf)
    states = [state]
    for time in range(paths.steps - 1, 0, -1):
        ahead = state + scores[time]
        jumped = _moved(wg.where(paths.jumps, ahead, -math.inf), -2)
        before = _sum(ahead, _moved(ahead, -1), jumped)
        state = wg.where(wg.unsqueeze(paths.lengths > time, 1), before, state)
        states.insert(0, state)
    return states


def _loss(log_probs: wg.Tensor, paths: _Paths) -> wg.Tensor:
    """The loss of every sequence."""
    times, samples, classes = log_probs.shape
    if not paths.steps:  # no time at all: only what has no target is possible
        return wg.where(
            paths.ends[:, 0], wg.zeros((samples,), log_probs.dtype, device=log_probs.device), math.inf
        )

    @wg.custom_gradient
    def loss_of(x: wg.Tensor) -> Any:
        index = wg.broadcast_to(wg.unsqueeze(paths.labels, 0), (times, *paths.labels.shape))
        scores = wg.take_along_axis(x, index, -1)
        states = _forwards(scores, paths)
        last = wg.where(paths.ends, states[-1], -math.inf)
        loss = -_total(last)
        loss = wg.where(paths.lengths > 0, loss, wg.where(paths.ends[:, 0], 0.0, math.inf))

        def back(g: wg.Tensor) -> wg.Tensor:
            both = wg.stack(states) + wg.stack(_backwards(scores, paths))
            possible = loss != math.inf
            shares = wg.exp(both + wg.where(possible, loss, 0.0).reshape((1, -1, 1)))
            marks = wg.one_hot(paths.labels, classes).astype(x.dtype)
            expected = wg.permute_dims(wg.permute_dims(shares, (1, 0, 2)) @ marks, (1, 0, 2))
            slope = wg.exp(x[: paths.steps]) - expected
            when = wg.arange(paths.steps, device=x.device).reshape((-1, 1, 1))
            seen = (when < paths.lengths.reshape((1, -1, 1))) & possible.reshape((1, -1, 1))
            slope = wg.where(seen, slope * g.reshape((1, -1, 1)), 0.0)
            return wg.pad(slope, ((0, times - paths.steps), (0, 0), (0, 0)))

        return loss, back

    return loss_of(log_probs)  # type: ignore[no-any-return]


def _total(x: wg.Tensor) -> wg.Tensor:
    """log Σ exp along the last axis."""
    largest = wg.max(x, axis=1, keepdims=True)
    shift = wg.where(largest == -math.inf, 0.0, largest)
    return wg.log(wg.exp(x - shift).sum(axis=1)) + shift[:, 0]
