"""The errors webgrad raises: one tree, each message saying what failed, with which values, and what to do.

WebgradError               (a RuntimeError, as PyTorch's programs expect)
├── ConfigError            a setting in webgrad.toml or the environment is wrong (also ValueError)
├── DeviceError            the device cannot be had, or was misused
│   ├── NoAdapterError     no GPU adapter of the kind asked for
│   ├── DeviceLostError    the GPU or its driver went away
│   └── ForkError          the GPU was used in a forked child
├── OutOfMemoryError       the device has no room (also MemoryError)
├── BufferError            a buffer cannot be used so (also ValueError, and Python's BufferError)
│   ├── StaleBufferError   the buffer was freed, or its slot is someone else's now
│   └── ForeignBufferError the buffer belongs to another device or batch
├── LaunchError            a kernel launch that cannot be right (also ValueError)
├── BatchError             a Batch used out of order
├── CaptureError           a function that webgrad.jit cannot capture
├── GradientError          a gradient that cannot be computed, or is asked for where there is none
├── ArgumentError          an option or number that is not allowed (also ValueError)
├── ShapeError             shapes that do not fit (also ValueError)
│   └── AxisError          an axis that a tensor does not have (also IndexError)
├── IndexingError          an index that a tensor does not have, or cannot take (also IndexError)
├── DTypeError             a data type that this op or device does not take (also TypeError)
│   └── ProtocolError      a value without the protocol that is asked for (also AttributeError)
├── LinearAlgebraError     a matrix that has no such factors: singular, say (also numpy.linalg.LinAlgError)
├── MissingPackageError    what is asked for needs a package that is not installed (also ImportError)
├── ModelFileError         a file of weights or data is damaged, missing, or does not fit (also ValueError)
└── ShaderError            WGSL that cannot be made or compiled
    ├── TemplateError      a .pwgsl template or its defines are wrong
    └── CompileError       the shader compiler refused the text
"""

from __future__ import annotations

import builtins

__all__ = [
    "ArgumentError",
    "AxisError",
    "BatchError",
    "BufferError",
    "CaptureError",
    "CompileError",
    "ConfigError",
    "DTypeError",
    "DeviceError",
    "DeviceLostError",
    "ForeignBufferError",
    "ForkError",
    "GradientError",
    "IndexingError",
    "LaunchError",
    "LinearAlgebraError",
    "MissingPackageError",
    "ModelFileError",
    "NoAdapterError",
    "OutOfMemoryError",
    "ProtocolError",
    "ShaderError",
    "ShapeError",
    "StaleBufferError",
    "TemplateError",
    "WebgradError",
]


class WebgradError(RuntimeError):
    """The root of every error webgrad raises on purpose; programs for PyTorch catch a RuntimeError."""


class ConfigError(WebgradError, ValueError):
    """A setting in webgrad.toml or the environment is wrong."""


class DeviceError(WebgradError):
    """The device cannot be had, or was misused."""


class NoAdapterError(DeviceError):
    """No GPU adapter of the kind asked for; the message says what to install."""


class DeviceLostError(DeviceError):
    """The GPU or its driver went away; the next use opens a new device."""


class ForkError(DeviceError):
    """The GPU was used in a forked child, where no driver works."""


class OutOfMemoryError(WebgradError, MemoryError):
    """The device has no room, even after everything unused was let go."""


class BufferError(WebgradError, ValueError, builtins.BufferError):
    """A buffer cannot be used so."""


class StaleBufferError(BufferError):
    """The buffer was freed, or its slot belongs to another buffer now."""


class ForeignBufferError(BufferError):
    """The buffer belongs to another device or batch."""


class LaunchError(WebgradError, ValueError):
    """A kernel launch that cannot be right."""


class BatchError(WebgradError):
    """A Batch used out of order: read before execute, say."""


class CaptureError(WebgradError):
    """A function that webgrad.jit cannot capture: it reads a value, say."""


class GradientError(WebgradError):
    """A gradient that cannot be computed, or is asked for where there is none."""


class ArgumentError(WebgradError, ValueError):
    """An option or a number that is not allowed; the message says which are."""


class ShapeError(WebgradError, ValueError):
    """Shapes that do not fit together."""


class AxisError(ShapeError, IndexError):
    """An axis that a tensor does not have."""


class IndexingError(WebgradError, IndexError):
    """An index that a tensor does not have, or cannot take."""


class DTypeError(WebgradError, TypeError):
    """A data type that this op or device does not take."""


class ProtocolError(DTypeError, AttributeError):
    """A value without the protocol that is asked for, such as __dlpack__."""


class LinearAlgebraError(WebgradError, ValueError):
    """A matrix that has no such factors: singular, not positive definite, or not of finite numbers.

    From the first one that is raised on it is NumPy's LinAlgError too (webgrad/linalg/host.py).
    """


class MissingPackageError(WebgradError, ImportError):
    """What is asked for needs a package that is not installed here."""


class ModelFileError(WebgradError, ValueError):
    """A file of weights or data that is damaged or missing, or does not fit what it is loaded into."""


class ShaderError(WebgradError):
    """WGSL that cannot be made or compiled."""


class TemplateError(ShaderError):
    """A .pwgsl template or its defines are wrong; the message gives file and line."""


class CompileError(ShaderError):
    """The shader compiler refused the text; the message shows the numbered source line."""
