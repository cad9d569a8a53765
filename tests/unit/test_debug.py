"""What `dbt debug` tests, and what it says of what does not work; functional tests run the command."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve import debug
from dbt.adapters.sparkevolve.debug import ConnectionTest
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import Place, resolve
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs

# Nobody listens there.
REST = {"type": "rest", "uri": "http://127.0.0.1:1/"}


class Spark:
    """Makes schemas in the catalogs that it was given, as PyIceberg has them, and answers no question."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self.asked: list[str] = []

    def run(self, sql: str) -> None:
        verb, _, relation = sql.split(" ")
        database, schema = relation.replace("`", "").split(".")
        self.asked.append(f"{verb} {database}")
        if database == "denied":
            raise DbtRuntimeError("not for you")
        opened = self._catalogs.of(database).access.opened
        (opened.create_namespace if verb == "create" else opened.drop_namespace)(schema)

    def rows(self, sql: str) -> Any:
        raise DbtRuntimeError("not allowed")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(debug.logger, "info", lines.append)
    return lines


def catalogs_of(stated: dict[str, Any], folder: Path) -> Catalogs:
    own, *further = stated
    places = {own: None, **{name: Place.of_further(name) for name in further}}
    return Catalogs(
        [IcebergCatalog(resolve(name, stated[name], folder, places[name]), None, 1) for name in stated]
    )


def outcome(catalogs: Catalogs, connect: Any = lambda: None) -> tuple[list[str], str]:
    """Return what Spark was asked, and what `dbt debug` ends with; nothing if all is well."""
    spark = Spark(catalogs)
    try:
        ConnectionTest(catalogs, spark, connect).run()  # type: ignore[arg-type]
    except DbtRuntimeError as exc:
        return spark.asked, str(exc.msg)
    return spark.asked, ""


def test_each_catalog_is_shown_and_tested(shown: list[str], tmp_path: Path) -> None:
    asked, said = outcome(catalogs_of({"lake": {}, "other": {}}, tmp_path))
    assert (asked, said) == (["create lake", "drop lake", "create other", "drop other"], "")
    # Spark need not answer: what it does not tell is said as such.
    assert shown[0] == (
        "  Spark version unknown, Java version unknown, Iceberg version unknown, "
        f"PyIceberg {version('pyiceberg')}"
    )
    assert [line for line in shown if "catalog `" in line] == [
        f"  catalog `lake`: SQL, in {tmp_path}/.sparkevolve, warehouse file://{tmp_path}/.sparkevolve/warehouse",
        f"  catalog `other`: SQL, in {tmp_path}/.sparkevolve, "
        f"warehouse file://{tmp_path}/.sparkevolve/warehouse/.catalog-other",
    ]


def test_what_is_broken_hides_no_other(shown: list[str], tmp_path: Path) -> None:
    """Whatever it is, and wherever it is stated."""
    (tmp_path / "file").write_text("no database")
    no_file = {"type": "sql", "uri": f"sqlite:///{tmp_path}/file", "warehouse": "file:///w"}
    stated = {"lake": {}, "away": REST, "denied": {}, "no_file": no_file, "last": {}}
    asked, said = outcome(catalogs_of(stated, tmp_path))
    assert asked == ["create lake", "drop lake", "create denied", "create last", "drop last"]
    first, *texts = said.splitlines()
    assert first == "Of 5 catalogs, 3 cannot be worked with: `away`, `no_file`, `denied`."
    assert texts[0].startswith("The Iceberg catalog `away` at 127.0.0.1:1 cannot be reached: it refuses conn")
    assert "`catalogs.no_file`" in texts[1]
    assert texts[2:] == ["`denied`: not for you"]
    broken = [line.split("`")[1] for line in shown if line.endswith(": does not work, see below")]
    assert broken == ["away", "denied", "no_file"]


def test_without_its_own_catalog_spark_is_not_asked(shown: list[str], tmp_path: Path) -> None:
    """Each connection begins in it."""
    asked, said = outcome(catalogs_of({"lake": REST, "other": {}}, tmp_path))
    assert asked == []
    lines = said.splitlines()
    assert lines[0] == "Of 2 catalogs, 1 cannot be worked with: `lake`."
    assert lines[1].startswith("The Iceberg catalog `lake` at 127.0.0.1:1 cannot be reached")
    assert lines[2:] == [
        "Spark was not asked, since each connection begins in the catalog `lake`: the others were tested "
        "through PyIceberg alone."
    ]
    assert [line for line in shown if line.startswith("  catalog `other`: SQL, in ")]
    # Of a single one, its own text says all.
    _, said = outcome(catalogs_of({"lake": REST}, tmp_path))
    assert said == lines[1]


def test_that_spark_cannot_be_reached_is_said_as_a_run_says_it(shown: list[str], tmp_path: Path) -> None:
    def refuse() -> None:
        raise DbtRuntimeError("Cannot connect to 127.0.0.1:1: [Errno 111] Connection refused")

    asked, said = outcome(catalogs_of({"lake": {}}, tmp_path), refuse)
    assert (asked, said) == ([], "Cannot connect to 127.0.0.1:1: [Errno 111] Connection refused")
    assert not [line for line in shown if "Spark version" in line]
    _, said = outcome(catalogs_of({"lake": {}, "away": REST}, tmp_path), refuse)
    assert [line.split(":")[0] for line in said.splitlines()] == [
        "Cannot connect to 127.0.0.1",
        "Of 2 catalogs, 1 cannot be worked with",
        "The Iceberg catalog `away` at 127.0.0.1",
    ]
