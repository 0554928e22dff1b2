"""The sections of a page, one module each: a plot and its numbers."""
