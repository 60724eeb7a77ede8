"""webgrad.export: programs give in a browser's runner what they give in Python, for every kind of adapter."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
import webgrad.nn as nn
from tests.documents import blocks_of
from tests.web.dawn import run_module
from tests.web.exported import Call, run_exports
from webgrad.web.paper import VARIANTS

Program = Callable[[], tuple[Any, Any, list[Call], list[Any]]]  # function, examples, calls, expected outputs
random = np.random.default_rng(3)
PICTURE = random.standard_normal((1, 1, 12, 12)).astype(np.float32)
ROWS = random.standard_normal((5, 33)).astype(np.float32)


def _mlp() -> Any:
    wg.random.seed(1)
    model = nn.Sequential(nn.Linear(33, 70), nn.GELU(), nn.LayerNorm(70), nn.Linear(70, 10)).eval()
    return model, (wg.zeros((5, 33)),), [("run", {"x": ROWS})], [model(wg.asarray(ROWS)).numpy()]


def _cnn() -> Any:
    wg.random.seed(2)
    layers = [nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(216, 4)).eval()
    return model, wg.zeros((1, 1, 12, 12)), [("run", {"x": PICTURE})], [model(wg.asarray(PICTURE)).numpy()]


def _state_and_numbers() -> Any:
    cache = wg.ones((6, 4))

    def step(x: Any, position: Any, rate: Any) -> Any:
        cache[position] = x * rate
        return cache.sum(axis=0)

    calls: list[Call] = [
        ("run", {"x": [1, 2, 3, 4], "position": 2, "rate": 0.5}),
        ("run", {"x": [1, 1, 1, 1], "position": 5, "rate": 10.0}),
        ("reset", {}),
        ("run", {"x": [0, 0, 0, 0], "position": 0, "rate": 1.0}),
    ]
    first = 5 + np.array([0.5, 1, 1.5, 2])
    return step, (wg.zeros(4), 1, 1.0), calls, [first, first + 9, np.full(4, 5.0)]


def _exchanged_state() -> Any:
    one, other = wg.asarray([1.0, 2.0]), wg.asarray([3.0, 4.0])

    def exchange() -> Any:
        before = one + 0.0
        one[...] = other
        other[...] = before
        return {"one": one + 0, "other": other * 1}

    calls: list[Call] = [("run", {}), ("run", {}), ("run", {})]
    exchanged = {"one": [3, 4], "other": [1, 2]}
    return exchange, (), calls, [exchanged, {"one": [1, 2], "other": [3, 4]}, exchanged]


def _training() -> Any:
    """A step of training, with the optimiser's state; the rate is a setting that the page may change."""

    def made() -> Any:
        wg.random.seed(4)
        model = nn.Linear(3, 1)
        optimiser = wg.optim.Adam(model.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimiser.zero_grad()
            loss = ((model(x)[:, 0] - y) ** 2).mean()
            loss.backward()
            optimiser.step()
            return loss

        return step

    x = random.standard_normal((8, 3)).astype(np.float32)
    y = (x @ np.array([1, -2, 3])).astype(np.float32)
    native, exported = made(), made()
    losses = [native(wg.asarray(x), wg.asarray(y)).numpy() for _ in range(5)]
    native_first = exported(wg.asarray(x), wg.asarray(y)).numpy()  # so that the optimiser has its state
    assert native_first == losses[0]
    return exported, (wg.zeros((8, 3)), wg.zeros(8)), [("run", {"x": x, "y": y})] * 4, losses[1:]


def _dtypes() -> Any:
    def function(a: Any, b: Any, c: Any, flags: Any) -> Any:
        return a * 2, (b.astype(wg.float32) + 0.5).astype(wg.float16), c // 3, wg.logical_not(flags), a[:0]

    inputs = {"a": [1, -2, 3], "b": [0.1, 1e4, -3], "c": [7, 8, 255], "flags": [1, 0, 1]}
    examples = (
        wg.zeros(3, dtype=wg.int16),
        wg.zeros(3, dtype=wg.bfloat16),
        wg.zeros(3, dtype=wg.uint8),
        wg.zeros(3, dtype=wg.bool),
    )
    given = [wg.asarray(each, dtype=like.dtype) for each, like in zip(inputs.values(), examples, strict=True)]
    expected = {f"output_{at}": each.numpy() for at, each in enumerate(function(*given))}
    return function, examples, [("run", inputs)], [expected]


def _order() -> Any:
    """What the cpu and GPUs do in different ways: sorts, scatters, transforms, gathers, constants inside."""

    def function(x: Any) -> Any:
        places = wg.asarray([4, 0, 2])
        return {
            "sorted": wg.sort(x, axis=1),
            "taken": wg.take(x, places, axis=0) + wg.asarray([[0.25], [0.5], [1.0]]),
            "spectrum": wg.abs(wg.fft.rfft(x[:, :32])),
            "running": wg.cumulative_sum(x, axis=1),
            "same": x,
        }

    expected = {name: each.numpy() for name, each in function(wg.asarray(ROWS)).items()}
    return function, {"x": wg.zeros((5, 33))}, [("run", {"x": ROWS})], [expected]


def _own_kernel() -> Any:
    """A user's kernel: parameters beside padding, and a result that begins with a value."""
    source = """
    struct Params { factor: f32, shift: vec2<u32> }
    @group(0) @binding(0) var<storage, read_write> total: array<f32>;
    @group(0) @binding(1) var<storage, read_write> place: array<u32>;
    @group(0) @binding(2) var<storage, read> x: array<f32>;
    var<uniform> p: Params;
    @compute @workgroup_size(64)
    fn add_to(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x >= arrayLength(&total)) { return; }
        total[id.x] += p.factor * x[id.x] + f32(p.shift.y);
        place[id.x] = id.x;
    }"""
    add_to = wg.kernel(
        source,
        threads=lambda total, place, x, **_: x.size,
        results=lambda total, place, x, **_: [(x.shape, x.dtype), (x.shape, wg.uint32)],
        reference=lambda total, place, x, factor, shift: (total + factor * x + shift[1], x.astype(np.uint32)),
        device="cpu",
    )

    def run(x: Any, factor: Any, shift: Any) -> Any:
        total, place = add_to(x * 2, None, x.T + 1, factor=factor, shift=(0, shift))
        return {"total": total, "place": place.astype(wg.int32)}

    x = random.standard_normal((3, 3)).astype(np.float32)
    calls: list[Call] = [("run", {"x": x, "factor": each, "shift": at}) for at, each in enumerate((2.5, 1.0))]
    wanted = [
        {"total": x * 2 + factor * (x.T + 1) + at, "place": np.arange(9).reshape(3, 3)}
        for at, factor in enumerate((2.5, 1.0))
    ]
    return run, (wg.zeros((3, 3)), 1.0, 1), calls, wanted


PROGRAMS: dict[str, Program] = {
    "mlp": _mlp,
    "cnn": _cnn,
    "state and numbers": _state_and_numbers,
    "exchanged state": _exchanged_state,
    "training": _training,
    "dtypes": _dtypes,
    "order": _order,
    "a kernel of one's own": _own_kernel,
}


@pytest.mark.usefixtures("dawn")
def test_programs_give_what_they_give_in_python(tmp_path: Path) -> None:
    jobs: list[tuple[Path, str, Sequence[Call]]] = []
    expected: list[tuple[str, Any]] = []
    for name, program in PROGRAMS.items():
        function, examples, calls, values = program()
        folder = wg.export(function, examples, tmp_path / name).parent
        for variant in json.loads((folder / "plan.json").read_text())["variants"]:
            jobs.append((folder, variant["label"], calls))
            expected.append((f"{name} for {variant['label']}", values))
    for (label, values), answers in zip(expected, run_exports(jobs), strict=True):
        for want, got in zip(values, answers, strict=True):
            want = want if isinstance(want, dict) else {"output": want}
            assert list(got) == list(want), label
            for name, array in want.items():
                value = np.asarray(array, got[name].dtype)
                np.testing.assert_allclose(got[name], value, 1e-4, 1e-4, err_msg=f"{name} of {label}")


def test_nothing_is_changed_or_computed_by_an_export(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    before = [(id(each.node), each.device) for each in model.parameters()]
    cache = wg.zeros(3)
    wg.eval(cache)
    node = cache.node

    def function(x: Any) -> Any:
        cache[0] = 1.0
        return model(x) + wg.random.normal((2,), device="cpu")

    wg.reset_stats("cpu")
    wg.export(function, wg.ones(2), tmp_path)
    assert cache.node is node
    assert cache.tolist() == [0, 0, 0]
    assert [(id(each.node), each.device) for each in model.parameters()] == before
    assert wg.ones(2).device == "cpu"


def test_weights_are_named_and_written_once(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    scale = wg.asarray([1.0, 2.0, 3.0])

    def first(x: Any) -> Any:
        return model(x) * scale

    def second(x: Any) -> Any:
        return model[0](x) * scale

    functions = {"first": first, "second": second}
    page = wg.export(functions, dict.fromkeys(functions, wg.ones(3)), tmp_path)
    plan = json.loads((page.parent / "plan.json").read_text())
    assert sorted(plan["functions"]) == ["first", "second"]
    weights = {name for name in plan["tensors"] if name.startswith("model.")}
    assert weights == {"model.0.weight", "model.0.bias", "model.1.weight", "model.1.bias"}
    assert len(plan["tensors"]) == 5
    stored = wg.io.load(tmp_path / plan["weights"][0]["file"])
    assert stored["model.1.bias"].tolist() == model[1].bias.tolist()


def test_the_last_variant_fits_every_adapter() -> None:
    assert VARIANTS[-1].needs == {}
    assert all(VARIANTS[-1].includes(each) for each in VARIANTS)


def test_an_export_replaces_an_older_one_and_leaves_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "weights-3-of-9.safetensors").write_text("old")
    wg.export(nn.Linear(2, 2), wg.ones(2), tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert not (tmp_path / "weights-3-of-9.safetensors").exists()
    assert not list(tmp_path.glob(".webgrad-export*"))


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no function": (lambda: wg.export(3, (), "x"), "takes a function or a module"),  # type: ignore[arg-type]
    "too many inputs": (lambda: wg.export(nn.Linear(2, 2), (wg.ones(2), 1), "x"), "do not fit"),
    "nothing": (lambda: wg.export(lambda x: None, wg.ones(2), "x"), "nothing to compute"),
    "a number": (
        lambda: wg.export(lambda x, n: (x, n), (wg.ones(2), 1), "x"),
        "a number as 'output_1'",
    ),
    "doubles": (
        lambda: wg.export(lambda x: x * 2, wg.ones(2, dtype=wg.float64), "x"),
        "'x' is float64.*float32",
    ),
    "wide ids": (
        lambda: wg.export(lambda ids: ids, wg.arange(2, dtype=wg.int64), "x"),
        "'ids' is int64.*int32",
    ),
    "values": (lambda: wg.export(lambda x: x * x[0].item(), wg.ones(2), "x"), "or webgrad.export writes"),
    "names": (lambda: wg.export({"a b": abs}, {"a b": wg.ones(2)}, "x"), "cannot be the name"),
    "examples": (lambda: wg.export({"a": abs}, {"b": wg.ones(2)}, "x"), "same names"),
    "labels": (lambda: wg.export(nn.Linear(2, 2), wg.ones(2), "x", labels=["a"]), "is no picture"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_exported_says_why(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    function, words = WRONG[name]
    with pytest.raises(wg.WebgradError, match=words):
        function()
    assert not (tmp_path / "x" / "index.html").exists()


def test_an_input_that_is_changed_in_place_is_refused(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        x += 1
        return x * 2

    with pytest.raises(wg.ArgumentError, match="changes its input 'x' in place"):
        wg.export(function, wg.ones(2), tmp_path)


def test_samples_are_pictures_in_every_layout(tmp_path: Path) -> None:
    rows = np.arange(24).reshape(2, 4, 3) / 24
    grey, first = rows[:, :, 0], np.moveaxis(rows, 2, 0)

    def images(*samples: Any) -> list[str]:
        page = wg.export(nn.Flatten(), wg.ones((1, 1, 1, 2)), tmp_path, labels=["a", "b"], samples=samples)
        facts = json.loads((page.parent / "page.json").read_text(encoding="utf-8"))
        return [each["image"] for each in facts["samples"]]

    coloured, again, *greys = images(rows, first, grey, grey[None], grey[:, :, None])
    assert coloured == again
    assert len(set(greys)) == 1
    with pytest.raises(wg.ArgumentError, match="a sample is an array of shape"):
        images(rows[None])


def test_forms_begin_with_the_numbers_of_the_examples(tmp_path: Path) -> None:
    page = wg.export(lambda x, rate, count: x * rate + count, (wg.ones(2), 0.5, 3), tmp_path)
    inputs = json.loads((page.parent / "plan.json").read_text(encoding="utf-8"))["functions"]["run"]["inputs"]
    assert (inputs["rate"]["example"], inputs["count"]["example"]) == (0.5, 3)


@pytest.mark.usefixtures("dawn")
def test_the_module_of_the_documentation(tmp_path: Path) -> None:
    """docs/browser.md: its first block of JavaScript runs beside an export; the other: test_painting.py."""
    blocks = [each for each in blocks_of("docs/browser.md") if each.language == "js"]
    assert len(blocks) == 2
    model = nn.Sequential(nn.Linear(3, 16), nn.GELU(), nn.Linear(16, 2)).eval()
    wg.export(model, (wg.zeros((1, 3)),), tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    logged = "const told = [];\nconst console = { log: (...words) => told.push(words) };\n"
    first, rest = blocks[0].text.split("\n", 1)
    (tmp_path / "page.js").write_text(f"{first}\n{logged}{rest}\nexport {{ told }};\n")
    main = 'async function main() { return (await import("./page.js")).told; }\nexport { main };\n'
    (tmp_path / "main.js").write_text(main)
    told = run_module(tmp_path / "main.js")
    assert told[0][0] == "adapter"
    assert told[-2][0] == "ready"
    shape, data = told[-1]
    np.testing.assert_allclose(data.reshape(shape), model(wg.asarray([[0.5, -1.0, 2.0]])).numpy(), 1e-4, 1e-5)


def test_a_tensor_that_is_more_than_a_buffer_is_refused(tmp_path: Path) -> None:
    table = wg.zeros((70000, 1024), device="cpu")
    wg.eval(table)
    with pytest.raises(wg.ArgumentError, match="286,720,000 bytes, and tensors in browsers have at most"):
        wg.export(lambda ids: table[ids], (wg.zeros(3, dtype=wg.int32),), tmp_path)
