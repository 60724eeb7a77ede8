# made by `python -m scripts.stubs`
# ruff: noqa: I001, E501  (in the order of their homes, a line each)

from collections.abc import Mapping

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import list as _list
from builtins import str as _str
from builtins import tuple as _tuple
from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from webgrad.functions.array.creation import Shape as _Shape
from webgrad.functions.array.reductions import Axis as _Axis
from webgrad.functions.array.scatters import Number as _Number
from webgrad.runtime.device import DeviceLike as _DeviceLike
from . import amp as amp
from . import data as data
from . import diffusion as diffusion
from . import errors as errors
from . import fft as fft
from . import io as io
from . import linalg as linalg
from . import models as models
from . import nn as nn
from . import observing as observing
from . import onnx as onnx
from . import optim as optim
from . import signal as signal
from . import special as special
from . import torch as torch
from . import training as training
from .batch import Batch as Batch
from .batch import BatchArray as BatchArray
from .custom import Kernel as Kernel
from .custom import kernel as kernel
from .dtypes import DType as DType
from .dtypes import as_dtype as as_dtype
from .dtypes import bfloat16 as bfloat16
from .dtypes import bool as bool
from .dtypes import complex128 as complex128
from .dtypes import complex64 as complex64
from .dtypes import float16 as float16
from .dtypes import float32 as float32
from .dtypes import float64 as float64
from .dtypes import int16 as int16
from .dtypes import int32 as int32
from .dtypes import int64 as int64
from .dtypes import int8 as int8
from .dtypes import promote as promote
from .dtypes import uint16 as uint16
from .dtypes import uint32 as uint32
from .dtypes import uint64 as uint64
from .dtypes import uint8 as uint8
from .errors import ArgumentError as ArgumentError
from .errors import AxisError as AxisError
from .errors import BatchError as BatchError
from .errors import BufferError as BufferError
from .errors import CaptureError as CaptureError
from .errors import CompileError as CompileError
from .errors import ConfigError as ConfigError
from .errors import DTypeError as DTypeError
from .errors import DeviceError as DeviceError
from .errors import DeviceLostError as DeviceLostError
from .errors import ForeignBufferError as ForeignBufferError
from .errors import ForkError as ForkError
from .errors import GradientError as GradientError
from .errors import IndexingError as IndexingError
from .errors import LaunchError as LaunchError
from .errors import LinearAlgebraError as LinearAlgebraError
from .errors import MissingPackageError as MissingPackageError
from .errors import ModelFileError as ModelFileError
from .errors import NoAdapterError as NoAdapterError
from .errors import OutOfMemoryError as OutOfMemoryError
from .errors import ProtocolError as ProtocolError
from .errors import ShaderError as ShaderError
from .errors import ShapeError as ShapeError
from .errors import StaleBufferError as StaleBufferError
from .errors import TemplateError as TemplateError
from .errors import WebgradError as WebgradError
from .functions import random as random
from .functions.array.arithmetic import deg2rad as deg2rad
from .functions.array.arithmetic import fmax as fmax
from .functions.array.arithmetic import fmin as fmin
from .functions.array.arithmetic import fmod as fmod
from .functions.array.arithmetic import frexp as frexp
from .functions.array.arithmetic import gcd as gcd
from .functions.array.arithmetic import heaviside as heaviside
from .functions.array.arithmetic import isneginf as isneginf
from .functions.array.arithmetic import isposinf as isposinf
from .functions.array.arithmetic import isreal as isreal
from .functions.array.arithmetic import lcm as lcm
from .functions.array.arithmetic import ldexp as ldexp
from .functions.array.arithmetic import logaddexp2 as logaddexp2
from .functions.array.arithmetic import rad2deg as rad2deg
from .functions.array.creation import arange as arange
from .functions.array.creation import asarray as asarray
from .functions.array.creation import empty_like as empty_like
from .functions.array.creation import full_like as full_like
from .functions.array.creation import meshgrid as meshgrid
from .functions.array.creation import ones_like as ones_like
from .functions.array.creation import tensor as tensor
from .functions.array.creation import zeros_like as zeros_like
from .functions.array.distances import cdist as cdist
from .functions.array.elementwise import allclose as allclose
from .functions.array.elementwise import array_equal as array_equal
from .functions.array.elementwise import astype as astype
from .functions.array.elementwise import bitcast as bitcast
from .functions.array.elementwise import copysign as copysign
from .functions.array.elementwise import hypot as hypot
from .functions.array.elementwise import isclose as isclose
from .functions.array.elementwise import lerp as lerp
from .functions.array.elementwise import logaddexp as logaddexp
from .functions.array.elementwise import nan_to_num as nan_to_num
from .functions.array.elementwise import nextafter as nextafter
from .functions.array.elementwise import positive as positive
from .functions.array.elementwise import pow as pow
from .functions.array.elementwise import reciprocal as reciprocal
from .functions.array.elementwise import signbit as signbit
from .functions.array.elementwise import square as square
from .functions.array.elementwise import where as where
from .functions.array.evaluation import compute_apart as compute_apart
from .functions.array.evaluation import eval as eval
from .functions.array.histograms import bincount as bincount
from .functions.array.histograms import histogram as histogram
from .functions.array.histograms import histogramdd as histogramdd
from .functions.array.indexing import nonzero as nonzero
from .functions.array.inspection import __array_namespace_info__ as __array_namespace_info__
from .functions.array.inspection import memory_layout as memory_layout
from .functions.array.interop import from_dlpack as from_dlpack
from .functions.array.interop import from_numpy as from_numpy
from .functions.array.manipulation import hstack as hstack
from .functions.array.manipulation import one_hot as one_hot
from .functions.array.manipulation import pad as pad
from .functions.array.manipulation import vstack as vstack
from .functions.array.maps import abs as abs
from .functions.array.maps import acos as acos
from .functions.array.maps import acosh as acosh
from .functions.array.maps import add as add
from .functions.array.maps import asin as asin
from .functions.array.maps import asinh as asinh
from .functions.array.maps import atan as atan
from .functions.array.maps import atan2 as atan2
from .functions.array.maps import atanh as atanh
from .functions.array.maps import bitwise_and as bitwise_and
from .functions.array.maps import bitwise_invert as bitwise_invert
from .functions.array.maps import bitwise_left_shift as bitwise_left_shift
from .functions.array.maps import bitwise_or as bitwise_or
from .functions.array.maps import bitwise_right_shift as bitwise_right_shift
from .functions.array.maps import bitwise_xor as bitwise_xor
from .functions.array.maps import ceil as ceil
from .functions.array.maps import cos as cos
from .functions.array.maps import cosh as cosh
from .functions.array.maps import divide as divide
from .functions.array.maps import equal as equal
from .functions.array.maps import erf as erf
from .functions.array.maps import erfc as erfc
from .functions.array.maps import exp as exp
from .functions.array.maps import exp2 as exp2
from .functions.array.maps import expm1 as expm1
from .functions.array.maps import floor as floor
from .functions.array.maps import floor_divide as floor_divide
from .functions.array.maps import greater as greater
from .functions.array.maps import greater_equal as greater_equal
from .functions.array.maps import isfinite as isfinite
from .functions.array.maps import isinf as isinf
from .functions.array.maps import isnan as isnan
from .functions.array.maps import less as less
from .functions.array.maps import less_equal as less_equal
from .functions.array.maps import log as log
from .functions.array.maps import log10 as log10
from .functions.array.maps import log1p as log1p
from .functions.array.maps import log2 as log2
from .functions.array.maps import logical_and as logical_and
from .functions.array.maps import logical_not as logical_not
from .functions.array.maps import logical_or as logical_or
from .functions.array.maps import logical_xor as logical_xor
from .functions.array.maps import maximum as maximum
from .functions.array.maps import minimum as minimum
from .functions.array.maps import multiply as multiply
from .functions.array.maps import negative as negative
from .functions.array.maps import not_equal as not_equal
from .functions.array.maps import power as power
from .functions.array.maps import remainder as remainder
from .functions.array.maps import round as round
from .functions.array.maps import rsqrt as rsqrt
from .functions.array.maps import sigmoid as sigmoid
from .functions.array.maps import sign as sign
from .functions.array.maps import sin as sin
from .functions.array.maps import sinh as sinh
from .functions.array.maps import sqrt as sqrt
from .functions.array.maps import subtract as subtract
from .functions.array.maps import tan as tan
from .functions.array.maps import tanh as tanh
from .functions.array.maps import trunc as trunc
from .functions.array.numpy_names import absolute as absolute
from .functions.array.numpy_names import arccos as arccos
from .functions.array.numpy_names import arccosh as arccosh
from .functions.array.numpy_names import arcsin as arcsin
from .functions.array.numpy_names import arcsinh as arcsinh
from .functions.array.numpy_names import arctan as arctan
from .functions.array.numpy_names import arctan2 as arctan2
from .functions.array.numpy_names import arctanh as arctanh
from .functions.array.numpy_names import around as around
from .functions.array.numpy_names import array as array
from .functions.array.numpy_names import array_equiv as array_equiv
from .functions.array.numpy_names import asanyarray as asanyarray
from .functions.array.numpy_names import ascontiguousarray as ascontiguousarray
from .functions.array.numpy_names import bitwise_not as bitwise_not
from .functions.array.numpy_names import cbrt as cbrt
from .functions.array.numpy_names import conjugate as conjugate
from .functions.array.numpy_names import copy as copy
from .functions.array.numpy_names import degrees as degrees
from .functions.array.numpy_names import divmod as divmod
from .functions.array.numpy_names import fabs as fabs
from .functions.array.numpy_names import fix as fix
from .functions.array.numpy_names import float_power as float_power
from .functions.array.numpy_names import invert as invert
from .functions.array.numpy_names import iscomplex as iscomplex
from .functions.array.numpy_names import left_shift as left_shift
from .functions.array.numpy_names import lexsort as lexsort
from .functions.array.numpy_names import mod as mod
from .functions.array.numpy_names import modf as modf
from .functions.array.numpy_names import promote_types as promote_types
from .functions.array.numpy_names import radians as radians
from .functions.array.numpy_names import right_shift as right_shift
from .functions.array.numpy_names import rint as rint
from .functions.array.numpy_names import row_stack as row_stack
from .functions.array.numpy_names import true_divide as true_divide
from .functions.array.patterns import block_diag as block_diag
from .functions.array.patterns import geomspace as geomspace
from .functions.array.patterns import kron as kron
from .functions.array.patterns import logspace as logspace
from .functions.array.patterns import tri as tri
from .functions.array.patterns import tril_indices as tril_indices
from .functions.array.patterns import triu_indices as triu_indices
from .functions.array.patterns import vander as vander
from .functions.array.pieces import apply_along_axis as apply_along_axis
from .functions.array.pieces import atleast_1d as atleast_1d
from .functions.array.pieces import atleast_2d as atleast_2d
from .functions.array.pieces import atleast_3d as atleast_3d
from .functions.array.pieces import column_stack as column_stack
from .functions.array.pieces import dsplit as dsplit
from .functions.array.pieces import dstack as dstack
from .functions.array.pieces import fliplr as fliplr
from .functions.array.pieces import flipud as flipud
from .functions.array.pieces import hsplit as hsplit
from .functions.array.pieces import trim_zeros as trim_zeros
from .functions.array.pieces import vsplit as vsplit
from .functions.array.places import argwhere as argwhere
from .functions.array.places import choose as choose
from .functions.array.places import copyto as copyto
from .functions.array.places import diag_indices as diag_indices
from .functions.array.places import diagflat as diagflat
from .functions.array.places import extract as extract
from .functions.array.places import fill_diagonal as fill_diagonal
from .functions.array.places import flatnonzero as flatnonzero
from .functions.array.places import indices as indices
from .functions.array.places import ix_ as ix_
from .functions.array.places import put as put
from .functions.array.places import putmask as putmask
from .functions.array.places import ravel_multi_index as ravel_multi_index
from .functions.array.places import select as select
from .functions.array.places import trace as trace
from .functions.array.places import unravel_index as unravel_index
from .functions.array.products import dot as dot
from .functions.array.products import einsum as einsum
from .functions.array.products import linear as linear
from .functions.array.products import matmul as matmul
from .functions.array.products import outer as outer
from .functions.array.pytorch import addcdiv as addcdiv
from .functions.array.pytorch import addcmul as addcmul
from .functions.array.pytorch import addmm as addmm
from .functions.array.pytorch import addmv as addmv
from .functions.array.pytorch import as_tensor as as_tensor
from .functions.array.pytorch import baddbmm as baddbmm
from .functions.array.pytorch import bmm as bmm
from .functions.array.pytorch import broadcast_tensors as broadcast_tensors
from .functions.array.pytorch import bucketize as bucketize
from .functions.array.pytorch import clamp_max as clamp_max
from .functions.array.pytorch import clamp_min as clamp_min
from .functions.array.pytorch import div as div
from .functions.array.pytorch import eq as eq
from .functions.array.pytorch import ge as ge
from .functions.array.pytorch import ger as ger
from .functions.array.pytorch import gt as gt
from .functions.array.pytorch import is_floating_point as is_floating_point
from .functions.array.pytorch import is_tensor as is_tensor
from .functions.array.pytorch import le as le
from .functions.array.pytorch import lt as lt
from .functions.array.pytorch import masked_fill as masked_fill
from .functions.array.pytorch import masked_select as masked_select
from .functions.array.pytorch import mm as mm
from .functions.array.pytorch import movedim as movedim
from .functions.array.pytorch import mul as mul
from .functions.array.pytorch import mv as mv
from .functions.array.pytorch import ne as ne
from .functions.array.pytorch import neg as neg
from .functions.array.pytorch import numel as numel
from .functions.array.pytorch import sub as sub
from .functions.array.reshaping import broadcast_arrays as broadcast_arrays
from .functions.array.reshaping import broadcast_shapes as broadcast_shapes
from .functions.array.reshaping import broadcast_to as broadcast_to
from .functions.array.reshaping import expand as expand
from .functions.array.reshaping import matrix_transpose as matrix_transpose
from .functions.array.reshaping import moveaxis as moveaxis
from .functions.array.reshaping import reshape as reshape
from .functions.array.reshaping import transpose as transpose
from .functions.array.sets import intersect1d as intersect1d
from .functions.array.sets import isin as isin
from .functions.array.sets import setdiff1d as setdiff1d
from .functions.array.sets import setxor1d as setxor1d
from .functions.array.sets import union1d as union1d
from .functions.array.sets import unique_all as unique_all
from .functions.array.sets import unique_counts as unique_counts
from .functions.array.sets import unique_inverse as unique_inverse
from .functions.array.sets import unique_values as unique_values
from .functions.array.sorting import searchsorted as searchsorted
from .functions.array.statistics import corrcoef as corrcoef
from .functions.array.strided import as_strided as as_strided
from .functions.array.types import can_cast as can_cast
from .functions.array.types import finfo as finfo
from .functions.array.types import iinfo as iinfo
from .functions.array.types import isdtype as isdtype
from .functions.array.types import result_type as result_type
from .functions.complex.parts import angle as angle
from .functions.complex.parts import complex as complex
from .functions.complex.parts import conj as conj
from .functions.complex.parts import imag as imag
from .functions.complex.parts import is_complex as is_complex
from .functions.complex.parts import polar as polar
from .functions.complex.parts import real as real
from .functions.complex.parts import view_as_complex as view_as_complex
from .functions.complex.parts import view_as_real as view_as_real
from .functions.convolution.adaptive import adaptive_avg_pool1d as adaptive_avg_pool1d
from .functions.convolution.adaptive import adaptive_avg_pool2d as adaptive_avg_pool2d
from .functions.convolution.adaptive import adaptive_avg_pool3d as adaptive_avg_pool3d
from .functions.convolution.adaptive import adaptive_max_pool1d as adaptive_max_pool1d
from .functions.convolution.adaptive import adaptive_max_pool2d as adaptive_max_pool2d
from .functions.convolution.adaptive import adaptive_max_pool3d as adaptive_max_pool3d
from .functions.convolution.convolution import conv1d as conv1d
from .functions.convolution.convolution import conv2d as conv2d
from .functions.convolution.convolution import conv3d as conv3d
from .functions.convolution.convolution import conv_transpose1d as conv_transpose1d
from .functions.convolution.convolution import conv_transpose2d as conv_transpose2d
from .functions.convolution.convolution import conv_transpose3d as conv_transpose3d
from .functions.convolution.pooling import avg_pool1d as avg_pool1d
from .functions.convolution.pooling import avg_pool2d as avg_pool2d
from .functions.convolution.pooling import avg_pool3d as avg_pool3d
from .functions.convolution.pooling import max_pool1d as max_pool1d
from .functions.convolution.pooling import max_pool2d as max_pool2d
from .functions.convolution.pooling import max_pool3d as max_pool3d
from .functions.convolution.unpooling import max_unpool1d as max_unpool1d
from .functions.convolution.unpooling import max_unpool2d as max_unpool2d
from .functions.convolution.unpooling import max_unpool3d as max_unpool3d
from .functions.convolution.windows import fold as fold
from .functions.convolution.windows import unfold as unfold
from .functions.learning.activations import celu as celu
from .functions.learning.activations import elu as elu
from .functions.learning.activations import gelu as gelu
from .functions.learning.activations import hardshrink as hardshrink
from .functions.learning.activations import hardsigmoid as hardsigmoid
from .functions.learning.activations import hardswish as hardswish
from .functions.learning.activations import hardtanh as hardtanh
from .functions.learning.activations import leaky_relu as leaky_relu
from .functions.learning.activations import logsigmoid as logsigmoid
from .functions.learning.activations import mish as mish
from .functions.learning.activations import prelu as prelu
from .functions.learning.activations import relu as relu
from .functions.learning.activations import relu6 as relu6
from .functions.learning.activations import selu as selu
from .functions.learning.activations import silu as silu
from .functions.learning.activations import softplus as softplus
from .functions.learning.activations import softshrink as softshrink
from .functions.learning.activations import softsign as softsign
from .functions.learning.activations import swish as swish
from .functions.learning.activations import tanhshrink as tanhshrink
from .functions.learning.activations import threshold as threshold
from .functions.learning.attention import scaled_dot_product_attention as scaled_dot_product_attention
from .functions.learning.images import interpolate as interpolate
from .functions.learning.losses import binary_cross_entropy as binary_cross_entropy
from .functions.learning.losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .functions.learning.losses import cross_entropy as cross_entropy
from .functions.learning.losses import huber_loss as huber_loss
from .functions.learning.losses import kl_div as kl_div
from .functions.learning.losses import l1_loss as l1_loss
from .functions.learning.losses import mse_loss as mse_loss
from .functions.learning.losses import nll_loss as nll_loss
from .functions.learning.losses import smooth_l1_loss as smooth_l1_loss
from .functions.learning.normalisation import batch_norm as batch_norm
from .functions.learning.normalisation import batch_norm_training as batch_norm_training
from .functions.learning.normalisation import group_norm as group_norm
from .functions.learning.normalisation import instance_norm as instance_norm
from .functions.learning.positions import apply_rotary as apply_rotary
from .functions.learning.positions import rotary_angles as rotary_angles
from .functions.learning.positions import rotary_embedding as rotary_embedding
from .functions.learning.quantised import QuantisedTensor as QuantisedTensor
from .functions.learning.quantised import from_blocks as from_blocks
from .functions.learning.quantised import quantise as quantise
from .functions.learning.quantised import quantised_linear as quantised_linear
from .functions.pure import pure as pure
from .functions.random import rand as rand
from .functions.random import randint as randint
from .functions.random import randn as randn
from .functions.sampling import manual_seed as manual_seed
from .functions.sampling import multinomial as multinomial
from .functions.sampling import rand_like as rand_like
from .functions.sampling import randint_like as randint_like
from .functions.sampling import randn_like as randn_like
from .functions.sampling import randperm as randperm
from .functions.series import convolve as convolve
from .functions.series import correlate as correlate
from .functions.series import digitize as digitize
from .functions.series import ediff1d as ediff1d
from .functions.series import inner as inner
from .functions.series import interp as interp
from .functions.series import matvec as matvec
from .functions.series import polyadd as polyadd
from .functions.series import polyder as polyder
from .functions.series import polyint as polyint
from .functions.series import polymul as polymul
from .functions.series import polyval as polyval
from .functions.series import vdot as vdot
from .functions.series import vecmat as vecmat
from .gradients.autograd import checkpoint as checkpoint
from .gradients.autograd import custom_gradient as custom_gradient
from .gradients.autograd import enable_grad as enable_grad
from .gradients.autograd import grad as grad
from .gradients.autograd import is_grad_enabled as is_grad_enabled
from .gradients.autograd import no_grad as no_grad
from .gradients.autograd import set_grad_enabled as set_grad_enabled
from .gradients.autograd import value_and_grad as value_and_grad
from .gradients.hooks import HookHandle as HookHandle
from .gradients.requires_grad import grad_of as grad_of
from .jit.capture import jit as jit
from .jit.inputs import at_capture as at_capture
from .jit.inputs import fresh as fresh
from .jit.inputs import is_captured as is_captured
from .jit.inputs import watch as watch
from .linalg.polynomials import polyfit as polyfit
from .linalg.products import cross as cross
from .runtime.adapters import devices as devices
from .runtime.buffers import Buffer as Buffer
from .runtime.context import Event as Event
from .runtime.device import CpuDevice as CpuDevice
from .runtime.device import default_device as default_device
from .runtime.device import open_device as open_device
from .runtime.device import open_device_async as open_device_async
from .runtime.device import reset_stats as reset_stats
from .runtime.device import set_default_device as set_default_device
from .runtime.device import stats as stats
from .runtime.device import synchronize as synchronize
from .runtime.webgpu import Device as Device
from .signal.windows import bartlett as bartlett
from .signal.windows import blackman as blackman
from .signal.windows import hamming as hamming
from .signal.windows import hanning as hanning
from .signal.windows import kaiser as kaiser
from .special.elementary import sinc as sinc
from .tensor import Tensor as Tensor
from .tools.checking.check import check as check
from .tools.checking.verdict import CheckReport as CheckReport
from .tools.explanation import Explanation as Explanation
from .tools.explanation import explain as explain
from .tools.memory import MemoryReport as MemoryReport
from .tools.memory import memory as memory
from .tools.profiling.profile import Profile as Profile
from .tools.profiling.profile import profile as profile
from .tools.recording.record import Recording as Recording
from .tools.recording.record import record as record
from .tools.recording.replay import replay as replay
from .tools.recording.report import ReplayReport as ReplayReport
from .tools.traced_graph import TracedGraph as TracedGraph
from .tools.traced_graph import TracedNode as TracedNode
from .tools.traced_graph import graph_of as graph_of
from .tuning import tune as tune
from .web.export import export as export

__version__: str
__array_api_version__: str
newaxis: None
e: float
inf: float
nan: float
pi: float
__all__: list[str]

_NAMES: Mapping[str, str]
_HOMES: Mapping[str, str]
_LIBRARIES: frozenset[str]

# fmt: off
def all(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def amax(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def amin(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def aminmax(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> _tuple[Tensor, Tensor]: ...
def any(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def append(x: Tensor, values: _Any, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def argmax(x: Tensor, axis: _int | None = ..., *, keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def argmin(x: Tensor, axis: _int | None = ..., *, keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def argpartition(x: Tensor, kth: _Any, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def argsort(x: Tensor, axis: _int = ..., descending: _bool = ..., stable: _bool = ..., *, dim: _int = ...) -> Tensor: ...
def array_split(x: Tensor, indices_or_sections: _int | _Sequence[_int], axis: _int = ..., *, dim: _int = ...) -> _list[Tensor]: ...
def average(x: Tensor, axis: _Axis = ..., weights: Tensor | None = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def bernoulli(p: _float | Tensor, shape: _Shape | None = ..., dtype: _Any = ..., device: _DeviceLike = ..., *, size: _Shape | None = ...) -> Tensor: ...
def cat(arrays: _Sequence[Tensor], axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def chunk(x: Tensor, chunks: _int, axis: _int = ..., *, dim: _int = ...) -> _list[Tensor]: ...
def clamp(x: Tensor, min: _Any = ..., max: _Any = ..., *, a_min: _Any = ..., a_max: _Any = ...) -> Tensor: ...
def clip(x: Tensor, min: _Any = ..., max: _Any = ..., *, a_min: _Any = ..., a_max: _Any = ...) -> Tensor: ...
def compress(condition: _Any, x: Tensor, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def concat(arrays: _Sequence[Tensor], axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def concatenate(arrays: _Sequence[Tensor], axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def count_nonzero(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def cov(x: Tensor, *, correction: _float = ..., fweights: Tensor | None = ..., aweights: Tensor | None = ..., ddof: _float = ..., unbiased: _float = ...) -> Tensor: ...
def cummax(x: Tensor, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def cummin(x: Tensor, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def cumprod(x: Tensor, axis: _int | None = ..., dtype: _Any = ..., *, dim: _int | None = ...) -> Tensor: ...
def cumsum(x: Tensor, axis: _int | None = ..., dtype: _Any = ..., *, dim: _int | None = ...) -> Tensor: ...
def cumulative_max(x: Tensor, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def cumulative_min(x: Tensor, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def cumulative_prod(x: Tensor, axis: _int | None = ..., dtype: _Any = ..., include_initial: _bool = ..., *, dim: _int | None = ...) -> Tensor: ...
def cumulative_sum(x: Tensor, axis: _int | None = ..., dtype: _Any = ..., include_initial: _bool = ..., *, dim: _int | None = ...) -> Tensor: ...
def cumulative_trapezoid(y: Tensor, x: Tensor | None = ..., dx: _float = ..., axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def delete(x: Tensor, index: _Any, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def diag(x: Tensor, k: _int = ..., *, diagonal: _int = ...) -> Tensor: ...
def diagonal(x: Tensor, offset: _int = ..., axis1: _int = ..., axis2: _int = ..., *, dim1: _int = ..., dim2: _int = ...) -> Tensor: ...
def diff(x: Tensor, n: _int = ..., axis: _int = ..., prepend: Tensor | None = ..., append: Tensor | None = ..., *, dim: _int = ...) -> Tensor: ...
def empty(shape: _Shape = ..., *sizes: _Any, dtype: _Any = ..., device: _DeviceLike = ..., size: _Shape = ...) -> Tensor: ...
def expand_dims(x: Tensor, axis: _int | _Sequence[_int] = ..., *, dim: _int | _Sequence[_int] = ...) -> Tensor: ...
def eye(n_rows: _int = ..., n_cols: _int | None = ..., *, k: _int = ..., dtype: _Any = ..., device: _DeviceLike = ..., n: _int = ..., m: _int | None = ...) -> Tensor: ...
def flatten(x: Tensor, start_axis: _int = ..., end_axis: _int = ..., *, start_dim: _int = ..., end_dim: _int = ...) -> Tensor: ...
def flip(x: Tensor, axis: _int | _Sequence[_int] | None = ..., *, dim: _int | _Sequence[_int] | None = ..., dims: _int | _Sequence[_int] | None = ...) -> Tensor: ...
def full(shape: _Shape = ..., fill_value: _Any = ..., dtype: _Any = ..., *, device: _DeviceLike = ..., size: _Shape = ...) -> Tensor: ...
def gather(x: Tensor, axis: _int = ..., index: _Any = ..., *, dim: _int = ...) -> Tensor: ...
def glu(x: Tensor, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def gradient(x: Tensor, *spacing: _Any, axis: _int | _Sequence[_int] | None = ..., edge_order: _int = ..., dim: _int | _Sequence[_int] | None = ...) -> _list[Tensor]: ...
def identity(n_rows: _int = ..., n_cols: _int | None = ..., *, k: _int = ..., dtype: _Any = ..., device: _DeviceLike = ..., n: _int = ..., m: _int | None = ...) -> Tensor: ...
def index_add(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def index_max(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def index_min(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def index_multiply(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def index_select(x: Tensor, axis: _int = ..., index: _Any = ..., *, dim: _int = ...) -> Tensor: ...
def index_set(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def insert(x: Tensor, index: _Any, values: _Any, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def layer_norm(x: Tensor, normalized_shape: _int | _Sequence[_int] | None = ..., weight: Tensor | None = ..., bias: Tensor | None = ..., eps: _float = ..., *, axis: _int | _Sequence[_int] = ..., dim: _int | _Sequence[_int] = ...) -> Tensor: ...
def linspace(start: _Number | _complex, stop: _Number | _complex = ..., num: _int = ..., dtype: _Any = ..., *, device: _DeviceLike = ..., endpoint: _bool = ..., end: _Number | _complex = ..., steps: _int = ...) -> Tensor: ...
def log_softmax(x: Tensor, axis: _int | _Sequence[_int] = ..., *, dim: _int | _Sequence[_int] = ...) -> Tensor: ...
def logcumsumexp(x: Tensor, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def logsumexp(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def max(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def mean(x: Tensor, axis: _Axis = ..., *, dtype: _Any = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def median(x: Tensor, axis: _int | None = ..., *, keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def min(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def nanargmax(x: Tensor, axis: _int | None = ..., *, keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def nanargmin(x: Tensor, axis: _int | None = ..., *, keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def nancumprod(x: Tensor, axis: _int | None = ..., dtype: _Any = ..., *, dim: _int | None = ...) -> Tensor: ...
def nancumsum(x: Tensor, axis: _int | None = ..., dtype: _Any = ..., *, dim: _int | None = ...) -> Tensor: ...
def nanmax(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def nanmean(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def nanmedian(x: Tensor, axis: _int | None = ..., *, keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def nanmin(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def nanpercentile(x: Tensor, q: _Any, axis: _int | None = ..., *, method: _str = ..., keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def nanprod(x: Tensor, axis: _Axis = ..., *, dtype: _Any = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def nanquantile(x: Tensor, q: _Any, axis: _int | None = ..., *, method: _str = ..., keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def nanstd(x: Tensor, axis: _Axis = ..., *, correction: _float = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ..., ddof: _float = ..., unbiased: _float = ...) -> Tensor: ...
def nansum(x: Tensor, axis: _Axis = ..., *, dtype: _Any = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def nanvar(x: Tensor, axis: _Axis = ..., *, correction: _float = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ..., ddof: _float = ..., unbiased: _float = ...) -> Tensor: ...
def narrow(x: Tensor, axis: _int = ..., start: _int = ..., length: _int = ..., *, dim: _int = ...) -> Tensor: ...
def norm(x: Tensor, p: _float | _str = ..., axis: _Axis = ..., keepdims: _bool = ..., *, dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def normalize(x: Tensor, p: _float = ..., axis: _int = ..., eps: _float = ..., *, dim: _int = ...) -> Tensor: ...
def ones(shape: _Shape = ..., *sizes: _Any, dtype: _Any = ..., device: _DeviceLike = ..., size: _Shape = ...) -> Tensor: ...
def packbits(x: Tensor, axis: _int | None = ..., bitorder: _str = ..., *, dim: _int | None = ...) -> Tensor: ...
def partition(x: Tensor, kth: _Any, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def percentile(x: Tensor, q: _Any, axis: _int | None = ..., *, method: _str = ..., keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def permute_dims(x: Tensor, axes: _Sequence[_int] = ..., *, dims: _Sequence[_int] = ...) -> Tensor: ...
def prod(x: Tensor, axis: _Axis = ..., *, dtype: _Any = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def ptp(x: Tensor, axis: _Axis = ..., *, keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def put_along_axis(x: Tensor, indices: _Any, values: _Any, axis: _int = ..., *, dim: _int = ...) -> None: ...
def quantile(x: Tensor, q: _Any, axis: _int | None = ..., *, method: _str = ..., keepdims: _bool = ..., dim: _int | None = ..., keepdim: _bool = ...) -> Tensor: ...
def ravel(x: Tensor, start_axis: _int = ..., end_axis: _int = ..., *, start_dim: _int = ..., end_dim: _int = ...) -> Tensor: ...
def repeat(x: Tensor, repeats: _int | _Sequence[_int] | Tensor, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def repeat_interleave(x: Tensor, repeats: _int | _Sequence[_int] | Tensor, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def rms_norm(x: Tensor, normalized_shape: _int | _Sequence[_int] | None = ..., weight: Tensor | None = ..., eps: _float | None = ..., *, axis: _int | _Sequence[_int] = ..., dim: _int | _Sequence[_int] = ...) -> Tensor: ...
def roll(x: Tensor, shift: _int | _Sequence[_int] = ..., axis: _int | _Sequence[_int] | None = ..., *, dim: _int | _Sequence[_int] | None = ..., dims: _int | _Sequence[_int] | None = ..., shifts: _int | _Sequence[_int] = ...) -> Tensor: ...
def rot90(x: Tensor, k: _int = ..., axes: _tuple[_int, _int] = ..., *, dims: _tuple[_int, _int] = ...) -> Tensor: ...
def scatter(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def scatter_add(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def scatter_max(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def scatter_min(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def scatter_multiply(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def scatter_set(x: Tensor, index: _Any, updates: Tensor | _Number, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def sliding_windows(x: Tensor, size: _int, step: _int = ..., axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def softmax(x: Tensor, axis: _int | _Sequence[_int] = ..., *, dim: _int | _Sequence[_int] = ...) -> Tensor: ...
def softmin(x: Tensor, axis: _int | _Sequence[_int] = ..., *, dim: _int | _Sequence[_int] = ...) -> Tensor: ...
def sort(x: Tensor, axis: _int = ..., descending: _bool = ..., stable: _bool = ..., *, dim: _int = ...) -> Tensor: ...
def split(x: Tensor, indices_or_sections: _int | _Sequence[_int], axis: _int = ..., *, dim: _int = ...) -> _list[Tensor]: ...
def squeeze(x: Tensor, axis: _int | _Sequence[_int] | None = ..., *, dim: _int | _Sequence[_int] | None = ...) -> Tensor: ...
def stack(arrays: _Sequence[Tensor], axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def std(x: Tensor, axis: _Axis = ..., *, correction: _float = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ..., ddof: _float = ..., unbiased: _float = ...) -> Tensor: ...
def std_mean(x: Tensor, axis: _Axis = ..., *, correction: _float = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ..., ddof: _float = ..., unbiased: _float = ...) -> _tuple[Tensor, Tensor]: ...
def sum(x: Tensor, axis: _Axis = ..., *, dtype: _Any = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def swapaxes(x: Tensor, axis1: _int = ..., axis2: _int = ..., *, dim0: _int = ..., dim1: _int = ...) -> Tensor: ...
def swapdims(x: Tensor, axis1: _int = ..., axis2: _int = ..., *, dim0: _int = ..., dim1: _int = ...) -> Tensor: ...
def take(x: Tensor, indices: _Any, axis: _int | None = ..., *, dim: _int | None = ...) -> Tensor: ...
def take_along_axis(x: Tensor, indices: _Any, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def take_along_dim(x: Tensor, indices: _Any, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def tensor_split(x: Tensor, indices_or_sections: _int | _Sequence[_int], axis: _int = ..., *, dim: _int = ...) -> _list[Tensor]: ...
def tensordot(a: Tensor, b: Tensor, axes: _int | _Sequence[_int | _Sequence[_int]] = ..., *, dims: _int | _Sequence[_int | _Sequence[_int]] = ...) -> Tensor: ...
def tile(x: Tensor, repetitions: _int | _Sequence[_int] = ..., *, dims: _int | _Sequence[_int] = ..., reps: _int | _Sequence[_int] = ...) -> Tensor: ...
def topk(x: Tensor, k: _int, axis: _int = ..., largest: _bool = ..., sorted: _bool = ..., *, dim: _int = ...) -> _tuple[Tensor, Tensor]: ...
def trapezoid(y: Tensor, x: Tensor | None = ..., dx: _float = ..., axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def trapz(y: Tensor, x: Tensor | None = ..., dx: _float = ..., axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def tril(x: Tensor, k: _int = ..., *, diagonal: _int = ...) -> Tensor: ...
def triu(x: Tensor, k: _int = ..., *, diagonal: _int = ...) -> Tensor: ...
def unbind(x: Tensor, axis: _int = ..., *, dim: _int = ...) -> _tuple[Tensor, ...]: ...
def unflatten(x: Tensor, axis: _int = ..., sizes: _Sequence[_int] = ..., *, dim: _int = ...) -> Tensor: ...
def unique(x: Tensor, return_index: _bool = ..., return_inverse: _bool = ..., return_counts: _bool = ..., axis: _int | None = ..., *, dim: _int | None = ...) -> _Any: ...
def unique_consecutive(x: Tensor, return_inverse: _bool = ..., return_counts: _bool = ..., axis: _int | None = ..., *, dim: _int | None = ...) -> _Any: ...
def unpackbits(x: Tensor, axis: _int | None = ..., count: _int | None = ..., bitorder: _str = ..., *, dim: _int | None = ...) -> Tensor: ...
def unsqueeze(x: Tensor, axis: _int | _Sequence[_int] = ..., *, dim: _int | _Sequence[_int] = ...) -> Tensor: ...
def unstack(x: Tensor, axis: _int = ..., *, dim: _int = ...) -> _tuple[Tensor, ...]: ...
def unwrap(x: Tensor, discont: _float | None = ..., axis: _int = ..., *, period: _float = ..., dim: _int = ...) -> Tensor: ...
def var(x: Tensor, axis: _Axis = ..., *, correction: _float = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ..., ddof: _float = ..., unbiased: _float = ...) -> Tensor: ...
def var_mean(x: Tensor, axis: _Axis = ..., *, correction: _float = ..., keepdims: _bool = ..., dim: _Axis = ..., keepdim: _bool = ..., ddof: _float = ..., unbiased: _float = ...) -> _tuple[Tensor, Tensor]: ...
def vecdot(a: Tensor, b: Tensor, axis: _int = ..., *, dim: _int = ...) -> Tensor: ...
def vector_norm(x: Tensor, /, *, axis: _Axis = ..., keepdims: _bool = ..., ord: _float = ..., dim: _Axis = ..., keepdim: _bool = ...) -> Tensor: ...
def zeros(shape: _Shape = ..., *sizes: _Any, dtype: _Any = ..., device: _DeviceLike = ..., size: _Shape = ...) -> Tensor: ...
