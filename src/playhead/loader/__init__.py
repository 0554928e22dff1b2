"""The loader: blend, index, plan and fetch put together."""

from playhead.loader.dataloader import dataloader
from playhead.loader.loader import Loader
from playhead.loader.validation import validation_dataloaders

__all__ = ["Loader", "dataloader", "validation_dataloaders"]
