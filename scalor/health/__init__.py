"""Health report of a tracking run: how far its tracks can be trusted, measured without labels."""

from scalor.health.monitor import HealthMonitor
from scalor.health.rules import judge_frames
from scalor.health.verdict import Health, Measure

__all__ = ["Health", "HealthMonitor", "Measure", "judge_frames"]
