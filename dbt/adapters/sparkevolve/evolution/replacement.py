"""What becomes different in the columns of a table that is replaced by what a query returns."""

from collections.abc import Collection, Sequence

from dbt.adapters.sparkevolve.evolution.names import quote


def replaced_columns(
    old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]], required: Collection[str] = ()
) -> list[str]:
    """Return what changes in a table's columns, as texts; none if they stay as they are.

    Args:
        old: the names and types of the table's columns.
        new: those of the query's. Backticks in a type do not matter.
        required: the names of the table's columns that are NOT NULL, which no replaced table's are.
    """
    before, after = dict(old), dict(new)
    texts = [f"leave out column {quote(name)} {type_}" for name, type_ in old if name not in after]
    texts += [f"add column {quote(name)} {type_}" for name, type_ in new if name not in before]
    texts += [
        f"change {quote(name)} from {before[name]} to {type_}"
        for name, type_ in new
        if name in before and _plain(before[name]) != _plain(type_)
    ]
    texts += [f"let {quote(name)} be NULL" for name, _ in new if name in required]
    if not texts and list(before) != list(after):
        texts.append(f"put its columns in the order {', '.join(map(quote, after))}")
    return texts


def _plain(type_: str) -> str:
    return type_.replace("`", "").lower()
