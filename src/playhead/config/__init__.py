"""The options: every key of a config, with its unit, its default and what it means here."""

from playhead.config.options import Options
from playhead.config.read import read_options
from playhead.config.spot import Spot
from playhead.config.status import STATUS, UNITS, Status

__all__ = ["STATUS", "UNITS", "Options", "Spot", "Status", "read_options"]
