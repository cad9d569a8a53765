"""Pages of tables that were never there: long, wide, or with names that somebody chose to do harm."""

from typing import Any

AT = "2026-03-01T12:00:00+00:00"
HOSTILE = (
    "</script><script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 1'>",
    "\"quoted\" 'twice' `thrice`",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe",
    "عمود",
    "🦄 e\u0301 \u2028 \ud83d",
    "&amp;&#60;",
)
RUN = "6f0c6d4c-5f4a-4a3c-9c53-0a1d4f6f2b{:02d}"


def version(number: int, **other: Any) -> dict[str, Any]:
    return {
        "schema": number,
        "at": f"{2020 + number // 360}-{number // 30 % 12 + 1:02}-{number % 30 + 1:02}T12:00:00+00:00",
        "run": RUN.format(number % 100),
        "by": "run",
        "current": False,
        "changes": [f"change {number}"],
        "gone": 0,
        "columns": 3,
        "padded": [],
        "also": [],
        **other,
    }


def lane(field_id: int, name: str, *marks: list[Any], last: int, **other: Any) -> dict[str, Any]:
    return {
        "id": field_id,
        "parent": None,
        "name": name,
        "path": [name],
        "type": "string",
        "names": [name],
        "spans": [[marks[0][0], last]],
        "marks": list(marks),
        **other,
    }


def story(name: str, versions: int, lanes: list[dict[str, Any]], **other: Any) -> dict[str, Any]:
    return {
        "node": f"model.shop.{name}",
        "kind": "model",
        "name": name,
        "relation": f"`lake`.`analytics`.`{name}`",
        "materialized": "incremental",
        "on_schema_change": "append_new_columns_preserve",
        "facts": [{"id": "rows", "label": "Row count", "value": 28258, "description": "Number of rows"}],
        "versions": [version(n, current=n == versions - 1) for n in range(versions)],
        "lanes": lanes,
        "snapshots": [
            {"id": str(2**62 + n), "at": AT, "operation": "append", "schema": 0, "added": 10, "rows": 10 * n}
            for n in range(1, 4)
        ],
        "more_snapshots": 0,
        **other,
    }


def stories() -> list[dict[str, Any]]:
    """An ordinary table, a hostile one, a wide and long one, and one that is not there."""
    orders = [
        lane(1, "order_id", [0, "created", "created with `order_id` (1) int"], last=2),
        lane(
            2,
            "amount",
            [0, "created", "created with `amount` (2) int"],
            [1, "widened", "changed `amount` (2) from int to bigint"],
            last=2,
        ),
        lane(
            3,
            "note",
            [0, "created", "created with `note` (3) string"],
            [1, "padded", "the batch had no `note`: padded"],
            last=2,
        ),
        lane(4, "channel", [1, "added", "added `channel` (4) string"], last=2),
        lane(5, "address", [1, "added", "added `address` (5) struct"], last=2),
        lane(
            6,
            "zip",
            [2, "added", "added `address`.`zip` (6) string"],
            last=2,
            parent=5,
            path=["address", "zip"],
        ),
        lane(
            7,
            "extra",
            [0, "created", "created with `extra` (7) int"],
            [2, "dropped", "dropped `extra` (7) int"],
            last=1,
        ),
    ]
    harm = [
        lane(n, name, [0, "created", name], [1, "renamed", name], last=1, names=["before", name])
        for n, name in enumerate(HOSTILE, 1)
    ]
    wide = [
        lane(n, f"c{n}", [n, "added", f"added `c{n}`"], [n + 100, "padded", f"no `c{n}`"], last=499)
        for n in range(300)
    ]
    away = {"node": "model.shop.away", "kind": "model", "name": "away", "relation": "`lake`.`a`.`away`"}
    reason = "The catalog `lake` has no such Iceberg table. `dbt run` makes it."
    return [
        story("orders", 3, orders),
        story(HOSTILE[0], 2, harm),
        story("wide", 500, wide),
        {**away, "materialized": "incremental", "on_schema_change": "", "reason": reason},
    ]
