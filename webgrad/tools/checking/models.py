"""Models on a GPU held against the cpu: vectors, or logits step by step, and where they part, op by op.

In: the same model on both devices. Out: a `ModelReport`: a line for each step or text with its cosine, and
what the node-by-node check of a step says. Tokens are the cpu's, so that one difference is not the next
one's cause. A cosine below `LEAST` is a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...arrays import Array, np
from .check import check
from .verdict import CheckReport

__all__ = ["LEAST", "ModelReport", "Step", "check_embedding", "check_language"]

Tell = Callable[["Step"], None]

LEAST = 0.999  # the cosine that is asked for at every step


@dataclass(frozen=True, slots=True)
class Step:
    """One decode step, or one text: how like each other the devices' vectors are."""

    name: str
    cosine: float
    same_top: bool | None = None  # whether both would take the same token

    @property
    def ok(self) -> bool:
        """Whether it is as like as is asked for; NaN is not."""
        return self.cosine >= LEAST

    def __str__(self) -> str:
        top = "" if self.same_top is None else ", the same token" if self.same_top else ", ANOTHER token"
        return f"{self.name}: cosine {self.cosine:.7f}{top}" + ("" if self.ok else f"  BELOW {LEAST}")


@dataclass(slots=True)
class ModelReport:
    """Steps or texts in order, and the ops of one of them: the first that was refused, else the last."""

    steps: list[Step] = field(default_factory=list)
    nodes: CheckReport | None = None

    @property
    def refused(self) -> Step | None:
        """The first step that is not as it must be."""
        return next((each for each in self.steps if not each.ok), None)

    @property
    def ok(self) -> bool:
        """Whether every step is, and no op diverges."""
        return self.refused is None and (self.nodes is None or self.nodes.ok)


def cosine(a: Array, b: Array) -> float:
    """Of the angle between two vectors; NaN where one has no direction."""
    a, b = a.astype(np.float64).reshape(-1), b.astype(np.float64).reshape(-1)
    with np.errstate(all="ignore"):
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def check_language(
    model: Any, reference: Any, ids: Sequence[int], steps: int, tell: Tell, *, deep: bool = True
) -> ModelReport:
    """Read a prompt and go on for some steps on both devices; `deep` also holds every op of a step."""
    report = ModelReport()
    text = list(ids)
    for number in range(steps):
        wanted, found = (each.next_logits(text).numpy() for each in (reference, model))
        token = int(np.argmax(wanted))
        name = f"step {number + 1} (token {len(text)})"
        step = Step(name, cosine(found, wanted), int(np.argmax(found)) == token)
        report.steps.append(step)
        tell(step)
        if not step.ok or number + 1 == steps:
            break
        text.append(token)
    if deep or not report.steps[-1].ok:
        report.nodes = check(lambda: model.next_logits(text), device=model.device)
    if report.refused is not None and report.nodes is not None and report.nodes.ok and len(text) > 1:
        model.next_logits([text[0]])  # what came before the step, kept in caches, must be wrong then
        report.nodes = check(lambda: model.next_logits(text), device=model.device)
    return report


def check_embedding(model: Any, reference: Any, texts: Sequence[str], tell: Tell) -> ModelReport:
    """The vectors of texts on both devices, and every op on the way to them."""
    report = ModelReport()
    wanted, found = (each.embed(texts).numpy() for each in (reference, model))
    for number, (text, a, b) in enumerate(zip(texts, found, wanted, strict=True), 1):
        step = Step(f"text {number} ({text[:40]!r})", cosine(a, b))
        report.steps.append(step)
        tell(step)
    report.nodes = check(lambda: model.embed(texts), device=model.device)
    return report
