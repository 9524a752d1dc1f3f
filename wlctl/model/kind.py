"""How a workload runs: what is needed of it where nothing else of it is."""

from enum import StrEnum


class Kind(StrEnum):
    """How a workload runs."""

    SERVICE = "service"
    """Until stopped."""
    JOB = "job"
    """Once."""
    INTERVAL = "interval"
    """A job on a schedule."""
