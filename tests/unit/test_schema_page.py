"""The page that shows what tables have been through: its data, and that no name in it does harm."""

import json
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.types import LongType

from dbt.adapters.sparkevolve.errors import CatalogUnavailableError, OperationError
from dbt.adapters.sparkevolve.evolution.changes import AddColumn, WidenType
from dbt.adapters.sparkevolve.iceberg import table_story as stories_of
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.iceberg.schema_commits import commit_changes
from dbt.adapters.sparkevolve.iceberg.table_story import table_story
from dbt.adapters.sparkevolve.load.schema_page import SchemaPage, Written, embedded, page
from dbt.adapters.sparkevolve.operations import NamedNode
from tests.unit.conftest import MakeTable
from tests.unit.helpers import TYPES, append, columns, relation
from tests.unit.pages import AT, HOSTILE, stories


def node(name: str, kind: str = "model", database: str | None = "lake") -> NamedNode:
    return NamedNode(f"{kind}.shop.{name}", relation(name, database=database), {}, {})


class Parsed(HTMLParser):
    """What a browser would make of a page: its tags, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts[-1] += data


def test_what_a_table_has_been_through(other: Catalog, make_table: MakeTable) -> None:
    make_table(columns("id int, n int, note string"), [{"id": 1, "n": 1, "note": "x"}])
    changes = [AddColumn(("extra",), TYPES["string"]), WidenType(("n",), TYPES["int"], LongType())]
    commit_changes(other.load_table("db.t"), changes, "run-1", "abc", padded=[("note",)])
    append(other.load_table("db.t"), [{"id": 2, "n": 2}, {"id": 3, "n": 3}])
    with other.load_table("db.t").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("extra")
    story = table_story(other.load_table("db.t"))
    made = story["versions"][1]
    assert [(v["schema"], v["by"], v["run"], v["current"]) for v in story["versions"]] == [
        (0, "creation", "", False),
        (1, "run", "run-1", False),
        (2, "else", "", True),
    ]
    assert made["changes"] == ["changed `n` (2) from int to bigint", "added `extra` (4) string"]
    assert made["padded"] == ["`note`"]
    assert [
        (lane["path"], lane["spans"], [mark[:2] for mark in lane["marks"]]) for lane in story["lanes"]
    ] == [
        (["id"], [[0, 2]], [[0, "created"]]),
        (["n"], [[0, 2]], [[0, "created"], [1, "widened"]]),
        (["note"], [[0, 2]], [[0, "created"], [1, "padded"]]),
        (["extra"], [[1, 1]], [[1, "added"], [2, "dropped"]]),
    ]
    snapshots = [
        {key: value for key, value in snapshot.items() if key not in ("id", "at", "bytes")}
        for snapshot in story["snapshots"]
    ]
    assert snapshots == [
        {"operation": "append", "schema": 0, "added": 1, "rows": 1},
        {"operation": "append", "schema": 1, "added": 2, "rows": 3},
    ]
    assert {fact["id"]: fact["value"] for fact in story["facts"]}["rows"] == 3
    assert json.loads(embedded(story)) == story


def test_a_table_whose_older_schemas_are_gone_says_so(other: Catalog, make_table: MakeTable) -> None:
    make_table(columns("id int"), [{"id": 1}])
    for name in ("a", "b", "c"):
        with other.load_table("db.t").update_schema() as update:
            update.add_column(name, TYPES["string"])
    table = other.load_table("db.t")
    left = [schema for schema in table.metadata.schemas if schema.schema_id in (1, 3)]
    # As `expire_snapshots` leaves it: PyIceberg removes no schemas.
    metadata = table.metadata.model_copy(update={"schemas": left, "snapshots": []})
    story = table_story(Table(table.name(), metadata, table.metadata_location, table.io, table.catalog))
    assert [(v["schema"], v["by"], v["gone"], v["changes"]) for v in story["versions"]] == [
        (1, "else", 1, ["the oldest schema that is left: one older was removed by maintenance"]),
        (
            3,
            "else",
            1,
            [
                "added `b` (3) string",
                "added `c` (4) string",
                "some of that may have come with a schema before it, which was removed by maintenance",
            ],
        ),
    ]
    assert [(lane["path"], [mark[:2] for mark in lane["marks"]]) for lane in story["lanes"]] == [
        (["id"], [[0, "oldest"]]),
        (["a"], [[0, "oldest"]]),
        (["b"], [[1, "added"]]),
        (["c"], [[1, "added"]]),
    ]


def test_of_many_snapshots_the_newest_are_shown(
    other: Catalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(columns("id int"), *([{"id": n}] for n in range(3)))
    monkeypatch.setattr(stories_of, "MOST_SNAPSHOTS", 2)
    story = table_story(other.load_table("db.t"))
    assert [snapshot["rows"] for snapshot in story["snapshots"]] == [2, 3]
    assert story["more_snapshots"] == 1


def test_a_table_that_cannot_be_shown_is_listed_with_its_reason(
    lake: IcebergCatalog, make_table: MakeTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(columns("id int"), [{"id": 1}])
    asked = []
    away = IcebergCatalog(lake.access.settings)

    def find(_: object) -> None:
        asked.append(1)
        raise CatalogUnavailableError("far", "nowhere", "no answer")

    monkeypatch.setattr(away, "find", find)
    catalogs = Catalogs([lake])
    monkeypatch.setattr(catalogs, "of", lambda name: away if name == "far" else lake)
    writer = SchemaPage(catalogs, "shop", tmp_path, 1)
    path = Path("some") / "page.html"
    nodes = [
        node("t"),
        node("u"),
        node("v", "snapshot", database=None),
        node("w", database="far"),
        node("x", database="far"),
    ]
    written = writer.write(nodes, path)
    gone = "The catalog `lake` has no such Iceberg table. `dbt {}` makes it."
    said = str(CatalogUnavailableError("far", "nowhere", "no answer").msg)
    reasons = {
        "model.shop.u": gone.format("run"),
        "snapshot.shop.v": gone.format("snapshot"),
        "model.shop.w": said,
        "model.shop.x": said,
    }
    assert written == Written(str(path), ("model.shop.t",), reasons)
    assert asked == [1]
    assert written.text.splitlines()[:2] == [f"{path}: 1 table", f"  model.shop.u: {gone.format('run')}"]
    assert written.data == {"path": str(path), "shown": ["model.shop.t"], "not_shown": reasons}
    assert [found.name for found in (tmp_path / "some").iterdir()] == ["page.html"]
    text = (tmp_path / path).read_text(encoding="utf-8")
    models = json.loads(Parsed(text).scripts[0])["models"]
    assert [model.get("reason", "shown") for model in models] == ["shown", *reasons.values()]
    with pytest.raises(OperationError) as error:
        writer.write(nodes[:1], Path("some"))
    assert error.value.msg == (
        "The page cannot be written to some: Is a directory. Name another file: --args "
        "'{path: target/schema.html}'."
    )
    with pytest.raises(OperationError) as error:
        writer.write(nodes[:1], path / "page.html")
    assert error.value.msg.startswith("The page cannot be written to some/page.html/page.html: File exists. ")
    assert [found.name for found in (tmp_path / "some").iterdir()] == ["page.html"]


def test_a_table_whose_files_are_gone_takes_no_other_from_the_page(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, tmp_path: Path
) -> None:
    make_table(columns("id int"), [{"id": 1}])
    make_table(columns("id int"), name="gone")
    file = Path(other.load_table("db.gone").metadata_location.removeprefix("file://"))
    file.unlink()
    written = SchemaPage(Catalogs([lake]), "shop", tmp_path, 2).write(
        [node("gone"), node("t")], Path("page.html")
    )
    assert written.shown == ("model.shop.t",)
    reason = written.reasons["model.shop.gone"]
    assert reason.startswith("The metadata of `lake`.`db`.`gone` cannot be read: FileNotFoundError: ")
    assert file.name in reason


def test_an_interruption_waits_for_no_table_that_has_not_been_begun(
    lake: IcebergCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def story(self: SchemaPage, of: NamedNode) -> None:
        asked.append(of.unique_id)
        if len(asked) > 1:
            # So that who waits for the first one hears of it, on a busy machine, too.
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(SchemaPage, "story", story)
    nodes = [node(f"t{n}") for n in range(500)]
    with pytest.raises(KeyboardInterrupt):
        SchemaPage(Catalogs([lake]), "shop", tmp_path, 1).write(nodes, Path("page.html"))
    assert len(asked) < len(nodes)
    assert not (tmp_path / "page.html").exists()


def test_no_name_becomes_markup() -> None:
    text = page(HOSTILE[0], stories(), AT)
    parsed = Parsed(text)
    assert [tag for tag, _ in parsed.tags].count("script") == 2
    assert [tag for tag, _ in parsed.tags if tag in ("img", "iframe", "object")] == []
    data = json.loads(parsed.scripts[0])
    assert data == {"project": HOSTILE[0], "at": AT, "models": stories()}
    assert "49" not in text[: text.index("<script")].partition("<body>")[2]


def test_the_page_names_no_address() -> None:
    parsed = Parsed(page("shop", stories(), AT))
    addresses = [
        value for _, attributes in parsed.tags for key, value in attributes.items() if key in ("src", "href")
    ]
    assert addresses == ["data:,", "#models"]
    policy = next(a["content"] for tag, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'; script-src 'sha256-")


def test_an_empty_project_has_a_page() -> None:
    assert json.loads(Parsed(page("shop", [], AT)).scripts[0])["models"] == []
