"""Loaders of Playhead inside NeMo: the same call, the same config sections, the same datasets."""

from playhead.integrations.nemo.installing import install, uninstall
from playhead.integrations.nemo.loading import NemoLoader, get_lhotse_dataloader_from_config

__all__ = ["NemoLoader", "get_lhotse_dataloader_from_config", "install", "uninstall"]
