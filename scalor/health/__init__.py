"""How far the tracks of a run can be trusted, found without labels."""

from scalor.health.monitor import HealthMonitor
from scalor.health.report import Health, Measure

__all__ = ["Health", "HealthMonitor", "Measure"]
