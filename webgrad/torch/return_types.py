"""torch.return_types: what functions return that give several tensors, with names.

In: tensors. Out: named tuples, which are compared and unpacked as tuples are.
"""

from __future__ import annotations

from collections import namedtuple

__all__: list[str] = []

_FIELDS = {
    "aminmax": "min max",
    "frexp": "mantissa exponent",
    "histogram": "hist bin_edges",
    "histogramdd": "hist bin_edges",
}
_PAIRS = "cummax cummin kthvalue max median min mode nanmedian sort topk"
_FIELDS |= dict.fromkeys(_PAIRS.split(), "values indices")
for _name, _fields in _FIELDS.items():
    globals()[_name] = namedtuple(_name, _fields)
    __all__ += [_name]
