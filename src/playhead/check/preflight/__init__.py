"""Looking at a config, its data and its machine before anything is trained."""

from __future__ import annotations
