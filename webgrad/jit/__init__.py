"""jit: a function's graph is captured once, and its commands are replayed for new inputs.

`capture` finds or makes a capture for a call, `trace` runs the function over placeholders, `replay` is a
captured call; `pytree` flattens arguments and results, `closures`, `inputs` and `escapes` are what a function
closes over, what must be read anew at each call, and what it leaves behind.
"""
