"""Casts between dtypes as WGSL: by value as NumPy where NumPy is defined, saturating where it is not, or by
bits.
"""

from __future__ import annotations

from ..dtypes import DType


def _type(scalar: str, width: int) -> str:
    return scalar if width == 1 else f"vec4<{scalar}>"


def cast_text(source: DType, target: DType, by_bits: bool, value: str, width: int) -> str:
    """The expression that casts a value from one dtype to another; `wg_…` names are not spelled yet."""
    if by_bits:
        return _by_bits(source, target, value, width)
    made = _type(target.compute, width)
    if target.kind == "b":
        if source.kind == "f":
            return f"wg_cast_{source.compute}_bool({value})"
        return value if source.kind == "b" else f"{value} != {_type(source.compute, width)}()"
    if source.kind == "b":
        return f"select({made}(), {made}(1), {value})" if not target.feature else f"{made}({value})"
    if source.kind == "f" and target.kind in "iu":
        return f"wg_cast_{source.compute}_{target.short}({value})"
    if target.kind == "f":
        made = "wg_cast_f64_f32" if source.compute == "f64" else made
        wide = value if source.compute == target.compute else f"{made}({value})"
        if target.is_half and source is not target:
            return f"wg_round_{target.short}({wide})"
        return wide
    wide = _integer(source.compute, target.compute, value, width)
    if target.is_packed and not (source.kind == target.kind and source.itemsize <= target.itemsize):
        return f"wg_wrap_{target.short}({wide})"
    return wide


def _integer(source: str, target: str, value: str, width: int) -> str:
    """An integer in another integer type; sign extension in steps on which compilers agree."""
    if source == target:
        return value
    same_sign = {"i32": "i64", "u32": "u64", "i64": "i32", "u64": "u32"}[source]
    resized = f"{_type(same_sign, width)}({value})"
    if target == same_sign:
        return resized
    if source[1:] == target[1:]:
        return f"bitcast<{_type(target, width)}>({value})"
    return f"bitcast<{_type(target, width)}>({resized})"


def _by_bits(source: DType, target: DType, value: str, width: int) -> str:
    if not source.is_packed:
        same = source.compute == target.compute
        return value if same else f"bitcast<{_type(target.compute, width)}>({value})"
    return _from_bits(target, _to_bits(source, value), width)


def _to_bits(dtype: DType, value: str) -> str:
    """The bits of a packed dtype's element, as u32."""
    if dtype.kind == "f":
        return f"wg_{dtype.short}_bits({value})"
    if dtype.kind == "b":
        return f"select(U(0u), U(1u), {value})"
    if dtype.kind == "u":
        return value
    return f"(bitcast<U>({value}) & U({(1 << dtype.bits) - 1}u))"


def _from_bits(dtype: DType, bits: str, width: int) -> str:
    """The element with these bits, in the compute type."""
    if dtype.name == "bfloat16":
        return f"bitcast<F>({bits} << U(16u))"
    if dtype.name == "float16":
        if width == 1:
            return f"wg_unpack1_f16({bits}, 0u)"
        return f"wg_unpack4_f16({bits}.xz | ({bits}.yw << vec2<u32>(16u)))"
    if dtype.kind == "b":
        return f"{bits} != U(0u)"
    if dtype.kind == "u":
        return bits
    return f"wg_wrap_{dtype.short}(bitcast<I>({bits}))"
