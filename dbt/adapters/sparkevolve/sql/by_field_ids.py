"""A text of a user's with field ids in place of names, by which it is the same text after a rename."""

from collections.abc import Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StructType

from dbt.adapters.sparkevolve.evolution.names import fold
from dbt.adapters.sparkevolve.sql.dml import TARGET_ALIAS
from dbt.adapters.sparkevolve.sql.mentions import KEYWORDS, has_query, is_unit
from dbt.adapters.sparkevolve.sql.splitting import tokens


def by_field_ids(sql: str, schema: Schema) -> str:
    """Return an expression in which names of columns, and of fields of structs, are their field ids.

    What may be no column (a function, a type, a unit) stays as it is, as does a whole text with a query in
    it: a name that stays makes of a renamed column another text, and never of another text the same one.

    Args:
        sql: the expression.
        schema: the table's.
    """
    found = [(kind, sql[start:end]) for kind, start, end in tokens(sql)]
    if has_query(sql):
        return sql
    solid = [number for number, (kind, _) in enumerate(found) if kind != "space"]
    # So that what is around a name is always there.
    parts = [("", ""), ("", ""), *(found[number] for number in solid), ("", "")]
    texts = [text for _, text in found]
    # Of a struct whose name has just been read, or of the table behind its alias.
    inside: Sequence[NestedField] = ()
    for at, number in enumerate(solid, start=2):
        text = parts[at][1]
        if text == ".":
            continue
        is_inside = parts[at - 1][1] == "."
        fields = inside if is_inside else schema.fields
        inside = ()
        if not (_is_name(parts[at]) and (is_inside or _may_be_column(parts, at))):
            continue
        name = fold(text[1:-1].replace("``", "`") if text[0] == "`" else text)
        named = next((f for f in fields if fold(f.name) == name), None)
        if named is not None:
            # No text that Spark reads has this character outside of quotes.
            texts[number] = f"\0{named.field_id}\0"
            inside = named.field_type.fields if isinstance(named.field_type, StructType) else ()
        elif not is_inside and name == fold(TARGET_ALIAS):
            inside = schema.fields
    return "".join(texts)


def _is_name(part: tuple[str, str]) -> bool:
    kind, text = part
    return text[0] == "`" if kind == "quoted" else kind == "word" and not text[0].isdigit()


def _may_be_column(parts: Sequence[tuple[str, str]], at: int) -> bool:
    """Tell whether a name that is behind no dot can be a column's."""
    text, (kind, before), (next_kind, after) = parts[at][1], parts[at - 1], parts[at + 1]
    if text[0] == "`":
        return after != "("
    if fold(text) in KEYWORDS or after == "(" or (next_kind == "quoted" and after[0] in "'\""):
        return False  # `date'2024-01-01'`
    # `cast(x as date)`, `x::date`, `interval 1 day`: a column comes behind no value.
    if fold(before) == "as" or before in (":", ")", "]") or before[:1].isdigit():
        return False
    return kind != "quoted" and not is_unit(parts, at)
