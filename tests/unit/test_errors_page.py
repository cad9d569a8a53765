"""docs/errors.md has a row for each error that this adapter raises with a text of its own."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dbt.adapters.sparkevolve.errors import StatementError

ROOT = Path(__file__).parents[2]
CODE = ROOT / "dbt" / "adapters" / "sparkevolve"
ERRORS = CODE / "errors.py"

# What stands for a text of its own begins with so many characters that are neither name nor value.
LEAST = 10

# Functions that pass on a text which is made elsewhere.
PASSED_ON = {
    "backfill_checks.py:branch": "a refusal, which has a row",
    "catalog_settings.py:error": "its callers have the text",
    "catalogs.py:check_after": "a text of `lost_answers.py`, which has a row",
    "checks.py:columns_differ": "a text of the macro `sparkevolve__check_columns`",
    "model_config.py:_problems": "the remedy of a kind of setting, as in `Allowed are: …`",
    "refusals.py:no_such_column": "either of two ends, which both have rows",
    "session_errors.py:translated": "Spark's own text",
    "settings.py:value": "the remedy of a kind of setting, as in `Allowed are: …`",
    "thrift.py:_execute": "Spark's own text, or one of ours, which has a row",
}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def template(node: ast.AST) -> str:
    """Return a text of the code with … for what is put into it; … for what is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(p.value if isinstance(p, ast.Constant) else "…" for p in values)  # type: ignore[misc]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return template(left) + template(right)
        case ast.Call(func=ast.Attribute(value=value, attr="format" | "rstrip")):
            return re.sub(r"\{\w*\}", "…", template(value))
    return "…"


def templates(node: ast.AST, around: ast.AST, module: ast.Module) -> list[str]:
    """Return the texts that an expression can be, also by way of a variable or a function beside it."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return templates(body, around, module) + templates(orelse, around, module)
        case ast.Name(id=name):
            assigned = [n for n in ast.walk(around) if isinstance(n, ast.Assign)]
            values = [
                n.value for n in assigned for t in n.targets if isinstance(t, ast.Name) and t.id == name
            ]
            return [text for value in values for text in templates(value, around, module)]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if template(node) == "…":
            return [
                text
                for found in _functions(module)
                if found.name == name
                for n in ast.walk(found)
                if isinstance(n, ast.Return) and n.value is not None
                for text in templates(n.value, found, module)
            ]
    return [template(node)]


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node


def classes() -> dict[str, list[str]]:
    """Return by name of an exception the texts in it, those without a text of their own left out."""
    found = {}
    for node in _tree(ERRORS).body:
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
            made = [f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
            texts = [
                template(n)
                for function in made
                for statement in function.body
                if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
                for n in ast.walk(statement)
                if isinstance(n, ast.Constant | ast.JoinedStr)
            ]
            own = [text for text in texts if says_something(text)]
            if own:
                found[node.name] = own
    return found


def says_something(text: str) -> bool:
    """Tell whether a text is more than names and values with a word between."""
    return len(max(text.split("…"), key=len).strip()) >= LEAST


def sites() -> Iterator[tuple[str, list[str]]]:
    """Yield each place that makes an error whose class has no text of its own, and the texts of it."""
    own = classes()
    for path in sorted(CODE.rglob("*.py")):
        module = _tree(path)
        for function in _functions(module):
            for node in ast.walk(function):
                where = f"{path.name}:{function.name}"
                match node:
                    case ast.Call(func=ast.Name(id="Refusal"), keywords=keywords):
                        reasons = [k.value for k in keywords if k.arg == "reason"]
                    case ast.Call(func=ast.Name(id=name), args=args) if _is_bare(name, own) and args:
                        reasons = [args[-1] if name not in ("OperationError", "StatementError") else args[0]]
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="place"), attr="error"), args=args):
                        reasons = [args[0]]
                    case ast.Yield(value=ast.Tuple(elts=[_, text])) if path.name == "settings.py":
                        reasons = [text]
                    case _:
                        continue
                yield where, [t for r in reasons for t in templates(r, function, module)]


def _is_bare(name: str, own: dict[str, list[str]]) -> bool:
    known = {n.name for n in _tree(ERRORS).body if isinstance(n, ast.ClassDef)}
    return name in known and name not in own and name.endswith("Error")


def rows() -> list[tuple[str, re.Pattern[str]]]:
    """Return the messages of the page, and what each of them stands for."""
    cells = re.findall(r"^\| (`.*?`) \| ", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    messages = [message for cell in cells for message in re.findall(r"`([^`]*)`", cell)]
    return [
        (message, re.compile(".*".join(re.escape(part.strip()) for part in message.split("…")), re.DOTALL))
        for message in messages
    ]


def is_listed(texts: list[str]) -> bool:
    """Tell whether the page has a row of one of these texts."""
    return any(says_something(m) and p.search(t.replace("`", "")) for m, p in rows() for t in texts)


@pytest.mark.parametrize(
    "answer",
    [
        "Java heap space",
        "Invalid update timestamp 1764345600000: before last updated timestamp 1764345900000",
        "[BUG] Expected sorted snapshot log entries.",
        "Invalid method name: 'get_table'",
    ],
)
def test_each_advice_about_an_answer_of_spark_has_a_row(answer: str) -> None:
    said, _, advice = StatementError(answer, "select 1").msg.partition("\n")
    assert said == answer
    assert is_listed([advice])


def test_each_exception_has_a_row() -> None:
    assert [name for name, texts in classes().items() if not is_listed(texts)] == []


def test_each_text_of_a_refusal_a_setting_or_an_operation_has_a_row() -> None:
    found = list(sites())
    assert len(found) > 130
    passed_on = {where for where, texts in found if not any(map(says_something, texts))}
    assert passed_on == set(PASSED_ON)
    assert [texts for where, texts in found if where not in passed_on and not is_listed(texts)] == []
