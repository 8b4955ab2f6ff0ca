"""What starts runs: the watch, the schedules, and automation for those who turn it on."""

from sensors.automation import automation
from sensors.schedules import hourly_checks, nightly
from sensors.watch import source_watch

__all__ = ["automation", "hourly_checks", "nightly", "source_watch"]
