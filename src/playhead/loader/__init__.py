"""The loader: blend, index, plan and fetch put together."""

from playhead.loader.dataloader import dataloader
from playhead.loader.loader import Loader
from playhead.loader.logged import DataLog
from playhead.loader.validation import validation_dataloaders

__all__ = ["DataLog", "Loader", "dataloader", "validation_dataloaders"]
