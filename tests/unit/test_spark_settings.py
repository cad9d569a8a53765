"""Which settings of a session are refused, and which statements change settings."""

import time

import pytest

from dbt.adapters.sparkevolve.errors import SettingError
from dbt.adapters.sparkevolve.spark.sql_settings import (
    REFUSED,
    changes_settings,
    check_settings,
    value_instead,
)


@pytest.mark.parametrize(
    ("name", "value"),
    [(r.name, text) for r in REFUSED for text in (r.value.lower(), r.value.upper(), f" {r.value} ")],
)
def test_a_setting_is_refused_by_its_name(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"The Spark setting `{name}` is `{value}`. ") as caught:
        check_settings({name: value}.get)
    assert (caught.value.setting, caught.value.value) == (name, value)


def test_settings_with_sparks_own_values_are_not_refused() -> None:
    check_settings({}.get)
    check_settings({refused.name: value_instead(refused.name) for refused in REFUSED}.get)
    assert value_instead("spark.sql.storeAssignmentPolicy") == "ANSI"


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("set a.b=true", True),
        ("SET a.b = true;", True),
        ('/* {"app": "dbt"} */\n  set a.b=c', True),
        ("-- why\nset\n a.b=c", True),
        ("reset", True),
        ("RESET a.b", True),
        ("set a.b", False),
        ("set", False),
        ("select 1 as settings where 1=1", False),
        ("update t set a=1", False),
        ("/* set a=b */ select 1", False),
        ("setting a=b", False),
    ],
)
def test_a_statement_that_sets_something_is_known(sql: str, changes: bool) -> None:
    assert changes_settings(sql) == changes


def test_a_query_with_many_comments_is_looked_at_in_no_time() -> None:
    began = time.monotonic()
    # Each comment more would double the time if one could end at more than one place.
    assert not changes_settings("/* dbt */ select 1 " + "/* a */\n" * 24 + "as id")
    assert time.monotonic() - began < 1
