"""In the browser: a function's plan written down as files, with pages around it, and served to try it.

Reading order: paper (a device that only plans), tracing (a function as a graph on it), planning (the graph as
commands), shards (weights), bundle (all of it as files), page and single_file (what a user sees), folder,
export (what a user calls); tokenizing and chat_segments (language models' texts) and serving beside them.
"""
