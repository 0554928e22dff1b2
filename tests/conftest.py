"""Settings of the whole test suite."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("all", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("PLAYHEAD_HYPOTHESIS", "default"))
