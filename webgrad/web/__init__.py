"""Models in the browser: Python writes what a page needs of a model, small JavaScript modules read it."""
