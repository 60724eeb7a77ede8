"""Models in the browser: what an export writes, and the pages that run it."""
