"""Augmentation: noise, speed, stretches, rooms and codecs, each from the sample's own key."""

from __future__ import annotations

from playhead.fetch.augment.apply import Augmenter, Prepared
from playhead.fetch.augment.settings import Augmentation

__all__ = ["Augmentation", "Augmenter", "Prepared"]
