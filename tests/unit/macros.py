"""Macros of this package, rendered by dbt's own Jinja and called from a test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dbt_common.clients.jinja import get_environment
from dbt_common.exceptions.macros import MacroReturn
from dbt_common.utils.jinja import get_dbt_macro_name

from dbt.include.sparkevolve import PACKAGE_PATH

_SCHEMA_CHANGE = "materializations/incremental/schema_change.sql"


def _return(value: Any) -> None:
    raise MacroReturn(value)


def macro(path: str, name: str, **context: Any) -> Callable[..., Any]:
    """Return a macro as a function that gives back what the macro returns, or else its text.

    Args:
        path: its file, below the package's folder ``macros``.
        name: its name.
        context: what it uses of dbt beside ``return``.
    """
    text = (Path(PACKAGE_PATH) / "macros" / path).read_text(encoding="utf-8")
    module = get_environment().from_string(text).make_module({"return": _return, **context})
    rendered = getattr(module, get_dbt_macro_name(name))

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return rendered(*args, **kwargs)
        except MacroReturn as returned:
            return returned.value

    return call


detect_schema_change = macro(_SCHEMA_CHANGE, "sparkevolve__detect_schema_change")
