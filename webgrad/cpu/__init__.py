"""The cpu: groups by NumPy, block by block, and the node-by-node reference."""
