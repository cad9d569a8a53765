"""Which jars Spark needs, and those that an earlier run has downloaded."""

import os
import pwd
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt.adapters.sparkevolve.errors import (
    UnsupportedVersionError,
)
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings, resolve
from dbt.adapters.sparkevolve.spark.jars import iceberg_runtime, note_resolved
from dbt.adapters.sparkevolve.spark.session_config import session_config

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
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_dir=str(folder)))
    return folder


def config(spark_config: dict[str, object], settings: CatalogSettings = EMBEDDED) -> dict[str, str]:
    return session_config(settings, spark_config, "4.1.4", BASE)


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


def test_what_ivy_has_found_for_packages_of_the_user_is_not_looked_for_again(home: Path) -> None:
    folder = home / ".ivy2.5.2" / "jars"
    folder.mkdir(parents=True)
    names = ["a_b-1.jar", "x_needed-by-b-2.jar", f"{RUNTIME_41.replace(':', '_', 1).replace(':', '-')}.jar"]
    names.append(f"{SQLITE_DRIVER.replace(':', '_', 1).replace(':', '-')}.jar")
    for name in names:
        with zipfile.ZipFile(folder / name, "w") as jar:
            jar.writestr("x", "y")
    asked = {"spark.jars.packages": "a:b:1"}
    started = config(asked)
    assert started["spark.jars.packages"] == f"a:b:1,{RUNTIME_41},{SQLITE_DRIVER}"
    # A list without the packages' own jars says nothing of what they need.
    note_resolved(f"file://{folder / names[1]}", started, home)
    assert "spark.jars" not in config(asked)
    note_resolved(",".join(f"file://{folder / name}" for name in names), started, home)
    found = config(asked)
    assert "spark.jars.packages" not in found
    assert found["spark.jars"] == ",".join(str(folder / name) for name in names)
    # Another question has another answer, and a jar that is gone is downloaded again.
    assert "spark.jars" not in config({**asked, "spark.jars.excludes": "x:needed-by-b"})
    (folder / names[1]).unlink()
    assert "spark.jars" not in config(asked)


@pytest.mark.parametrize("version", ["1-SNAPSHOT", "latest.release", "1.+", "[1,2)"])
def test_a_version_that_changes_is_looked_for_each_time(home: Path, version: str) -> None:
    folder = home / "jars"
    folder.mkdir()
    started = {"spark.jars.packages": f"a:b:{version}"}
    note_resolved(f"{folder}/a_b-{version}.jar", started, home)
    assert list(folder.iterdir()) == []
