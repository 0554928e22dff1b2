"""Proof that a config resumes exactly, by runs that are stopped and resumed."""
