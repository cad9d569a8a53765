"""Macros of the dbt package, rendered by dbt's own Jinja and called from a test as functions."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dbt_common.clients.jinja import get_environment
from dbt_common.exceptions import CompilationError
from dbt_common.exceptions.macros import MacroReturn
from jinja2 import StrictUndefined, Template
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from dbt.adapters.sparkevolve.evolution.types import children, type_text

PACKAGE = Path(__file__).resolve().parents[2] / "dbt_package"
_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\s*\(")
_PREFIX = "dbt_macro__"


def _return(value: Any) -> None:
    raise MacroReturn(value)


def _refuse(text: str) -> None:
    raise CompilationError(text)


def _from_json(text: str, default: Any = None) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return default


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


class PackageMacros:
    """The macros of the package, which call each other as ``sparkevolve.<name>(…)``.

    Args:
        context: what they use of dbt beside ``return`` and ``modules``.
    """

    def __init__(self, context: Mapping[str, Any] | None = None) -> None:
        self._context = {
            "return": _return,
            "modules": SimpleNamespace(re=re),
            "tojson": json.dumps,
            "fromjson": _from_json,
            "local_md5": _md5,
            "exceptions": SimpleNamespace(raise_compiler_error=_refuse),
            "sparkevolve": self,
            **(context or {}),
        }
        self._modules: dict[Path, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        path, template = _templates()[name]
        if path not in self._modules:
            self._modules[path] = template.make_module(self._context)
        rendered = getattr(self._modules[path], _PREFIX + name)

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return rendered(*args, **kwargs)
            except MacroReturn as returned:
                return returned.value

        setattr(self, name, call)
        return call


@cache
def _templates() -> dict[str, tuple[Path, Template]]:
    """Return the file that each macro is in; a name that is not known in it is an error and not empty."""
    environment = get_environment().overlay(undefined=StrictUndefined)
    found: dict[str, tuple[Path, Template]] = {}
    for path in sorted((PACKAGE / "macros").rglob("*.sql")):
        text = path.read_text(encoding="utf-8")
        template = environment.from_string(text)
        for name in _MACRO.findall(text):
            assert name not in found, f"{name} is in {path} and in {found[name][0]}"
            found[name] = (path, template)
    return found


def as_macros_see(fields: Iterable[NestedField]) -> list[dict[str, Any]]:
    """Return fields as the macros have them, with Iceberg's ids; uuid and fixed are what Spark calls them."""
    return [
        {"name": f.name, "type": _type(f.field_type), "required": f.required, "doc": f.doc, "id": f.field_id}
        for f in fields
    ]


def _type(iceberg_type: IcebergType) -> dict[str, Any]:
    kinds = {StructType: "struct", ListType: "array", MapType: "map"}
    kind = kinds.get(type(iceberg_type), "leaf")
    text = type_text(iceberg_type) if kind == "leaf" else ""
    return {"kind": kind, "text": text, "fields": as_macros_see(children(iceberg_type))}


def macro_names() -> list[str]:
    """Return the names of all macros of the package."""
    return sorted(_templates())


PURE = PackageMacros()
"""The macros that need nothing of dbt but its Jinja."""


def normal(text: str) -> str:
    """Return the SQL of the adapter as the package writes it: without a literal in hexadecimal digits.

    The only filters that dbt v2 is sure to have make no bytes of a text, so the package joins characters.
    """
    return re.sub(r"CAST\(X'([0-9a-f]*)' AS STRING\)", lambda found: _joined(found[1]), text)


def _joined(digits: str) -> str:
    parts: list[str] = []
    plain = ""
    for c in bytes.fromhex(digits).decode():
        is_odd = c in "\\'\x7f" or (ord(c) < 32 and c not in "\t\n")
        # Once there is a character that needs it, each dollar gets it too.
        if is_odd or c == "$":
            parts += [f"'{plain}'"] if plain else []
            parts.append(f"char({ord(c)})")
            plain = ""
        else:
            plain += c
    parts += [f"'{plain}'"] if plain else []
    return f"concat({', '.join(parts)})"
