"""Defaults that name a time without a time zone: which instant that is, Spark says as it does in a query."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from dbt.adapters.sparkevolve.evolution.defaults import LocalTime, local_time
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.spark.interface import Spark

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def with_instants(settings: IncrementalSettings, spark: Spark) -> IncrementalSettings:
    """Return settings whose defaults without a time zone say which instant they are for a column of instants.

    Args:
        settings: the model's.
        spark: where the node runs. It is asked only if there are such defaults.
    """
    found = [(name, moment) for name, given in settings.defaults.items() if (moment := local_time(given))]
    if not found:
        return settings
    # Under any `spark.sql.timestampType`, and with the time zones and their changes that Spark knows.
    instants = (f"unix_micros(TIMESTAMP_LTZ '{moment.isoformat(sep=' ')}')" for _, moment in found)
    (row,) = spark.rows(f"SELECT {', '.join(instants)}")
    defaults = dict(settings.defaults)
    for (name, _), micros in zip(found, row, strict=True):
        try:
            defaults[name] = LocalTime(defaults[name], _EPOCH + timedelta(microseconds=int(micros)))
        except OverflowError:
            continue  # what has no such instant is refused for its type
    return replace(settings, defaults=defaults)
