"""Variables of a run: what turns them on, and what is said of those that nobody reads."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt.adapters.sparkevolve.errors import VariableError
from dbt.adapters.sparkevolve.load.checks import Checks
from dbt.adapters.sparkevolve.spark.interface import Spark


def checks(given: dict[str, Any] | None = None, *macros: str) -> Checks:
    texts = {f"macro.p.m{number}": SimpleNamespace(macro_sql=text) for number, text in enumerate(macros)}
    return Checks(cast("Spark", None), texts, given)


@pytest.mark.parametrize("word", ["false", "False", "FALSE", " no ", "off", "0", 0, False])
def test_a_text_that_means_no_is_not_yes(word: object) -> None:
    assert not checks().plans_only(word)
    assert not checks().freezes_schema(word)


@pytest.mark.parametrize("word", ["true", "True", "yes", "on", "1", 1, True])
def test_and_one_that_means_yes_is(word: object) -> None:
    assert checks().plans_only(word)
    assert checks().freezes_schema(word)


@pytest.mark.parametrize(("word", "shown"), [("maybe", '"maybe"'), ("", '""'), (None, "null"), (2, "2")])
def test_what_means_neither_is_refused(word: object, shown: str) -> None:
    with pytest.raises(VariableError) as raised:
        checks().plans_only(word)
    assert raised.value.msg == (
        f"The variable `sparkevolve_plan_only` is {shown}, which is neither true nor false: give it as "
        "`--vars 'sparkevolve_plan_only: true'`, or leave it out. Nothing was built."
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("sparkevolve_freze_schema", "sparkevolve_freeze_schema"),
        ("sparkevolve_freeze_schemas", "sparkevolve_freeze_schema"),
        ("sparkevolve-freeze-schema", "sparkevolve_freeze_schema"),
        ("SPARKEVOLVE_PLAN_ONLY", "sparkevolve_plan_only"),
        ("sparkevovle_plan_only", "sparkevolve_plan_only"),
        ("sparkevolve_only_plan", "sparkevolve_plan_only"),
        ("sparkevolve_verbose", None),
        ("sparkevolve_source_schema", None),
        ("sparkevolve_frozen_schemas", "sparkevolve_freeze_schema"),
        ("spark_evolve_freeze_schema", "sparkevolve_freeze_schema"),
        ("sparkevolve_plan", None),
    ],
)
def test_a_variable_that_nobody_reads_is_told_of_once(name: str, meant: str | None) -> None:
    looked = checks({name: "x", "sparkevolve_plan_only": False, "start": 1, "sparkevolve": {"a": 1}})
    hint = f" Did you mean `{meant}`?" if meant else ""
    assert looked.unread_variables({}) == [
        f"The variable `{name}` has no effect: sparkevolve reads `sparkevolve_freeze_schema` and "
        f"`sparkevolve_plan_only`.{hint}"
    ]
    assert looked.unread_variables({}) == []


def test_a_variable_that_the_project_reads_is_its_own() -> None:
    name = "sparkevolve_days"
    graph = {"nodes": {"model.p.m": {"raw_code": f"select {{{{ var('{name}', 3) }}}}"}, "seed.p.s": {}}}
    assert checks({name: 1}).unread_variables(graph) == []
    assert checks({name: 1}, "x", f'{{% if var("{name}") %}}').unread_variables({}) == []
    assert len(checks({name: 1}, f"{name}_more '{name}s'").unread_variables({})) == 1


@pytest.mark.parametrize("name", ["sparkevolved_catalog", "plan_only", "freeze_schema", "full_refresh_plan"])
def test_a_variable_that_is_not_like_ours_is_nobody_elses_business(name: str) -> None:
    assert checks({name: 1}).unread_variables({}) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("models/sources.yml", """- {name: raw, schema: "{{ var('sparkevolve_days') }}"}"""),
        ("models/m.yaml", """enabled: '{{ var( ''sparkevolve_days'', true) }}'"""),
        ("dbt_project.yml", r'+enabled: "{{ var(\"sparkevolve_days\") }}"'),
        ("models/disabled.sql", "{{ config(enabled=var('sparkevolve_days', false)) }} select 1"),
        ("dbt_packages/other/models/m.yml", "x: \"{{ var('sparkevolve_days') }}\""),
    ],
)
def test_a_variable_that_a_file_of_the_project_reads_is_its_own(tmp_path: Path, file: str, text: str) -> None:
    def said() -> list[str]:
        variables = {"sparkevolve_days": 1}
        return Checks(cast("Spark", None), {}, variables, lambda: [tmp_path]).unread_variables({})

    for other in ("dbt_project.yml", "target/run/m.sql", ".git/m.sql"):
        place = tmp_path / other
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text if place.suffix == ".sql" else "vars: {'sparkevolve_days': 1}")
    assert len(said()) == 1
    place = tmp_path / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    assert said() == []
