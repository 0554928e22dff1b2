"""Proving that what a config and a dataset give can be repeated."""

from __future__ import annotations

from playhead.check.repeatable import Difference, Repeatability, check_repeatable
from playhead.check.survey import Generator

__all__ = ["Difference", "Generator", "Repeatability", "check_repeatable"]
