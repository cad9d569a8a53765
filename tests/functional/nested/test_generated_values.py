"""Generated nested types and values, written by real Spark, against a model of the rule in Python.

Each example is one table with several columns of random nested types, filled twice by dbt: first as they are,
then with fields that have gone, come, changed places, case and width at random depths.
"""

import random
from typing import Any, Union

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.functional.harness import Scenario

# A type is the name of a primitive, ("struct", {name: type}), ("array", type) or ("map", type of values).
Type = Union[str, tuple[str, Any]]

PLAIN = ["x", "Y", "ünï", "z", "select", "n1", "n2"]
ODD = [*PLAIN, "a.b", "we`ird", "#h", "1st", "a b"]
LITERALS = {
    "int": ["1", "-7"],
    "bigint": ["5000000000", "3"],
    "string": ["'s'", "'it\\'s'"],
    "boolean": ["true"],
}
VALUES = {"1": 1, "-7": -7, "5000000000": 5000000000, "3": 3, "'s'": "s", "'it\\'s'": "it's", "true": True}


def random_type(rng: random.Random, depth: int, names: list[str]) -> Type:
    kind = rng.choice(["struct", "struct", "array", "map", "leaf"]) if depth else "leaf"
    if kind == "struct":
        chosen = rng.sample(names, rng.randint(1, 3))
        return ("struct", {name: random_type(rng, depth - 1, names) for name in chosen})
    if kind in ("array", "map"):
        return (kind, random_type(rng, depth - 1, names))
    return rng.choice(["int", "string", "boolean"])


def evolved(rng: random.Random, type_: Type, names: list[str]) -> Type:
    """Return what a later model might return in the place of ``type_``."""
    if isinstance(type_, str):
        return "bigint" if type_ == "int" and rng.random() < 0.3 else type_
    kind, inside = type_
    if kind != "struct":
        return (kind, evolved(rng, inside, names))
    kept = {name: evolved(rng, t, names) for name, t in inside.items() if rng.random() < 0.7}
    recased = {name.upper() if rng.random() < 0.2 else name: t for name, t in kept.items()}
    new = [name for name in names if name.lower() not in {old.lower() for old in inside}]
    for name in rng.sample(new, min(len(new), rng.randint(0 if recased else 1, 2))):
        recased[name] = random_type(rng, 1, names)
    items = list(recased.items())
    rng.shuffle(items)
    return ("struct", dict(items))


def merged(old: Type, new: Type) -> Type:
    """Return the table's type after the evolution, by the rule."""
    if isinstance(old, str) or isinstance(new, str):
        return new if (old, new) == ("int", "bigint") else old
    kind, inside = old
    if kind != "struct":
        return (kind, merged(inside, new[1]))
    returned = {name.lower(): t for name, t in new[1].items()}
    fields = {name: merged(t, returned.get(name.lower(), t)) for name, t in inside.items()}
    fields.update({name: t for name, t in new[1].items() if name.lower() not in {o.lower() for o in inside}})
    return ("struct", fields)


def random_value(rng: random.Random, type_: Type) -> Any:
    """Return a value as a tree: None, a literal, a dict of fields, a list, or a list of (key, value)."""
    if rng.random() < 0.2:
        return None
    if isinstance(type_, str):
        return rng.choice(LITERALS[type_])
    kind, inside = type_
    if kind == "struct":
        return {name: random_value(rng, t) for name, t in inside.items()}
    values = [random_value(rng, inside) for _ in range(rng.randint(0, 2))]
    return values if kind == "array" else [(f"k{n}", value) for n, value in enumerate(values)]


def type_sql(type_: Type) -> str:
    if isinstance(type_, str):
        return type_
    kind, inside = type_
    if kind == "struct":
        fields = ",".join(f"`{name.replace('`', '``')}`:{type_sql(t)}" for name, t in inside.items())
        return f"struct<{fields}>"
    return f"array<{type_sql(inside)}>" if kind == "array" else f"map<string,{type_sql(inside)}>"


def value_sql(value: Any, type_: Type) -> str:
    if value is None:
        return f"cast(null as {type_sql(type_)})"
    if isinstance(type_, str):
        return f"cast({value} as {type_})"
    kind, inside = type_
    if kind == "struct":
        parts = ", ".join(f"'{name}', {value_sql(value[name], t)}" for name, t in inside.items())
        return f"named_struct({parts})"
    if not value:
        return f"cast({'array()' if kind == 'array' else 'map()'} as {type_sql(type_)})"
    if kind == "array":
        return f"array({', '.join(value_sql(item, inside) for item in value)})"
    return f"map({', '.join(f'{key!r}, {value_sql(item, inside)}' for key, item in value)})"


def stored(value: Any, table: Type) -> Any:
    """Return what the table holds for a value of the model, by the rule: matched by name, absent is NULL."""
    if value is None or isinstance(table, str):
        return None if value is None else VALUES[value]
    kind, inside = table
    if kind == "struct":
        returned = {name.lower(): item for name, item in value.items()}
        return {name: stored(returned.get(name.lower()), t) for name, t in inside.items()}
    if kind == "array":
        return [stored(item, inside) for item in value]
    return {key: stored(item, inside) for key, item in value}


def plain(value: Any) -> Any:
    """Return a value that Spark or PyIceberg has read as plain dicts and lists."""
    if hasattr(value, "asDict"):
        return {name: plain(item) for name, item in value.asDict().items()}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        # Not isinstance: a Row of Spark is a tuple, too.
        pairs = value and all(type(item) is tuple for item in value)
        return {k: plain(v) for k, v in value} if pairs else [plain(item) for item in value]
    return value


def without_empty(value: Any) -> Any:
    """Return a value in which NULL, empty lists and maps, and structs of NULLs are one.

    PyIceberg 0.12 reads a NULL list or map as an empty one where its fields have evolved, and a NULL struct
    in one as a struct of NULLs. What Spark reads is compared to the letter.
    """
    if isinstance(value, dict):
        inside = {name: without_empty(item) for name, item in value.items()}
        return inside if any(item is not None for item in inside.values()) else None
    if isinstance(value, list):
        return [without_empty(item) for item in value] or None
    return value


@pytest.fixture
def _only_session(method: str) -> None:
    if method != "session":
        pytest.skip("a Thrift server gives nested values as text")


@pytest.mark.usefixtures("_only_session")
@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # each example runs dbt twice: too long to look for a smaller one
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32), names=st.sampled_from([PLAIN, ODD]))
def test_nested_values_are_written_by_name(scenario_factory: Any, seed: int, names: list[str]) -> None:
    scenario: Scenario = scenario_factory()
    rng = random.Random(seed)
    old = {f"c{n}": random_type(rng, 3, names) for n in range(8)}
    new = {name: evolved(rng, type_, names) for name, type_ in old.items()}
    table = {name: merged(old[name], new[name]) for name in old}
    rows: dict[int, dict[str, Any]] = {}
    for version, types in ((1, old), (2, new)):
        selects = []
        for n in range(3):
            values = {name: random_value(rng, type_) for name, type_ in types.items()}
            rows[version * 10 + n] = values
            columns = ", ".join(f"{value_sql(values[name], t)} as {name}" for name, t in types.items())
            selects.append(f"select {version * 10 + n} as id, {columns}")
        scenario.model(" union all ".join(selects))
        scenario.run()
    expected = [
        (key, *(stored(values[name], table[name]) for name in old)) for key, values in sorted(rows.items())
    ]
    read = scenario.sql(f"select * from {scenario.relation()} order by id")
    assert [tuple(plain(value) for value in row) for row in read] == expected
    if names is ODD:
        return  # PyIceberg 0.12 reads NULL for a nested field with a dot or a space in its name
    by_pyiceberg = sorted(scenario.table().scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [without_empty(plain(row)) for row in by_pyiceberg] == [
        without_empty({"id": row[0], **dict(zip(old, row[1:], strict=True))}) for row in expected
    ]
