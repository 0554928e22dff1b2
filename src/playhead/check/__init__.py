"""Proving that what a config and a dataset give can be repeated."""
