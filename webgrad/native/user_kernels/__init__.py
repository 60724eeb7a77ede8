"""Users' WGSL kernels as native code."""
