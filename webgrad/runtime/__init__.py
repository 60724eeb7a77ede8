"""The runtime: a queue over virtual buffers, and what stands under it."""
