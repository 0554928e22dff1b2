"""Indexes: the `.idx` sidecars of data files, and the packs of a blend's leaves."""
