"""What is left of a table on a local file system once its files are gone."""

from pathlib import Path

import pytest

from dbt.adapters.sparkevolve.iceberg.checksums import remove_checksum, remove_leftovers


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The folder of a table that was purged: checksums of its files, and folders."""
    folder = tmp_path / "a b%20c?#" / "t__dbt_tmp_1"
    for name in ("data/p=1/.x.parquet.crc", "data/.y.parquet.crc", "metadata/.v1.metadata.json.crc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"crc")
    return folder


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://{}/"])
def test_nothing_is_left_of_a_table(table: Path, form: str) -> None:
    remove_leftovers(form.format(table))
    assert not table.exists()
    assert table.parent.exists()


def test_whatever_else_is_there_stays(table: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".z.crc").touch()
    (table / "data" / "linked").symlink_to(elsewhere)
    for name in (
        "data/kept.parquet",
        "data/.kept.parquet.crc",
        "data/.crc",
        "data/notes.crc",
        "metadata/.hidden",
    ):
        (table / name).touch()
    remove_leftovers(f"file://{table}")
    assert sorted(str(path.relative_to(table)) for path in table.rglob("*")) == [
        *("data", "data/.crc", "data/.kept.parquet.crc", "data/kept.parquet", "data/linked"),
        *("data/notes.crc", "metadata", "metadata/.hidden"),
    ]
    assert (elsewhere / ".z.crc").exists()


def test_a_link_in_the_place_of_the_folder_is_not_followed(table: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(table)
    remove_leftovers(f"file://{tmp_path}/link")
    remove_leftovers(f"file://{tmp_path}/link/")
    assert (table / "data" / ".y.parquet.crc").exists()


@pytest.mark.parametrize(
    "form", ["s3:/{}", "s3://{}", "hdfs://h{}", "file://h{}", "", "/", "file:///", "relative"]
)
def test_other_places_are_left_alone(table: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.walk", lambda *a, **k: pytest.fail("looked"))
    remove_leftovers(form.format(table))


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_leftovers(f"file://{tmp_path}/gone")


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_the_checksum_of_a_deleted_file_goes_and_others_stay(tmp_path: Path, form: str) -> None:
    for name in (".v1.json.crc", ".v2.json.crc", "v2.json"):
        (tmp_path / name).touch()
    for name in ("v1.json", "v2.json", "never"):
        remove_checksum(form.format(tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".v2.json.crc", "v2.json"]


@pytest.mark.parametrize("form", ["s3:/{}", "hdfs://h{}", "file://h{}"])
def test_checksums_in_other_places_are_left_alone(tmp_path: Path, form: str) -> None:
    (tmp_path / ".v1.json.crc").touch()
    remove_checksum(form.format(tmp_path / "v1.json"))
    assert (tmp_path / ".v1.json.crc").exists()
