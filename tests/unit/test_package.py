"""What holds for all macros of the dbt package, also on dbt v2, which cannot be installed here."""

import re
from pathlib import Path

import dbt.include.spark
import pytest
import yaml
from dbt.context.base import BaseContext
from dbt.context.providers import ModelContext
from dbt_common.clients.jinja import get_environment
from jinja2 import nodes

from dbt.include.sparkevolve import PACKAGE_PATH
from tests.functional.package.losses import LOST, TRIED, documented, why_skipped
from tests.unit.package_macros import PACKAGE, macro_names

FILES = sorted((PACKAGE / "macros").rglob("*.sql"))
TEXT = {path.name: path.read_text(encoding="utf-8") for path in FILES}
ALL = "\n".join(TEXT.values())
# What `adapter.` has in dbt-spark, and in dbt v2 for each adapter.
ADAPTER_METHODS = {"cache_added", "drop_relation", "get_columns_in_relation"}
# dbt v2 has these three, and dbt-core one more.
MODULES = {"re", "datetime", "pytz"}

# What dbt hands to macros beside its context's members.
CONTEXT = {"sparkevolve", "context"}


def calls(pattern: str) -> set[str]:
    return set(re.findall(pattern, ALL))


def test_only_methods_of_dbt_sparks_own_adapter_are_called() -> None:
    from dbt.adapters.spark import SparkAdapter

    assert calls(r"\badapter\.(\w+)") == ADAPTER_METHODS
    assert all(name in SparkAdapter._available_ for name in ADAPTER_METHODS)


def test_only_modules_are_used_that_dbt_v2_has() -> None:
    assert calls(r"\bmodules\.(\w+)") <= MODULES


def test_each_name_within_a_namespace_is_set_alone() -> None:
    # dbt takes Jinja from 3.1.3 on, which reads several at once from 3.1.5 on.
    several = re.compile(r"\{%-?\s*set\s[^=%]*?(\.\w+\s*,|,\s*\w+\.)[^=%]*=")
    assert several.search("{% set at.a, at.b = 1, 2 %}")
    assert several.search("{%- set a, at.b = 1, 2 %}")
    own = Path(PACKAGE_PATH).rglob("*.sql")
    assert [file.name for file in (*FILES, *own) if several.search(file.read_text(encoding="utf-8"))] == []


def changed_in(loop: nodes.For) -> set[str]:
    """Return the names of what the body of a loop sets a member of, or adds to, but for its own item."""
    found = {member.name for statement in loop.body for member in statement.find_all(nodes.NSRef)}
    for statement in loop.body:
        for call in statement.find_all(nodes.Call):
            method = call.node
            if isinstance(method, nodes.Getattr) and method.attr in ("append", "extend", "insert", "update"):
                found |= {method.node.name} if isinstance(method.node, nodes.Name) else set()
    return found - {loop.target.name if isinstance(loop.target, nodes.Name) else ""}


def test_no_filter_of_a_loop_depends_on_what_its_body_does() -> None:
    """Jinja asks before each turn; minijinja, which dbt v2 has taken, before the first one for all."""

    def depending(text: str) -> list[int]:
        loops = [loop for loop in get_environment().parse(text).find_all(nodes.For) if loop.test]
        return [
            loop.lineno
            for loop in loops
            if {name.name for name in loop.test.find_all(nodes.Name)} & changed_in(loop)
        ]

    assert depending(
        "{% for x in y if not at.end %}{% if x %}{% set at.end = x %}{% endif %}{% endfor %}"
    ) == [1]
    assert depending("{% for x in y if x not in z %}{% do z.append(x) %}{% endfor %}") == [1]
    assert depending("{% for x in y if x not in a %}{% do z.append(x) %}{% set at.b = a %}{% endfor %}") == []
    own = Path(PACKAGE_PATH).rglob("*.sql")
    texts = {file: file.read_text(encoding="utf-8") for file in (*FILES, *own)}
    assert {file: found for file, text in texts.items() if (found := depending(text))} == {}


def test_no_pattern_needs_what_other_engines_for_them_lack() -> None:
    assert not calls(r"\(\?(?!:)[=!<P]")
    assert calls(r"modules\.re\.(\w+)") <= {"match", "search", "findall"}


def test_each_macro_that_is_called_is_there() -> None:
    assert calls(r"\bsparkevolve\.(\w+)\(") - set(macro_names()) == set()


def test_each_macro_is_called_or_is_for_users() -> None:
    project = (PACKAGE / "dbt_project.yml").read_text(encoding="utf-8")
    called = calls(r"\bsparkevolve\.(\w+)\(") | set(re.findall(r"sparkevolve\.(\w+)\(", project))
    assert set(macro_names()) - called == {"check", "clean_up"}


def dbts_own() -> tuple[set[str], set[str]]:
    """Return the names that dbt's context has, and those of the macros of dbt and of dbt-spark."""
    own = {*BaseContext._context_members_, *ModelContext._context_members_}
    top = Path(dbt.include.spark.__path__[0]).parent
    files = [path for name in ("spark", "global_project") for path in (top / name).rglob("*.sql")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    found = {name for text in texts for name in re.findall(r"\{%-?\s*macro\s+(\w+)\s*\(", text)}
    assert {"execute", "var", "config"} <= own
    assert {"run_query", "options_clause"} <= found
    return own, found


def test_no_macro_has_a_name_of_dbts_own() -> None:
    # In a hook of the package its own go before what dbt has under a name: `execute` would always be true.
    own, found = dbts_own()
    assert set(macro_names()) & (own | found) == set()


def test_what_is_used_by_a_bare_name_is_dbts_or_jinjas() -> None:
    """Dbt v2 refuses a project that has an unknown name in it, also where nothing calls it."""
    own, found = dbts_own()
    jinjas = {"range", "dict", "namespace", "loop"}
    for text in TEXT.values():
        tree = get_environment().parse(text)
        # What the package sets or takes as a parameter is its own.
        names = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "load"}
        stored = {name.name for name in tree.find_all(nodes.Name) if name.ctx in ("store", "param")}
        assert names - stored - own - found - jinjas - CONTEXT == set()


def test_values_of_models_are_not_asked_for_under_names_that_only_dbt_core_has() -> None:
    # Without the last two, a run ends with the first of its warnings instead of all.
    known = {"FULL_REFRESH", "EMPTY", "LOG_FORMAT", "WARN_ERROR", "WARN_ERROR_OPTIONS"}
    assert calls(r"\bflags\.(\w+)") <= known
    assert calls(r"\bapi\.(\w+)\.") == {"Relation"}


@pytest.mark.parametrize("text", TEXT.values(), ids=list(TEXT))
def test_there_are_no_sure_ways_to_other_languages(text: str) -> None:
    """What dbt v2's Jinja may not have: Python's methods of texts beside a few, and jumps out of loops."""
    code = re.sub(r"\{#.*?#\}", "", text, flags=re.DOTALL)
    assert not re.findall(r"\{%-?\s*(?:break|continue)\b", code)
    methods = set(re.findall(r"\.(encode|decode|translate|isdigit|isalpha|ljust|rjust|zfill|clear)\(", code))
    assert methods == set()


def test_what_both_have_is_written_once() -> None:
    shared = (PACKAGE / "macros/shared/detect.sql").read_text(encoding="utf-8")
    adapters = Path(PACKAGE_PATH, "macros/materializations/incremental/schema_change.sql")
    assert adapters.read_text(encoding="utf-8").startswith(shared)


def test_what_is_not_run_with_the_package_names_a_loss_of_its_readme() -> None:
    functional = Path(__file__).parents[1] / "functional"
    assert set(LOST.values()) <= documented()
    for place in LOST:
        path, _, test = place.partition("::")
        assert (functional / path).exists(), place
        assert not test or f"def {test}(" in (functional / path).read_text(encoding="utf-8"), place
    assert all((functional / folder).is_dir() for folder in TRIED)
    for node_id, reason in (
        ("tests/functional/columns/test_renames.py::test_x[a]", None),
        ("tests/functional/package/test_load.py::test_x", None),
        ("tests/functional/seeds/test_seeds.py::test_x", f"lost with the dbt package: {LOST['seeds']}"),
        (
            "tests/functional/types/test_foreign_types.py::test_x",
            "lost with the dbt package: uuid, fixed and time columns",
        ),
        ("tests/functional/adapter/test_basic.py::TestX::test_x", "not tried with the dbt package"),
    ):
        assert why_skipped(node_id) == reason


def test_the_guard_runs_before_each_command_that_runs_models() -> None:
    project = yaml.safe_load((PACKAGE / "dbt_project.yml").read_text(encoding="utf-8"))
    assert project["name"] == "sparkevolve"
    assert project["on-run-start"] == ["{{ sparkevolve.require_override() }}"]
    assert project["require-dbt-version"] == [">=1.10.0", "<3.0.0"]
