"""Bins: length classes of equal mass, or of least padding, out of the columns of a blend."""
