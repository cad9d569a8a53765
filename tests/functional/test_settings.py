"""Settings of the Spark session: what is written means the same under all, or they are refused by name."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.harness import Scenario, sort_rows

Factory = Callable[..., Scenario]
OVERWRITE = "spark.sql.sources.partitionOverwriteMode"
ESCAPED = "spark.sql.parser.escapedStringLiterals"

# What a literal could get wrong, as SQL that means the same under every setting.
ODD_TEXTS = ["a\\b", "ends in \\", "it's", "'\\''", "two\nlines", "😀 \\u0041", "nul\0nul", 'say "x"', "\\%_"]
ODD_TEXTS += ["${spark.app.name}"]


def text_sql(text: str) -> str:
    return f"cast(X'{text.encode().hex()}' as string)"


@pytest.mark.parametrize("mode", ["static", "dynamic"])
@pytest.mark.parametrize("place", ["server_side_parameters", "spark_config", "hook"])
def test_the_overwrite_mode_is_that_of_the_load(
    scenario_factory: Factory, profile_target: dict[str, Any], method: str, mode: str, place: str
) -> None:
    """Neither does a full refresh leave rows, nor does a batch replace other partitions than its own."""
    if place == "spark_config" and method == "thrift":
        pytest.skip("a server is configured by its operator")
    given = {**profile_target.get(place, {}), OVERWRITE: mode} if place != "hook" else {}
    scenario = scenario_factory(**({place: given} if given else {}))
    hooks = {"pre_hook": f"set {OVERWRITE}={mode}"} if place == "hook" else {}
    config = {"incremental_strategy": "insert_overwrite", "partition_by": "p", "unique_key": None, **hooks}
    scenario.model("select 1 as id, 'a' as p union all select 2, 'b' union all select 3, 'b'", **config)
    scenario.run()
    # What the load has set is taken back: to what the profile or the hook says.
    log = f"{{% do log('mode=' ~ run_query('set {OVERWRITE}').rows[0][1], info=true) %}}"
    after = "{% if execute %}" + log + "{% endif %}"
    scenario.model("select 4 as id, 'b' as p", **config, post_hook=after)
    assert f"mode={mode}" in scenario.run().log.lower()
    assert scenario.rows() == [(1, "a"), (4, "b")]
    scenario.model("select 5 as id, 'c' as p", **config)
    scenario.run("--full-refresh")
    assert scenario.rows() == [(5, "c")]


@pytest.mark.parametrize("escaped", ["true", "false"])
def test_a_text_is_the_same_under_each_way_to_read_literals(scenario_factory: Factory, escaped: str) -> None:
    """Of keys, by which rows are replaced, and of a seed; also where `${x}` would be replaced."""
    scenario = scenario_factory(
        server_side_parameters={ESCAPED: escaped, "spark.sql.variable.substitute": "true"}
    )

    def rows(value: int) -> str:
        return " union all ".join(f"select {text_sql(key)} as k, {value} as v" for key in ODD_TEXTS)

    scenario.model(rows(1), unique_key="k")
    csv = "id,c\n" + "".join(
        '{},"{}"\n'.format(n, text.replace('"', '""')) for n, text in enumerate(ODD_TEXTS) if "\0" not in text
    )
    scenario.file("seeds/s.csv", csv)
    build = scenario.dbt("build")
    assert build.success, build.message
    assert scenario.rows("s") == [(n, text) for n, text in enumerate(ODD_TEXTS) if "\0" not in text]
    # One key a batch: its bounds are literals.
    for key in ODD_TEXTS[:3] + ODD_TEXTS[-1:]:
        scenario.model(f"select {text_sql(key)} as k, 2 as v", unique_key="k")
        scenario.run()
    scenario.model(rows(3), unique_key="k")
    scenario.run()
    assert scenario.rows() == sort_rows([(key, 3) for key in ODD_TEXTS])
