"""Which module may import what, what macros are called, and that all of them are in the wheel."""

import ast
import glob
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest
from setuptools import find_namespace_packages

ROOT = Path(__file__).parents[2]
ADAPTER = ROOT / "dbt" / "adapters" / "sparkevolve"
INCLUDE = ROOT / "dbt" / "include" / "sparkevolve"
MACROS = INCLUDE / "macros"
PACKAGE = "dbt.adapters.sparkevolve"

MODULES = sorted(ADAPTER.rglob("*.py"))
PURE = sorted((ADAPTER / "evolution").glob("*.py"))
SQL = sorted(MACROS.rglob("*.sql"))


def name(path: Path) -> str:
    return str(path.relative_to(ADAPTER))


def imports(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the module of each import in a file, and for ``from a import b`` both ``a`` and ``a.b``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} has a relative import"
            yield str(node.module), node
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)


def imported(path: Path) -> set[str]:
    return {module for module, _ in imports(path)}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def at_run_time(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module is imported: none in functions or under TYPE_CHECKING."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting.extend(node.orelse)
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def test_there_is_something_to_check() -> None:
    assert {path.name for path in PURE} >= {"names.py", "types.py", "changes.py", "plan.py", "refusals.py"}
    assert {path.name for path in SQL} >= {"incremental.sql", "adapters.sql", "seed.sql"}
    assert "pyiceberg.catalog" in imported(ADAPTER / "iceberg" / "access.py")
    assert "pyspark" in imported(ADAPTER / "spark" / "session.py")


@pytest.mark.parametrize("path", PURE, ids=name)
def test_the_evolution_is_pure(path: Path) -> None:
    """Python's own modules of plain values, PyIceberg's schemas and types, and itself: nothing else."""
    allowed = (
        "collections.abc",
        "dataclasses",
        "enum",
        "typing",
        "re",
        "itertools",
        "functools",
        "datetime",
        "decimal",
        "hashlib",
        "json",
        "struct",
        "uuid",
    )
    allowed += ("pyiceberg.schema", "pyiceberg.types", f"{PACKAGE}.evolution")
    assert [m for m in imported(path) if not any(within(m, package) for package in allowed)] == []


def test_only_the_session_imports_pyspark() -> None:
    users = {name(path) for path in MODULES if any(within(m, "pyspark") for m in imported(path))}
    session = {"spark/session.py", "spark/session_errors.py", "spark/session_handle.py"}
    # For the type of a session only.
    assert users == session | {"spark/java_commits.py", "spark/locks.py", "spark/settings_checks.py"}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_importing_the_adapter_imports_no_pyspark(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in at_run_time(tree):
        if isinstance(node, ast.Import):
            assert not any(within(alias.name, "pyspark") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not within(str(node.module), "pyspark")


def test_only_the_room_of_iceberg_uses_more_of_pyiceberg_than_schemas_and_types() -> None:
    plain = ("pyiceberg.schema", "pyiceberg.types")
    users = {
        name(path)
        for path in MODULES
        if any(within(m, "pyiceberg") and not any(within(m, p) for p in plain) for m in imported(path))
    }
    outside = {user for user in users if not user.startswith("iceberg/")}
    # The classes of its exceptions.
    assert outside == {"load/table_differences.py", "messages.py"}
    catalogs = {name(path) for path in MODULES if any(within(m, "pyiceberg.catalog") for m in imported(path))}
    # Three know a class only: which catalogs write metadata in this process, and how an answer is read.
    assert catalogs == {
        "iceberg/access.py",
        "iceberg/foreign_metadata.py",
        "iceberg/guards.py",
        "iceberg/newer_format.py",
        "iceberg/purge.py",
    }


def test_every_commit_goes_through_the_guards() -> None:
    callers = {name(path) for path in MODULES if ".commit_table(" in path.read_text(encoding="utf-8")}
    assert callers == {"iceberg/guards.py"}


def test_only_thrift_imports_the_thrift_client() -> None:
    users = {
        name(path)
        for path in MODULES
        if any(within(m, "pyhive") or within(m, "TCLIService") for m in imported(path))
    }
    assert users == {"spark/thrift.py"}


@pytest.mark.parametrize("folder", ["dbt", "dbt/adapters", "dbt/include"])
def test_the_namespace_belongs_to_dbt(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


def test_macros_reach_few_methods_of_the_adapter_each_of_them_short() -> None:
    from dbt.adapters.spark.impl import SparkAdapter

    from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter

    ours = SparkEvolveAdapter._available_ - SparkAdapter._available_
    # The last are `operations`, what run-operations share, which run outside of any node, and
    # `restore_column` and `schema_page`, which are such.
    assert len(ours) <= 15
    tree = ast.parse((ADAPTER / "impl.py").read_text(encoding="utf-8"))
    methods = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    lengths = {name: int(methods[name].end_lineno or 0) - methods[name].body[0].lineno for name in ours}
    docs = {name: len((ast.get_docstring(methods[name]) or "").splitlines()) for name in ours}
    assert {name for name in ours if lengths[name] - docs[name] + 1 > 10} == set()


def test_no_class_is_a_part_of_the_adapter() -> None:
    from dbt.adapters.spark.impl import SparkAdapter

    from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter

    assert SparkEvolveAdapter.__bases__ == (SparkAdapter,)


def test_the_materialization_reads_like_a_table_of_contents() -> None:
    path = MACROS / "materializations" / "incremental" / "incremental.sql"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.parametrize("path", SQL, ids=lambda path: str(path.relative_to(MACROS)))
def test_every_macro_bears_our_name(path: Path) -> None:
    from dbt.adapters.sparkevolve.operations import OPERATIONS

    tags = re.findall(r"\{%-?\s*(macro|test|materialization)\s+(\w+)", path.read_text(encoding="utf-8"))
    assert tags, "a file without a macro"
    assert [
        tag
        for tag in tags
        # What a user types after `dbt run-operation` has no prefix.
        if tag[0] != "materialization" and tag[1] not in OPERATIONS and not tag[1].startswith("sparkevolve__")
    ] == []


@pytest.mark.parametrize("path", SQL, ids=lambda path: str(path.relative_to(MACROS)))
def test_every_macro_of_ours_that_is_called_exists(path: Path) -> None:
    text = "".join(sql.read_text(encoding="utf-8") for sql in SQL)
    defined = set(re.findall(r"\{%-?\s*macro\s+(sparkevolve__\w+)", text))
    called = set(re.findall(r"\b(sparkevolve__\w+)\(", path.read_text(encoding="utf-8")))
    assert called - defined == set()


@pytest.mark.parametrize("path", SQL, ids=lambda path: str(path.relative_to(MACROS)))
def test_every_method_that_a_macro_calls_can_be_called(path: Path) -> None:
    from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter

    text = path.read_text(encoding="utf-8")
    called = set(re.findall(r"\badapter\.(\w+)\(", text))
    # What dbt's own wrapper of an adapter offers to macros, beside @available methods.
    assert called - set(SparkEvolveAdapter._available_) - {"dispatch"} == set()
    # And what macros ask the objects for that these return; `runner` is what `load_runner` returns.
    reached = re.findall(r"\badapter\.(\w+)\(\)\.(\w+)", text)
    reached += [("load_runner", name) for name in re.findall(r"\brunner\.(\w+)\(", text)]
    for method, name in reached:
        kind = get_type_hints(getattr(SparkEvolveAdapter, method))["return"]
        assert hasattr(kind, name), f"{kind.__name__}.{name}"


def package_data() -> dict[str, list[str]]:
    """Return ``package_data`` of setup.py, which is written out there."""
    tree = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    (value,) = [
        keyword.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setup"
        for keyword in node.keywords
        if keyword.arg == "package_data"
    ]
    data: dict[str, list[str]] = ast.literal_eval(value)
    return data


def test_the_wheel_has_every_file_of_the_package() -> None:
    packages = find_namespace_packages(str(ROOT), include=["dbt", "dbt.*"])
    in_wheel: set[Path] = set()
    for package in packages:
        folder = ROOT / package.replace(".", "/")
        in_wheel |= set(folder.glob("*.py"))
        for pattern in package_data().get(package, []):
            # As setuptools does it.
            in_wheel |= {folder / hit for hit in glob.glob(pattern, root_dir=folder, recursive=True)}
    on_disk = {
        path
        for folder in (ADAPTER, INCLUDE)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(SQL) < on_disk
    assert sorted(str(path.relative_to(ROOT)) for path in on_disk - in_wheel) == []


# It touches those of other libraries, some of which we override.
ABOUT_OTHERS = "unit/test_limits_of_others.py"


def private_members() -> set[str]:
    """Return the names with an underscore that the package gives to functions, classes and values."""
    nodes = [node for path in MODULES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    return {name for name in names if re.match(r"_[A-Za-z]", name)}


def touched(path: Path, private: set[str]) -> Iterator[str]:
    """Yield each private member of ours that a file names; what the tests themselves have is on ``self``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in private:
            if ast.unparse(node.value) not in ("self", "cls"):
                yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and within(str(node.module), PACKAGE):
            yield from (alias.name for alias in node.names if alias.name in private)
        elif isinstance(node, ast.Constant):
            # For ``monkeypatch.setattr``.
            text = str(node.value)
            if text in private or re.fullmatch(rf"{PACKAGE}[\w.]*\._[A-Za-z]\w*", text):
                yield text


def test_tests_touch_no_private_members() -> None:
    private = private_members()
    files = {str(path.relative_to(ROOT / "tests")): path for path in (ROOT / "tests").rglob("*.py")}
    found = {file: list(touched(path, private)) for file, path in files.items() if file != ABOUT_OTHERS}
    assert {file: names for file, names in found.items() if names} == {}


def test_what_tests_import_from_each_other_is_there() -> None:
    """A functional test that cannot be imported is noticed here, and not only when Spark has started."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    missing = [
        f"{path.relative_to(ROOT)}: {node.module}.{alias.name}"
        for path in files
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and within(str(node.module), "tests")
        for alias in node.names
        if alias.name not in defined(ROOT / f"{str(node.module).replace('.', '/')}.py")
    ]
    assert missing == []


def test_what_programs_beside_the_package_import_of_it_is_there() -> None:
    """No test runs the benchmarks, and few of the scripts."""
    files = [path for folder in ("benchmarks", "scripts", "integration_tests") for path in files_of(folder)]
    assert len(files) > 5
    imported = {
        (path.name, str(node.module), alias.name)
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and within(str(node.module), "dbt.adapters.sparkevolve")
        for alias in node.names
    }
    assert ("worker.py", "dbt.adapters.sparkevolve.iceberg.catalog_settings", "resolve") in imported
    missing = [each for each in sorted(imported) if not hasattr(import_module(each[1]), each[2])]
    assert missing == []


def files_of(folder: str) -> list[Path]:
    """Return the Python files right in a folder of the project."""
    return sorted((ROOT / folder).glob("*.py"))


def defined(path: Path) -> set[str]:
    """Return the names that a module has, its imports among them."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        else:
            names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return names
