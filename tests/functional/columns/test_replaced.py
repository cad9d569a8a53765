"""A type that cannot become another: the old column is kept under another name, the new one has its name."""

from datetime import date

import pytest

from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import PRESERVE, Scenario, sort_rows

RENAMES = {"amount": "amount_old"}


def by_spark(scenario: Scenario, name: str = "t") -> list[tuple[object, ...]]:
    scenario.sql(f"refresh table {scenario.relation(name)}")
    return sort_rows(scenario.sql(f"select * from {scenario.relation(name)}"))


CONTRACT = """
models:
  - name: direct
    config: {{contract: {{enforced: true}}}}
    columns: [{{name: id, data_type: int}}, {{name: amount, data_type: {}}}, {{name: p, data_type: date}}]
"""
WINDOW = ("--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03")


def test_every_strategy_retires_and_replaces_in_one_commit(scenario: Scenario) -> None:
    models: dict[str, dict[str, object]] = {
        "delete_insert": {},
        "keeping": {"removed_columns": "keep"},
        "merging": {"incremental_strategy": "merge"},
        "appending": {"incremental_strategy": "append", "unique_key": None},
        "overwriting": {"incremental_strategy": "insert_overwrite", "unique_key": None, "partition_by": "p"},
        "direct": {"publish": "direct", "on_schema_change": "append_new_columns"},
        "batches": {
            "incremental_strategy": "microbatch",
            "unique_key": None,
            "event_time": "p",
            "lookback": 0,
            "begin": "2024-01-02",
            "batch_size": "day",
        },
    }
    first, last = "select 1 as id, 'ten' as amount, date'2024-01-01' as p", "date'2024-01-02'"
    for name, config in models.items():
        second = f"select 2 as id, 'six' as amount, {last} as p"
        scenario.model(second if name == "batches" else f"{first} union all {second}", name, **config)
    scenario.file("models/contract.yml", CONTRACT.format("string"))
    scenario.file("models/reader.sql", "select id, Amount from {{ ref('merging') }}")
    scenario.file("models/other.sql", "select id from {{ ref('merging') }}")
    scenario.file("models/star.sql", "select * from {{ ref('merging') }}")
    scenario.run(*WINDOW)
    ids = {name: scenario.field_ids(name) for name in models}
    scenario.model(f"select 2 as id, 60 as amount, {last} as p", "merging", **models["merging"])
    refused = scenario.fail("--select", "merging").message
    assert (
        "Column `amount` is string in the table, and the model returns int. If string holds all its "
        "values, cast it to string in the model; if not, return it under a new name, fill that for old "
        "rows, and retire the old name. To keep the old column under another name, and have its name for the "
        "new type, set `column_renames: {amount: amount_old}`. The docs of dbt-sparkevolve have four "
        'questions to ask first, under "Change a type".'
    ) in refused

    for name, config in models.items():
        sql = f"select 2 as id, 60 as amount, {last} as p"
        scenario.model(sql, name, column_renames=RENAMES, **config)
    scenario.file("models/contract.yml", CONTRACT.format("int"))
    told = (
        "`amount` is a new column of the type int, and the old one is `amount_old` from now on. These read "
        "the table and name `amount`: model.case.reader. These read all its columns: model.case.star. What "
        "reads these in turn, and what reads the table from outside of this project, is not known. Old "
        'rows are NULL in it: see "Backfill a column" in the docs of dbt-sparkevolve.'
    )
    assert (
        f"  warning    {told}" in scenario.run("-s", "merging", "--vars", "sparkevolve_plan_only: true").log
    )
    run = scenario.run(*WINDOW)
    for name in models:
        assert scenario.field_ids(name) == {
            "id": 1,
            "amount_old": ids[name]["amount"],
            "p": 3,
            "amount": 4,
        }, name
        assert scenario.types(name)["amount"] == "int"
        assert scenario.schemas(name) == 2, name
        kept, new = (1, "ten", date(2024, 1, 1), None), (2, None, date(2024, 1, 2), 60)
        old, filled = (2, "six", date(2024, 1, 2), None), (2, "six", date(2024, 1, 2), 60)
        others = {"appending": [old, new], "keeping": [filled], "merging": [filled]}
        rows = sort_rows([*([kept] if name != "batches" else []), *others.get(name, [new])])
        assert scenario.rows(name) == rows, name
        # A Thrift server returns dates as texts.
        texts, read = ([[*map(str, row)] for row in found] for found in (rows, by_spark(scenario, name)))
        assert read == texts, name
    assert sort_rows(duckdb_rows(scenario.table("merging"))) == scenario.rows("merging")
    relation = scenario.relation("merging")
    for line in (
        "rename `amount` to `amount_old`",
        "add column `amount` int",
        "column `amount_old` is not in the model, rows that are replaced keep its value, new ones get NULL",
    ):
        assert line in next(said for said in run.log.splitlines() if said.startswith(f"{relation}: rename"))
    assert f"{relation}: {told}" in run.log

    # The configuration may stay: nothing is renamed again.
    again = scenario.run(*WINDOW)
    assert "rename `amount`" not in again.log
    assert "from now on" not in again.log
    for name in models:
        assert scenario.schemas(name) == 2, name


@pytest.mark.core
def test_nested_fields_chains_and_whole_structs(scenario: Scenario) -> None:
    scenario.model(
        "select 1 as id, named_struct('zip', 'a', 'city', 'x') as address, named_struct('y', 1) as s, "
        "array(named_struct('v', 1)) as l, 'one' as a"
    )
    scenario.run()
    first = scenario.field_ids()
    new = (
        "named_struct('zip', 8000, 'city', 'x') as address, 'text' as s, array(named_struct('v', 'b')) as l, "
    )
    renames = {"address.zip": "zip_old", "S": "s_old", "l.element.v": "v_old", "a": "a_old"}
    scenario.model(f"select 2 as id, {new} 2 as a", column_renames=renames)
    scenario.run()
    assert scenario.rows() == [
        (
            1,
            {"zip_old": "a", "city": "x", "zip": None},
            {"y": 1},
            [{"v_old": 1, "v": None}],
            "one",
            None,
            None,
        ),
        (2, {"zip_old": None, "city": "x", "zip": 8000}, None, [{"v_old": None, "v": "b"}], None, "text", 2),
    ]
    second = scenario.field_ids()
    assert (second["s_old"], second["a_old"]) == (first["s"], first["a"])
    # Once more, by a chain: the oldest moves on.
    renames |= {"a_old": "a_older"}
    scenario.model(f"select 3 as id, {new} date'2024-01-01' as a", column_renames=renames)
    scenario.run()
    third = scenario.field_ids()
    assert (third["a_older"], third["a_old"]) == (first["a"], second["a"])
    assert third["a"] == max(third.values())
    picked = scenario.sql(
        f"select id, a_older, a_old, cast(a as string) from {scenario.relation()} order by id"
    )
    assert picked == [(1, "one", None, None), (2, None, 2, None), (3, None, None, "2024-01-01")]
    schemas = scenario.schemas()
    scenario.run()
    assert scenario.schemas() == schemas
    assert scenario.field_ids() == third


def test_what_would_lose_rows_or_a_column_is_refused(scenario: Scenario) -> None:
    scenario.model("select '1' as id, 'x' as amount, 'p' as p", partition_by="p")
    scenario.run()
    before = scenario.state()
    cases: list[tuple[str, dict[str, object], str]] = [
        (
            "select 1 as id, 'x' as amount, 'p' as p",
            {"column_renames": {"id": "id_old"}},
            "`column_renames` wants `id` (string) to become `id_old`, and the model returns `id` as int, "
            "which would be a new column. It is the unique_key, and would be NULL in all rows that are "
            "there: the batch would find none of them, and add its rows beside them. Return it under a new "
            "name, fill that for old rows, make that the `unique_key`, and retire the old name; or make a "
            "full refresh.",
        ),
        (
            "select '1' as id, 'x' as amount, 1 as p",
            {
                "column_renames": {"p": "p_old"},
                "incremental_strategy": "insert_overwrite",
                "unique_key": None,
                "partition_by": "p",
            },
            "The table is partitioned by the old one, and the strategy replaces partitions: all rows of the "
            "batch would be in the partition NULL.",
        ),
        *(
            (
                "select '1' as id, 1 as amount, 'p' as p",
                {"column_renames": RENAMES, "on_schema_change": mode},
                "which would be a new column. `on_schema_change` lets none be added. Set `on_schema_change: "
                f"{PRESERVE}` for this run.",
            )
            for mode in ("fail", "ignore")
        ),
        (
            "select '1' as id, 1 as amount, 'p' as p",
            {"column_renames": {"amount": "p"}},
            "`column_renames` wants `amount` to become `p`, and the table has both.",
        ),
    ]
    for sql, config, text in cases:
        scenario.model(sql, **config)
        assert text in scenario.fail().message
        assert scenario.state() == before


DAY = {"day": "day_text"}
LATE = "DBT_INTERNAL_DEST.`Day` >= date'2024-01-01'"
UNREADABLE = [
    *("DBT_INTERNAL_DEST.id > 0", "DBT_INTERNAL_DEST.dai is not null"),
    "DBT_INTERNAL_DEST.id > rand() - 1",
]
FOR_BOTH = f"{LATE} or DBT_INTERNAL_DEST.day is null"


def test_what_predicates_need_is_not_replaced(scenario: Scenario) -> None:
    """It would be NULL in the rows that are there: none would be found, and each key be there twice."""
    models: dict[str, dict[str, object]] = {
        "branch": {},
        "direct": {"publish": "direct"},
        "keeping": {"removed_columns": "keep"},
        "merging": {"incremental_strategy": "merge"},
        "window": {
            "incremental_strategy": "microbatch",
            "unique_key": None,
            "event_time": "p",
            "lookback": 0,
            "begin": "2024-01-02",
            "batch_size": "day",
        },
    }
    row = "select 1 as id, {} as day, date'2024-01-02' as p, named_struct('v', {}) as s"
    old, new = row.format("'2024-01-02'", "'a'"), row.format("date'2024-01-02'", "5")
    for name, config in models.items():
        scenario.model(old, name, **config)
    scenario.run(*WINDOW)
    before = {name: scenario.state(name) for name in models}
    renames = {**DAY, "s.v": "v_old"}

    def load(**more: object) -> None:
        for name, config in models.items():
            scenario.model(new, name, column_renames=renames, **config, **more)

    for more, path, sql in (
        ({"incremental_predicates": ["DBT_INTERNAL_DEST.id > 0", LATE]}, "day", LATE),
        ({"predicates": "not (day is null)"}, "day", "not (day is null)"),
        ({"incremental_predicates": ["DBT_INTERNAL_DEST.S.v <> ''"]}, "s.v", "DBT_INTERNAL_DEST.S.v <> ''"),
    ):
        load(**more)
        message = scenario.dbt("run", *WINDOW).log
        types = "(string) to become `day_text`, and the model returns `day` as date"
        if path == "s.v":
            types = "(string) to become `v_old`, and the model returns `s`.`v` as int"
        quoted = "`" + path.replace(".", "`.`") + "`"
        for name in models:
            assert (
                f"The batch cannot be loaded into {scenario.relation(name)}, and nothing was written to it:\n"
                f"    * `column_renames` wants {quoted} {types}, which would be a new column. "
                f"`incremental_predicates` name it ({sql}), and it would be NULL in all rows that are there: "
                "those for which the condition does not hold then would not be found, and rows of the batch "
                'be added beside them. Until it is filled for old rows ("Backfill a column" in the docs of '
                "dbt-sparkevolve), take that condition out, or let it hold for NULL too: "
                f"`… OR DBT_INTERNAL_DEST.{quoted} IS NULL`. Or make a full refresh."
            ) in message, name
            assert scenario.state(name) == before[name], name
    # Nor is a column renamed that they name: Spark reads them once the schema is changed.
    for name, config in models.items():
        limits = {"incremental_predicates": [LATE], "column_renames": {"day": "moved"}}
        scenario.model(old.replace("as day", "as moved"), name, **config, **limits)
    scenario.model("select 1 as id, array(named_struct('', 1)) as l", "nameless", unique_key=None)
    message = scenario.dbt("run", *WINDOW).log
    for name in models:
        assert (
            f"The batch cannot be loaded into {scenario.relation(name)}, and nothing was written to it:\n"
            f"    * `incremental_predicates` name `day` ({LATE}), which `column_renames` renames to `moved`: "
            "there would be no such column any more. Use the new name in `incremental_predicates`."
        ) in message, name
        assert scenario.state(name) == before[name], name
    assert (
        f"The batch cannot be loaded into {scenario.relation('nameless')}, and nothing was written to it:\n"
        "    * The model returns in `l`.`element` a field whose name is empty, and Iceberg cannot store one. "
        "Give it a name in the model."
    ) in message
    scenario.file("models/nameless.sql", "{{ config(enabled=false) }} select 1")
    # Nor is one added where Spark cannot read them, or an audit.
    for name, config in models.items():
        other = [] if name == "merging" else ["DBT_INTERNAL_DEST.id in (select dai from values (1) as v(n))"]
        limits = {"incremental_predicates": [*UNREADABLE, *other]}
        audits = {"audits": ["id > 0", "dai > 0"]} if name != "direct" else {}
        scenario.model(f"{old}, 1 as fresh", name, **config, **limits, **audits)
    message = scenario.dbt("run", *WINDOW).log
    for name in models:
        told = message.partition(
            f"The batch cannot be loaded into {scenario.relation(name)}, and nothing was written to it:\n"
        )[2].split("  * ")
        text = "over the columns that the table is to have. Mend it. Spark says: "
        setting = "Spark cannot evaluate one of the model's `incremental_predicates`"
        assert told[1].startswith(f"{setting} (DBT_INTERNAL_DEST.dai is not null) {text}"), name
        assert "`DBT_INTERNAL_DEST`.`dai` cannot be resolved" in told[1], name
        # Spark takes it in a query, but in no condition of MERGE or DELETE.
        assert told[2].startswith(f"{setting} (DBT_INTERNAL_DEST.id > rand() - 1) {text}"), name
        assert "eterministic" in told[2], name
        if name != "merging":
            assert told[3].startswith(f"{setting} (DBT_INTERNAL_DEST.id in (select dai from values"), name
            assert "`dai` cannot be resolved" in told[3], name
        if name != "direct":
            last = told[3 if name == "merging" else 4]
            assert last.startswith(f"Spark cannot evaluate one of the model's `audits` (dai > 0) {text}"), (
                name
            )
            assert "`dai` cannot be resolved" in last, name
        assert scenario.state(name) == before[name], name
    query = "DBT_INTERNAL_DEST.id in (select 1)"
    scenario.model(f"{old}, 1 as fresh", "merging", **models["merging"], incremental_predicates=query)
    assert (
        f"One of the model's `incremental_predicates` ({query}) has a query, and Spark takes none in the "
        "condition of a MERGE. Ask for its value in the model with dbt's `run_query`, and write that into "
        "the condition, or use `incremental_strategy: delete+insert`, which takes queries."
    ) in scenario.dbt("run", "--select", "merging").log
    assert scenario.state("merging") == before["merging"]
    # What holds for NULL too, or has the name for something else, lets the batch in; each row is there once.
    load(incremental_predicates=[FOR_BOTH, "'day' <> '' -- day"])
    scenario.run(*WINDOW)
    for name in models:
        kept = name in ("keeping", "merging")
        assert [(r[0], r[1]) for r in scenario.rows(name)] == [(1, "2024-01-02" if kept else None)], name
        assert [r[-1] for r in scenario.rows(name)] == [date(2024, 1, 2)], name
        assert scenario.columns(name) == ["id", "day_text", "p", "s", "day"], name


def test_predicates_that_read_the_batch_alone_let_a_column_be_replaced(scenario: Scenario) -> None:
    scenario.model("select 1 as id, '2024-01-02' as day", incremental_strategy="merge")
    scenario.run()
    scenario.model(
        "select 1 as id, date'2024-01-02' as day",
        incremental_strategy="merge",
        incremental_predicates=["DBT_INTERNAL_SOURCE.day > date'2024-01-01'"],
        column_renames=DAY,
    )
    scenario.run()
    assert scenario.rows() == [(1, "2024-01-02", date(2024, 1, 2))]


def test_predicates_that_may_mean_something_else_let_a_column_be_renamed(scenario: Scenario) -> None:
    """What is a word of SQL, and what a query reads of the table itself, which has the old columns yet."""
    row = "select {} as id, {} as `{}`, date'2024-01-02' as {}"
    scenario.model(f"{row.format(1, 5, 'end', 'ts')} union all {row.format(2, 6, 'end', 'ts')}")
    scenario.run()
    newest = f"(select max(event_ts) - interval 3 days from {scenario.relation()})"
    words = "case when DBT_INTERNAL_DEST.id > 1 then true else false end"
    scenario.model(
        f"{row.format(1, 7, 'last', 'event_ts')} union all {row.format(2, 8, 'last', 'event_ts')}",
        incremental_predicates=[words, f"DBT_INTERNAL_DEST.event_ts > {newest}"],
        column_renames={"end": "last", "ts": "event_ts"},
    )
    scenario.run()
    day = date(2024, 1, 2)
    assert sorted(scenario.rows()) == [(1, 5, day), (1, 7, day), (2, 8, day)]


def test_a_field_of_a_key_is_not_replaced(scenario: Scenario) -> None:
    scenario.model("select named_struct('v', '1') as k, 'a' as x", unique_key="K")
    scenario.run()
    before = scenario.state()
    renames = {"k.v": "v_old"}
    scenario.model("select named_struct('v', 1) as k, 'b' as x", unique_key="K", column_renames=renames)
    assert (
        "`column_renames` wants `k`.`v` (string) to become `v_old`, and the model returns `k`.`v` as int, "
        "which would be a new column. It is in the unique_key, and would be NULL in all rows that are there"
    ) in scenario.fail().message
    assert scenario.state() == before


def test_after_a_full_refresh_there_are_no_older_rows(scenario: Scenario) -> None:
    scenario.model("select '1' as id, 1 as v")
    scenario.run()
    key = {"unique_key": ["id", "src"], "column_renames": {"id": "id_old"}}
    scenario.model("select 2 as id, 2 as v, 'web' as src", **key)
    planned = scenario.run("--full-refresh", "--vars", "sparkevolve_plan_only: true").log
    run = scenario.run("--full-refresh")
    assert scenario.rows() == [(None, 2, "web", 2)]
    for log in (planned, run.log):
        assert "`id` is a new column of the type int, and the old one is `id_old` from now on." in log
        assert "Old rows" not in log
        assert "older rows" not in log
