"""Probes of real memory: each a process of its own, forked from one that has the model."""
