"""The loader: blend, index, plan and fetch put together."""

from playhead.loader.dataloader import dataloader
from playhead.loader.loader import Loader

__all__ = ["Loader", "dataloader"]
