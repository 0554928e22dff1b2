"""Batch sizes that fit: the largest batch that each length bucket can take."""
