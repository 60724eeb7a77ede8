"""torch.nn.utils: norms of gradients, parameters as a vector, weights that are computed, packed sequences."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import webgrad as wg

from ...binding import bind
from . import parametrizations, parametrize, prune, rnn, stateless

ROWS = """
[function]
clip_grad_norm_ clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None) =
    utils.clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)
clip_grad_value_(parameters, clip_value, foreach=None) = utils.clip_grad_value_(parameters, clip_value)
clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None) =
    utils.clip_grads_with_norm_(parameters, max_norm, total_norm)
get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None) = utils.get_total_norm(tensors,
    norm_type)
parameters_to_vector(parameters) = utils.parameters_to_vector(parameters)
vector_to_parameters(vec, parameters) = utils.vector_to_parameters(vec, parameters)
weight_norm(module, name="weight", dim=0) = utils.weight_norm(module, name, dim)
remove_weight_norm(module, name="weight") = utils.remove_weight_norm(module, name)
spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None) = utils.spectral_norm(module,
    name, n_power_iterations, eps, dim)
remove_spectral_norm(module, name="weight") = utils.remove_spectral_norm(module, name)
fuse_conv_bn_eval(conv, bn, transpose=False) = utils.fuse_conv_bn_eval(conv, bn, transpose)
fuse_linear_bn_eval(linear, bn) = utils.fuse_linear_bn_eval(linear, bn)
skip_init(module_cls, *args, **kwargs) = utils.skip_init(module_cls, *args, **kwargs)
convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format(module, memory_format) = module
"""
# torch's files, and what programs import from them
_FILES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_linear_bn_eval",
}

utils = wg.nn.utils
functions = bind(ROWS, globals())
globals().update(functions)
__all__ = ["parametrizations", "parametrize", "prune", "rnn", "stateless", *functions]


def _file(name: str, names: str) -> ModuleType:
    module = ModuleType(f"{__name__}.{name}", f"torch.nn.utils.{name}.")
    module.__dict__.update({each: functions[each] for each in names.split()}, __all__=names.split())
    sys.modules[module.__name__] = module
    return module


globals().update({_name: _file(_name, _names) for _name, _names in _FILES.items()})
for _name in ("weight_norm", "spectral_norm"):  # which are functions too: only their import paths
    _file(_name, f"{_name} remove_{_name}")

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
