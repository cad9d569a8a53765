"""What is leaned on in other software: docs/limits-of-others.md names all of it, and tells the truth."""

import ast
import importlib
import inspect
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pyspark.java_gateway
import pytest
from pyhive import hive
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.table.update import AddSnapshotUpdate, SetPropertiesUpdate, update_table_metadata
from pyiceberg.types import IntegerType, NestedField
from TCLIService import ttypes

from dbt.adapters.sparkevolve import messages, settings
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "limits-of-others.md"
ADAPTER = ROOT / "dbt" / "adapters" / "sparkevolve"
MACROS = ROOT / "dbt" / "include" / "sparkevolve" / "macros"
PACKAGE = "dbt.adapters.sparkevolve"
MODULES = sorted(ADAPTER.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


# The page names all of it


def rows() -> list[tuple[str, str, str, str]]:
    """Return the rows of the page's tables: what, used in, if it changes, test."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "What":
            assert len(cells) == 4, line
            found.append((cells[0], cells[1], cells[2], cells[3]))
    return found


def words(text: str) -> list[str]:
    """Return what is in backticks."""
    return re.findall("`([^`]+)`", text)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def given_names(trees: Iterable[ast.Module]) -> set[str]:
    """Return all names that modules give to anything: whatever else is private is somebody else's."""
    found: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if isinstance(node.value, ast.Name) and node.value.id == "self":
                    found.add(node.attr)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def overridden(path: Path) -> Iterator[str]:
    """Yield the private names that classes of a module give again to what they inherit from others."""
    for node in TREES[path].body:
        if not isinstance(node, ast.ClassDef):
            continue
        name = ".".join(path.relative_to(ADAPTER).with_suffix("").parts)
        kind = getattr(importlib.import_module(f"{PACKAGE}.{name}"), node.name)
        others = [base for base in kind.__mro__[1:] if not base.__module__.startswith(PACKAGE)]
        for member in node.body:
            member_name = getattr(member, "name", "")
            if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
                member_name = member.targets[0].id
            if is_private(member_name) and any(member_name in vars(base) for base in others):
                yield member_name


def used() -> set[tuple[str, str]]:
    """Return each private part of others that the code uses, with the file that does."""
    own = given_names(TREES.values())
    found: set[tuple[str, str]] = set()
    for path, tree in TREES.items():
        file = str(path.relative_to(ADAPTER))
        found |= {(name, file) for name in overridden(path)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                is_of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                # What is private to an object of our own, no other module of ours touches.
                if node.attr not in (own if is_of_self else given_names([tree])):
                    found.add((node.attr, file))
            elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith(PACKAGE):
                found |= {(alias.name, file) for alias in node.names if is_private(alias.name)}
        found |= {(n.name, file) for n in ast.walk(tree) if is_asked_for(n)}
    return found


def is_asked_for(node: ast.AST) -> bool:
    """Tell whether a method is one that PyIceberg asks a catalog for, which ours is in the place of."""
    return isinstance(node, ast.FunctionDef) and node.name == "_delete_old_metadata"


def test_every_private_part_of_others_is_listed() -> None:
    listed = {(name, file) for what, files, _, _ in rows() for name in words(what) for file in words(files)}
    assert used() - listed == set()
    assert {(name, file) for name, file in listed if is_private(name)} - used() == set()


def test_every_file_on_the_page_exists() -> None:
    files = {file for _, where, _, _ in rows() for file in words(where)}
    # The files of the dbt package are named from the top.
    top = ADAPTER.parents[2]
    found = [file for file in files if (ADAPTER / file).exists() or (top / file).exists()]
    assert files - set(found) == {"macros/"}


def test_every_test_on_the_page_exists() -> None:
    tests = {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    named = [test for *_, cell in rows() for test in words(cell)]
    assert len(named) == len(rows())
    assert set(named) - tests == set()


def test_every_text_that_is_known_is_listed() -> None:
    predicates = {
        name
        for name, value in vars(messages).items()
        if inspect.isfunction(value) and value.__module__ == messages.__name__ and not is_private(name)
    }
    assert predicates - {name for what, *_ in rows() for name in words(what)} == set()


# PyIceberg


@pytest.fixture
def table(make_table: MakeTable, other: Catalog) -> Table:
    """A table with two snapshots."""
    make_table(columns("id int"), [{"id": 1}])
    found = other.load_table("db.t")
    found.append(found.scan().to_arrow())
    return found


def test_pyiceberg_does_not_write_format_version_3(tmp_path: Path) -> None:
    catalog = InMemoryCatalog("memory", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    schema = Schema(NestedField(1, "id", IntegerType()))
    with pytest.raises(NotImplementedError, match="Writing V3 is not yet supported"):
        catalog.create_table("db.t", schema, properties={"format-version": "3"})


def test_pyiceberg_knows_no_variant() -> None:
    """Read in its source, since a process that has the adapter in it has taught it."""
    source = inspect.getsource(importlib.import_module("pyiceberg.types"))
    assert "variant" not in source.lower()
    assert "IcebergType.handle_primitive_type(v, None)" in source


def test_pyiceberg_copies_all_metadata_with_each_transaction(table: Table) -> None:
    changed = update_table_metadata(table.metadata, (SetPropertiesUpdate(updates={"a": "b"}),))
    assert changed.snapshots == table.metadata.snapshots
    assert changed.snapshots[0] is not table.metadata.snapshots[0]


class Recorder:
    """Stands for a catalog, and notes what it is asked for."""

    def __init__(self, catalog: Catalog) -> None:
        self.asked: list[str] = []
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self._catalog, name)


def test_pyiceberg_asks_a_catalog_for_two_things_at_a_commit(table: Table, other: Catalog) -> None:
    recorder: Any = Recorder(other)
    watched = Table(table.name(), table.metadata, table.metadata_location, table.io, recorder, table.config)
    with watched.transaction() as transaction:
        transaction.set_properties({"a": "b"})
    assert recorder.asked == ["commit_table", "_delete_old_metadata"]


def test_pyiceberg_adds_a_new_column_to_the_name_mapping(table: Table) -> None:
    mapping = create_mapping_from_schema(table.schema()).model_dump_json()
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": mapping})
    with table.update_schema() as update:
        assert update._name_mapping is not None
        update.add_column("n", IntegerType())
    assert '"n"' in table.properties["schema.name-mapping.default"]


def test_pyiceberg_reports_an_old_sequence_number_as_a_value_error(table: Table) -> None:
    late = table.metadata.snapshots[0].model_copy(update={"snapshot_id": 7, "parent_snapshot_id": 1})
    with pytest.raises(ValueError, match="Cannot add snapshot with sequence number") as raised:
        update_table_metadata(table.metadata, (AddSnapshotUpdate(snapshot=late),))
    assert messages.is_conflict_in_pyiceberg(raised.value)


def test_pyiceberg_asks_a_metastore_through_one_client() -> None:
    catalog = HiveCatalog("lake", uri="thrift://first:1,thrift://second:2")
    connection = catalog._client
    assert connection._transport._TBufferedTransport__trans.host == "first"
    assert catalog._create_hive_client({"uri": "thrift://second:2"}) is not connection
    text = inspect.getsource(HiveCatalog)
    assert "with self._client as open_client" in text
    calls = set(re.findall("open_client.((?:un)?lock|get_table[a-z_]*|alter_table[a-z_]*)[(]", text))
    assert calls == {
        "lock",
        "unlock",
        "get_table",
        "get_table_objects_by_name",
        "alter_table_with_environment_context",
    }


# dbt


def macros_of_others() -> str:
    import dbt.include

    files = [path for root in dbt.include.__path__ for path in Path(root).rglob("*.sql")]
    return "\n".join(path.read_text(encoding="utf-8") for path in files if not path.is_relative_to(MACROS))


def own_macros() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(MACROS.rglob("*.sql")))


def test_macros_that_replace_others_are_asked_for_by_dbt() -> None:
    """A macro that none of ours calls is one that dbt, or dbt-spark, is to call in the place of its own."""
    name = r"\{%-?\s*macro\s+sparkevolve__(\w+)"
    text = own_macros()
    called = set(re.findall(r"\bsparkevolve__(\w+)\(", re.sub(rf"{name}\(", "", text)))
    asked = set(re.findall(r"adapter\.dispatch\(\s*(?:macro_name\s*=\s*)?['\"](\w+)", macros_of_others()))
    defined = set(re.findall(name, text))
    assert defined - called - asked == set()
    # Ours call some of them, too: those would go unnoticed above.
    assert defined & asked == {
        "alter_column_comment",
        "alter_column_type",
        "clustered_cols",
        "comment_clause",
        "create_csv_table",
        "create_table_as",
        "create_view_as",
        "current_timestamp",
        "escape_single_quotes",
        "file_format_clause",
        "generate_database_name",
        "get_columns_in_relation",
        "get_limit_sql",
        "get_test_sql",
        "get_unit_test_sql",
        "list_schemas",
        "load_csv_rows",
        "location_clause",
        "options_clause",
        "partition_cols",
        "persist_constraints",
        "persist_docs",
        "rename_relation",
        "tblproperties_clause",
    }


def test_macros_of_others_that_are_called_exist() -> None:
    called = set(re.findall(r"\b((?:spark|default)__\w+)\(", own_macros()))
    defined = set(re.findall(r"\{%-?\s*macro\s+(\w+)", macros_of_others()))
    assert called
    assert called - defined == set()


def test_dbt_hands_over_the_bounds_of_a_batch() -> None:
    from dbt.contracts.graph import manifest
    from dbt.task import run

    for end in ("start", "end"):
        name = f"__dbt_internal_microbatch_event_time_{end}"
        assert name in inspect.getsource(settings)
        assert name in inspect.getsource(run)
    assert "get_incremental_microbatch_sql" in inspect.getsource(manifest)


def test_dbt_has_is_incremental() -> None:
    import dbt.include.global_project

    files = Path(str(dbt.include.global_project.__file__)).parent.rglob("is_incremental.sql")
    assert [path for path in files if "macro is_incremental()" in path.read_text(encoding="utf-8")]
    loads = Path(str(dbt.include.global_project.__file__)).parent / "macros/adapters/relation.sql"
    for name in ("load_relation", "load_cached_relation"):
        assert f"macro {name}(relation)" in loads.read_text(encoding="utf-8")
    # The package, as macros have it in their ids.
    assert dbt.include.global_project.PROJECT_NAME == "dbt"


def test_dbt_keeps_settings_that_it_does_not_know() -> None:
    from dbt.artifacts.resources import NodeConfig

    assert NodeConfig.from_dict({"materialized": "table", "publish": "direct"})._extra == {
        "publish": "direct"
    }


def test_dbt_spark_has_its_own_relation_and_catalog() -> None:
    from dbt.adapters.base.impl import BaseAdapter
    from dbt.adapters.spark.impl import SparkAdapter

    for name, arguments in {
        "get_relation": ["self", "database", "schema", "identifier"],
        "get_catalog": ["self", "relation_configs", "used_schemas"],
    }.items():
        assert list(inspect.signature(getattr(BaseAdapter, name)).parameters) == arguments
        assert name in vars(SparkAdapter), f"BaseAdapter.{name} need not be named"


def test_dbt_spark_keeps_its_cursor() -> None:
    from dbt.adapters.spark.connections import PyhiveConnectionWrapper

    class Handle:
        def cursor(self) -> str:
            return "a cursor"

    wrapper = PyhiveConnectionWrapper(Handle(), poll_interval=1, query_timeout=None)
    assert wrapper._cursor is None
    wrapper.cursor()
    assert wrapper._cursor == "a cursor"


# PyHive


def test_pyhive_raises_the_answer_of_the_server() -> None:
    status = ttypes.TStatus(statusCode=ttypes.TStatusCode.ERROR_STATUS, errorMessage="told by the server")
    answer = ttypes.TExecuteStatementResp(status=status)
    with pytest.raises(hive.OperationalError) as raised:
        hive._check_status(answer)
    assert messages.server_message(raised.value) == "told by the server"


def test_pyhive_cannot_read_a_result_without_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def FetchResults(self, request: object) -> Any:
            status = ttypes.TStatus(statusCode=ttypes.TStatusCode.SUCCESS_STATUS)
            return ttypes.TFetchResultsResp(status=status, results=ttypes.TRowSet(startRowOffset=0, rows=[]))

    class Connection:
        client = Client()

    cursor = hive.Cursor(Connection())
    cursor._operationHandle = ttypes.TOperationHandle(hasResultSet=True)
    monkeypatch.setattr(hive.Cursor, "description", [("c",)])
    cursor._state = cursor._STATE_RUNNING
    with pytest.raises(TypeError) as raised:
        cursor.fetchall()
    assert messages.is_result_without_columns(raised.value)


def test_thrift_names_the_states_of_a_statement() -> None:
    state = ttypes.TOperationState
    assert state._VALUES_TO_NAMES[state.ERROR_STATE] == "ERROR_STATE"


# Spark

JARS = Path(str(pyspark.__file__)).parent / "jars"


def in_jar(jar: str, pattern: str) -> bytes:
    """Return what is in the files of a jar of PySpark whose names match."""
    (path,) = JARS.glob(f"{jar}_2.1?-*.jar")
    with zipfile.ZipFile(path) as found:
        return b"".join(found.read(name) for name in found.namelist() if re.fullmatch(pattern, name))


def test_pyspark_has_its_private_parts() -> None:
    from pyspark import SparkContext, find_spark_home
    from pyspark.sql.classic import dataframe

    assert (SparkContext._active_spark_context, SparkContext._gateway) == (None, None)
    context = inspect.getsource(SparkContext)
    assert "self._jsc = None" in context, "a stopped context has none"
    assert "self._jvm" in context
    assert callable(find_spark_home._find_spark_home)
    assert "self._jsparkSession = " in inspect.getsource(pyspark.sql.SparkSession)
    assert "self._jdf" in inspect.getsource(dataframe)
    assert "gateway.proc = proc" in inspect.getsource(pyspark.java_gateway.launch_gateway)


def test_pyspark_asks_java_something_at_ctrl_c() -> None:
    module = inspect.getsource(inspect.getmodule(pyspark.SparkContext))
    handler = module.partition("def signal_handler(")[2].partition("def __repr__")[0]
    assert "self.cancelAllJobs()" in handler
    assert "signal.signal(signal.SIGINT, signal_handler)" in handler


def test_spark_has_the_errors_that_are_known_by_name() -> None:
    # Spark 4 has the names in the first file, 3.5 in the second.
    text = in_jar("spark-common-utils", r"error/error-conditions\.json")
    errors = json.loads(text or in_jar("spark-common-utils", r"error/error-classes\.json"))
    assert messages.is_merge_ambiguous("[MERGE_CARDINALITY_VIOLATION] x")
    assert messages.is_relation_not_found("[TABLE_OR_VIEW_NOT_FOUND] x")
    assert messages.has_nothing_to_list("[SCHEMA_NOT_FOUND] x")
    assert messages.has_nothing_to_list("[MISSING_CATALOG_ABILITY.VIEWS] x")
    assert messages.is_grant_unknown("[INVALID_STATEMENT_OR_CLAUSE] The statement or clause: GRANT")
    known = {"MERGE_CARDINALITY_VIOLATION", "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"}
    known |= {"INVALID_STATEMENT_OR_CLAUSE"}
    # Spark 3.5 has it below UNSUPPORTED_FEATURE.
    everywhere = set(errors) | set(errors["UNSUPPORTED_FEATURE"]["subClass"])
    assert known | {"MISSING_CATALOG_ABILITY"} <= everywhere


def test_spark_says_what_it_is_known_by() -> None:
    core = in_jar("spark-core", r"org/apache/spark/(?:SparkContext|scheduler/DAGScheduler)\.class")
    for text in ("SparkContext was shut down", "stopped SparkContext"):
        assert text.encode() in core
        assert messages.is_spark_stopped(f"Job 3 {text}")
    jobs = in_jar("spark-core", r"org/apache/spark/scheduler/(?:DAGScheduler|TaskSetManager)\.class")
    assert b"Job aborted due to stage failure" in jobs
    assert b"most recent failure" in jobs
    awaited = in_jar("spark-core", r"org/apache/spark/util/ThreadUtils\$\.class")
    assert b"Exception thrown in awaitResult" in awaited
    server = in_jar("spark-hive-thriftserver", r".*/HiveThriftServerErrors\$\.class")
    for text in ("Error running query", "Failed to open new session"):
        assert text.encode() in server
        assert messages.short_message(f"{text}: told") == "told"
