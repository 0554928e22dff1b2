"""The plan: which rows every micro-batch of every step holds, as a pure function of a position."""

from playhead.plan.batch import MicroBatch
from playhead.plan.batching import Batching
from playhead.plan.columns import LeafColumns
from playhead.plan.opening import start
from playhead.plan.position import PLAN_VERSION, POSITION_VERSION, Link, Position
from playhead.plan.resume import resume
from playhead.plan.settings import Shape
from playhead.plan.stats import WindowStats
from playhead.plan.window import WindowPlan, count_steps, plan_window

__all__ = [
    "PLAN_VERSION",
    "POSITION_VERSION",
    "Batching",
    "LeafColumns",
    "Link",
    "MicroBatch",
    "Position",
    "Shape",
    "WindowPlan",
    "WindowStats",
    "count_steps",
    "plan_window",
    "resume",
    "start",
]
