"""torch.nn.common_types: types of arguments that are one number, or one for each dimension."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")
_scalar_or_tuple_any_t = Any
_scalar_or_tuple_1_t = _scalar_or_tuple_2_t = _scalar_or_tuple_3_t = Any
_scalar_or_tuple_4_t = _scalar_or_tuple_5_t = _scalar_or_tuple_6_t = Any
_size_any_t = _size_1_t = _size_2_t = _size_3_t = _size_4_t = _size_5_t = _size_6_t = Any
_size_any_opt_t = _size_2_opt_t = _size_3_opt_t = Any
_ratio_2_t = _ratio_3_t = _ratio_any_t = Any
_tensor_list_t = Any
_maybe_indices_t = Any
