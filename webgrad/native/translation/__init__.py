"""WGSL's spellings and library functions as LLVM's text, for any number of lanes."""
