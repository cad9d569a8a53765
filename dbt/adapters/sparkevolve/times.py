"""Times as text."""

from datetime import datetime, timezone


def iso(moment: datetime) -> str:
    """Return a time to the second, with its offset."""
    return moment.isoformat(timespec="seconds")


def iso_of(milliseconds: int) -> str | None:
    """Return a time in UTC, given in milliseconds since the epoch; None if no calendar has it.

    Some writers give microseconds, which are years that no calendar has.
    """
    try:
        return iso(datetime.fromtimestamp(milliseconds / 1000, timezone.utc))
    except (ValueError, OverflowError, OSError):
        return None
