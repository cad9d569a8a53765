"""The variables of a run in the package: which are on, where they may stand, and near misses."""

from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.sparkevolve.variables import KNOWN, is_on, unread
from tests.unit.package_macros import PURE, PackageMacros


def macros(given: dict[str, Any], noted: dict[str, Any] | None = None, code: str = "") -> PackageMacros:
    graph = {"nodes": {"model.case.t": {"raw_code": code}}}
    if noted is not None:
        graph["sparkevolve_variables"] = noted
    return PackageMacros({"graph": graph, "var": lambda name, other=None: given.get(name, other)})


@pytest.mark.parametrize("value", [True, "yes", " ON ", 1, "1", False, "no", "off", 0, "False"])
def test_a_variable_is_on_by_any_word_for_that(value: object) -> None:
    for name in KNOWN:
        assert macros({name: value}).variable_is_on(name) == is_on(name, value)
        assert macros({}, {name: value}).variable_is_on(name) == is_on(name, value)
        assert macros({}).variable_is_on(name) is False


def test_a_stop_counts_wherever_it_stands() -> None:
    name = "sparkevolve_freeze_schema"
    assert macros({name: False}, {name: True}).variable_is_on(name)
    assert macros({name: True}, {name: False}).variable_is_on(name)
    for given, noted in (({name: "maybe"}, {}), ({}, {name: "maybe"})):
        with pytest.raises(CompilationError, match='is "maybe", which is neither true nor false'):
            macros(given, noted).variable_is_on(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "sparkevolve_plan_onyl",
            "sparkevolve-plan-only",
            "SparkEvolve_Freeze_Schema",
            "sparkevolve_frezeschema",
        ),
        *("sparkevolve", "sparkevolve_", "sparkevolve_dry_run", "sparkevolved", "plan_only", "other"),
        *("sparkevlove_plan_only", *KNOWN),
    ],
)
def test_a_variable_that_nobody_reads_is_told_as_the_adapter_does(name: str) -> None:
    expected = unread({name: True}, lambda name: False)
    assert macros({}).unread_variables({name: True}) == expected
    assert macros({}, code=f"{{{{ var('{name}') }}}}").unread_variables({name: True}) == []
    # What stands there for a package of its own.
    assert macros({}).unread_variables({name: {"a": 1}}) == []


def test_letters_that_are_wrong_are_counted() -> None:
    counted = [
        PURE.letters_wrong(*pair) for pair in (("", ""), ("abc", "abc"), ("ab", "abc"), ("abc", "xbz"))
    ]
    assert counted == [0, 0, 1, 2]


@pytest.mark.parametrize("is_frozen", [True, False])
def test_no_replacement_is_advised_that_a_frozen_run_refuses_too(is_frozen: bool) -> None:
    with pytest.raises(CompilationError) as caught:
        macros({"sparkevolve_freeze_schema": is_frozen}).refuse("t", ["a"], [], True)
    assert ("With `full_refresh_schema: replace`" in str(caught.value)) is not is_frozen
