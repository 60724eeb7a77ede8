"""Every op by NumPy: what runs node by node, what has no kernel, and what tests compare with."""
