"""Which batch of a microbatch model replaces all rows in the package: the one that dbt begins with."""

import datetime as dates
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
import pytz
from dbt.artifacts.resources import NodeConfig
from dbt.artifacts.resources.types import BatchSize
from dbt.materializations.incremental.microbatch import MicrobatchBuilder

from tests.unit.package_macros import PackageMacros

NOON = datetime(2024, 3, 10, 12, 30)


def is_full_refresh(
    start: datetime | None,
    arguments: dict[str, Any],
    asked: bool = True,
    version: str = "1.11.0",
    **config: Any,
) -> bool:
    macros = PackageMacros(
        {
            "modules": SimpleNamespace(datetime=dates, pytz=pytz),
            "should_full_refresh": lambda: asked,
            "config": {"__dbt_internal_microbatch_event_time_start": start, **config},
            "invocation_args_dict": arguments,
            "dbt_version": version,
        }
    )
    found = macros.is_full_refresh()
    assert isinstance(found, bool)
    return found


@pytest.mark.parametrize("size", list(BatchSize))
@pytest.mark.parametrize(
    ("begin", "arguments"),
    [
        (NOON, {}),
        ("2024-03-10T12:30:00", {}),
        ("2024-03-10", {}),
        ("2024-03-10T12:30:00Z", {}),
        (datetime(2019, 1, 1), {"event_time_start": NOON}),
        (datetime(2019, 1, 1), {"event_time_start": NOON.replace(tzinfo=timezone.utc)}),
        (datetime(2019, 1, 1), {"event_time_start": "2024-03-10 12:30:00"}),
        (datetime(2019, 1, 1), {"event_time_start": NOON, "sample": SimpleNamespace(start=NOON)}),
    ],
)
def test_the_batch_with_which_dbt_begins_replaces_and_no_other(
    size: BatchSize, begin: Any, arguments: dict[str, Any]
) -> None:
    given = arguments.get("event_time_start", begin)
    moment = datetime.fromisoformat(given.rstrip("Z")) if isinstance(given, str) else given
    config = NodeConfig(incremental_strategy="microbatch", batch_size=size, begin=moment)
    model: Any = SimpleNamespace(config=config)
    end = datetime(2030, 1, 1, tzinfo=timezone.utc)
    builder = MicrobatchBuilder(model, False, moment if "event_time_start" in arguments else None, None, end)
    first = builder.build_start_time(builder.build_end_time())
    settings = {"begin": begin, "batch_size": size.value}
    assert first is not None
    assert is_full_refresh(first, arguments, **settings)
    for batches in (1, 2, 25):
        later = MicrobatchBuilder.offset_timestamp(first, size, batches)
        assert not is_full_refresh(later, arguments, **settings)


def test_what_is_no_batch_of_a_full_refresh_is_dbts_to_say() -> None:
    first, later = datetime(2024, 3, 10), datetime(2024, 3, 11)
    config = {"begin": first, "batch_size": "day"}
    assert not is_full_refresh(first, {}, asked=False, **config)
    assert is_full_refresh(None, {})
    # dbt v2, of which it is not known what macros see of the command.
    assert is_full_refresh(later, {}, version="2.0.0", **config)
