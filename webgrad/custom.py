"""A user's own kernel: WGSL (or .pwgsl) source as a function of tensors, or a launch over buffers.

Comes in: source text, then tensors or buffers, parameters by name and a grid. Goes out: lazy tensors, nodes
like those of any other op; or one recorded dispatch. The invariant: what does not fit the source (a missing
parameter, a tensor of another dtype, a buffer too small, a grid too large) is an error in Python at the call,
and users' kernels keep the compiler's bounds checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

from .device_profile import PORTABLE
from .errors import DeviceError, GradientError, LaunchError
from .functions.kernel_arguments import (
    bound_tensors,
    check_size,
    check_tensor,
    host_numbers,
    listed,
    numbers_of,
    result_shapes,
    stored_node,
)
from .gradients.autograd import custom_gradient
from .graph.node import Node, make, source, user_frame
from .native.compiler import is_available
from .native.user_kernels.launch import check, computed_natively
from .observing import Note, observers
from .ops import primitives
from .ops.user_kernel import KERNEL, KernelCall
from .runtime.buffers import Buffer
from .runtime.checks import checked_grid
from .runtime.device import CpuDevice, open_device
from .runtime.pipelines import Pipeline
from .runtime.webgpu import Device
from .tensor import Tensor
from .wgsl import Program, program_from_source
from .wgsl.packing import ParamValue, packer
from .wgsl.program import reads_first

Grid = int | Sequence[int]
GridOf = Grid | Callable[..., Grid]  # or a function of a call's arguments that gives it
Result = tuple[Sequence[int], Any]  # the shape and dtype of a result
Results = Sequence[Result] | Callable[..., Sequence[Result]]
_RESERVED = frozenset({"grid", "threads"})
_NO_GPU = (
    "kernels written in WGSL need a GPU, and the device is cpu: pass device='webgpu' for any adapter, a "
    "software one included, see `webgrad info` for what to install, or give reference=, a function of NumPy "
    "arrays that the cpu computes instead"
)
_NO_NATIVE_CODE = f"the cpu runs kernels over tensors with llvmlite; without it {_NO_GPU}"


class Kernel:
    """A compiled kernel; call it with tensors or buffers, `grid` or `threads`, and its parameters by name.

    >>> wg.kernel("@compute @workgroup_size(1) fn nothing() {}", device="webgpu")
    <Kernel nothing()>
    """

    def __init__(
        self,
        program: Program,
        device: Device | CpuDevice,
        *,
        results: Results | None = None,
        grid: GridOf | None = None,
        threads: GridOf | None = None,
        gradient: Callable[..., Any] | None = None,
        reference: Callable[..., Any] | None = None,
    ) -> None:
        self.program = program
        self.device: Any = device  # a `Device`; a kernel with a reference may be of the cpu
        self._results, self._gradient, self._reference = results, gradient, reference
        self._grid, self._threads = grid, threads
        self._reads_first = reads_first(program)
        self._names = tuple(field.name for field in program.params)
        self._packer = packer(program)
        for name in sorted(_RESERVED & set(self._names)):
            raise LaunchError(
                f"{program.label}: a parameter cannot be called {name}, as a launch's own are; rename it"
            )
        if isinstance(device, Device):
            self._pipeline = device.pipeline(program, checked=True)
            device.queue.compile(self._pipeline)  # a shader error belongs here, not to a later flush

    def __repr__(self) -> str:
        bindings = ", ".join(f"{each.name}: {each.access} {each.type}" for each in self.program.bindings)
        params = "".join(f", {each.name}: {each.type}" for each in self.program.params)
        return f"<Kernel {self.program.entry}({bindings}{params})>"

    def __call__(
        self,
        *values: Tensor | Buffer | None,
        grid: Grid | None = None,
        threads: Grid | None = None,
        **params: ParamValue | Tensor,
    ) -> Any:
        """Of tensors: the result, or a tuple of several, as lazy tensors. Of buffers: record one launch.

        It goes over `grid` workgroups, or over at least `threads` invocations.
        """
        bindings = self.program.bindings
        makes_all = bool(bindings) and not values and all(each.access == "read_write" for each in bindings)
        if makes_all or any(each is None or isinstance(each, Tensor) for each in values):
            return self._tensors(values, grid, threads, params)
        return self._buffers(values, grid, threads, params)

    # Over buffers

    def _buffers(
        self, values: tuple[Any, ...], grid: Grid | None, threads: Grid | None, params: dict[str, Any]
    ) -> None:
        """Record one launch."""
        if not isinstance(self.device, Device):
            raise DeviceError(f"{self.program.label}: {_NO_GPU}")
        queue = self.device.queue
        sizes = [queue.size_of(each) for each in values]  # says what is no buffer, or freed
        pipeline, data, workgroups = self.prepare(values, grid, threads, params)
        with queue.lock:
            queue.dispatch(pipeline, values, data, workgroups)
            if observers() and all(workgroups):
                queue.annotate(Note(self.program.label, where=user_frame(), bytes_read=sum(sizes)))

    def prepare(
        self, values: Sequence[Any], grid: Grid | None, threads: Grid | None, params: Mapping[str, ParamValue]
    ) -> tuple[Pipeline, bytes, tuple[int, int, int]]:
        """Check a launch over buffers, or what else has bytes; gives what is to be recorded."""
        bindings = self.program.bindings
        if len(values) != len(bindings):
            raise LaunchError(
                f"{self.program.label} takes {len(bindings)} buffers ({listed(bindings)}), not {len(values)}"
            )
        for binding, value in zip(bindings, values, strict=True):
            check_size(self.program, binding, value.nbytes)
        data = self._packed(params)
        return self._pipeline, data, self._workgroups(self.device, values, grid, threads, params)

    def _packed(self, params: Mapping[str, ParamValue]) -> bytes:
        """The parameters' bytes: one for each field, each fitting it."""
        for what, names in (
            ("missing", [name for name in self._names if name not in params]),
            ("unknown", [name for name in params if name not in self._names]),
        ):
            if names:
                takes = ", ".join(f"{each.name}: {each.type}" for each in self.program.params) or "none"
                raise LaunchError(
                    f"{self.program.label} takes the parameters ({takes}); {what}: {', '.join(names)}"
                )
        return self._packer.pack(*[params[name] for name in self._names])

    def _workgroups(
        self,
        device: Any,
        values: Sequence[Any],
        grid: GridOf | None,
        threads: GridOf | None,
        params: Mapping[str, Any],
    ) -> tuple[int, int, int]:
        """The grid: of the call, else as the kernel was made."""
        label = self.program.label
        if grid is None and threads is None:
            grid, threads = self._grid, self._threads
        if (grid is None) == (threads is None):
            raise LaunchError(f"{label}: give either grid= (workgroups) or threads= (invocations)")
        asked = grid if grid is not None else threads
        counts = _three(label, asked(*values, **params) if callable(asked) else asked)
        if threads is not None and min(counts) >= 0:
            size = self.program.workgroup_size
            counts = tuple(-(-count // width) for count, width in zip(counts, size, strict=True))
        most = device.queue.limits.max_workgroups if isinstance(device, Device) else PORTABLE.max_workgroups
        return checked_grid(label, counts, most)

    # Over tensors

    def _tensors(
        self,
        values: tuple[Any, ...],
        grid: Grid | None,
        threads: Grid | None,
        params: dict[str, Any],
    ) -> Any:
        """The results as tensors, differentiable by the kernel's own gradient."""
        program, label = self.program, self.program.label
        bound = bound_tensors(program, values)
        tensors = [each for each in values if each is not None]
        device = tensors[0].device if tensors else self.device
        self._check_device(device, tensors)
        for binding, each in bound:
            if each is not None:
                check_tensor(program, binding, each.shape, each.dtype, device, "convert it with x.astype")
        self._packed({name: host_numbers(label, name, each) for name, each in params.items()})
        workgroups = self._workgroups(device, values, grid, threads, params)
        if not all(workgroups):
            raise LaunchError(f"{label}: a grid of {workgroups} workgroups computes no result")
        written = [(binding, each) for binding, each in bound if binding.access == "read_write"]
        reads = [each for binding, each in bound if binding.access == "read" and each is not None]
        begun = [each for _, each in written if each is not None]
        places = iter(range(len(reads))), iter(range(len(reads), len(reads) + len(begun)))
        order = [-1 if each is None else next(places[binding.access != "read"]) for binding, each in bound]
        call = KernelCall(
            self._reads_first,
            workgroups,
            result_shapes(program, written, self._asked(values, params, len(written)), device),
            len(reads),
            tuple(place for place, (_, each) in enumerate(written) if each is not None),
            tuple(order if len(values) == len(bound) else range(len(reads))),
            tuple(each.dtype for each in (*reads, *begun)),
            self._reference,
            computed_natively if self._reference is None and is_available() else None,
        )
        nodes = *[stored_node(each.node) for each in (*reads, *begun)], *numbers_of(program, params, device)
        return self._differentiable(call, nodes, device, tensors, params)

    def _asked(self, values: Sequence[Tensor | None], params: dict[str, Any], count: int) -> Any:
        """What results are to be: as the kernel was made, or like the first tensor."""
        if callable(self._results):
            return self._results(*values, **params)
        if self._results is not None:
            return self._results
        first = next((each for each in values if each is not None), None)
        if first is None:
            raise LaunchError(
                f"{self.program.label}: no tensor is given, so results= must say what the results are"
            )
        return [(first.shape, first.dtype)] * count

    def _check_device(self, device: Any, tensors: Sequence[Tensor]) -> None:
        label = self.program.label
        if tensors:
            primitives.check_device(label, *[each.node for each in tensors])
        if not isinstance(device, Device):
            if self._reference is None:
                _check_native(self._reads_first)
        elif device is not self.device:
            device.pipeline(self._reads_first, checked=True)  # says which feature is missing
            most = device.profile.max_storage_buffers
            if len(self.program.bindings) > most:
                raise LaunchError(
                    f"{label} has {len(self.program.bindings)} bindings, and {device.name} takes {most}"
                )

    def _differentiable(
        self,
        call: KernelCall,
        nodes: tuple[Node, ...],
        device: Any,
        tensors: Sequence[Tensor],
        params: dict[str, Any],
    ) -> Any:
        """The nodes of a launch, with its gradient where one is asked for."""
        label, gradient = self.program.label, self._gradient

        def launch(*inputs: Tensor) -> tuple[Any, Callable[..., Any]]:
            made = []
            for place, (shape, dtype) in enumerate(call.results):
                if nodes:
                    made.append(Tensor(make(KERNEL, nodes, (call, place))))
                else:
                    made.append(Tensor(source(KERNEL, shape, dtype, device, (call, place))))
            results = made[0] if len(made) == 1 else tuple(made)

            def pull(*gradients: Any) -> Any:
                if gradient is None:
                    raise GradientError(
                        f"{label}: a kernel of your own has no gradient unless you give one: "
                        "webgrad.kernel(..., gradient=function), a function (gradients of the results, "
                        "inputs, results) → gradients of the inputs; or cut it off with x.detach()"
                    )
                return gradient(gradients[0] if len(made) == 1 else gradients, inputs, results, **params)

            return results, pull

        # Tensors of our own, since the user's may get other values before the gradient is asked for.
        return custom_gradient(launch)(*[Tensor(each.node) for each in tensors])


def _check_native(program: Program) -> None:
    """Refuse a kernel that the cpu cannot run."""
    if not is_available():
        raise DeviceError(f"{program.label}: {_NO_NATIVE_CODE}")
    check(program)


def _three(label: str, counts: Any) -> tuple[int, ...]:
    try:
        values = tuple(map(index, counts)) if isinstance(counts, Sequence) else (index(counts),)
    except TypeError:
        values = ()
    if not 1 <= len(values) <= 3:
        raise LaunchError(f"{label}: a grid is one to three integers, not {counts!r}")
    return (*values, 1, 1)[:3]


def kernel(
    source: str,
    *,
    entry: str | None = None,
    label: str = "kernel",
    defines: dict[str, str | int | float | bool] | None = None,
    device: Device | CpuDevice | str | None = None,
    results: Results | None = None,
    grid: GridOf | None = None,
    threads: GridOf | None = None,
    gradient: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
) -> Kernel:
    """A kernel from WGSL, or from .pwgsl with `defines`: an op over tensors, or a launch over buffers.

    Storage buffers are `@group(0) @binding(n) var<storage, …>`; parameters are one `var<uniform>` struct of
    scalars and vectors. `entry` names the entry point where there are several.

    Called with tensors for the bindings that are `read`, it gives one lazy tensor for each that is
    `read_write`; elements that it does not write are undefined. A tensor for every binding, in order, says
    what results begin with, None where that does not matter: the kernel changes a copy.

    `results` is a list of (shape, dtype), or a function of the call's arguments that gives it; without it
    results are like the first tensor. `grid` or `threads`, numbers or such functions, hold for calls that
    give neither. `gradient(gradients, inputs, results, **params)` gives the gradients of the tensors passed,
    one or a tuple; gradients and results are tuples where there are several. `reference`, a function of NumPy
    arrays and the parameters, gives the results on the cpu; without it the cpu runs the kernel itself, where
    llvmlite is installed.

    >>> square = wg.kernel(
    ...     \"\"\"
    ...     @group(0) @binding(0) var<storage, read> x: array<f32>;
    ...     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    ...     @compute @workgroup_size(64)
    ...     fn square(@builtin(global_invocation_id) id: vec3<u32>) {
    ...         if (id.x < arrayLength(&y)) { y[id.x] = x[id.x] * x[id.x]; }
    ...     }\"\"\",
    ...     threads=lambda x: x.size,
    ...     gradient=lambda g, inputs, y: 2 * g * inputs[0],
    ...     device="webgpu",
    ... )
    >>> x = wg.asarray([1.0, 2.0, 3.0], device="webgpu").requires_grad_()
    >>> y = square(x) + 1
    >>> y.sum().backward()
    >>> y.tolist(), x.grad.tolist()
    ([2.0, 5.0, 10.0], [2.0, 4.0, 6.0])

    Called with buffers for all bindings, it changes those, and gives nothing:

    >>> device = wg.open_device("webgpu")
    >>> source, target = device.upload(np.arange(4, dtype=np.float32)), device.allocate(16)
    >>> square(source, target, threads=4)
    >>> np.frombuffer(device.read(target), np.float32).tolist()
    [0.0, 1.0, 4.0, 9.0]
    """
    if not isinstance(source, str):
        raise LaunchError(f"a kernel's source is WGSL text, not a {type(source).__name__}")
    for name, function in (("gradient", gradient), ("reference", reference)):
        if function is not None and not callable(function):
            raise LaunchError(f"{name}= is a function, not a {type(function).__name__}")
    chosen = open_device(device)
    program = program_from_source(source, entry=entry, label=label, defines=defines)
    if not isinstance(chosen, Device) and reference is None:
        _check_native(reads_first(program))
    return Kernel(
        program,
        chosen,
        results=results,
        grid=grid,
        threads=threads,
        gradient=gradient,
        reference=reference,
    )
