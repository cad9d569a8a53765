"""Which profiles of one process share a session of Spark."""

from pathlib import Path
from typing import Any

from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.iceberg.catalog_settings import Place, resolve
from dbt.adapters.sparkevolve.spark.session import session_key

GLUE = {
    "type": "glue",
    "warehouse": "s3://w",
    "glue.region": "eu-central-1",
    "glue.access-key-id": "A",
    "glue.secret-access-key": "B",
}


def key(tmp_path: Path, own: dict[str, Any], **further: dict[str, Any]) -> tuple[object, ...]:
    stated = [resolve(name, given, tmp_path, Place.of_further(name)) for name, given in further.items()]
    found = session_key([resolve("lake", own, tmp_path), *stated], {}, {}, tmp_path, "shop")
    hash(found)
    return found


def test_profiles_that_say_the_same_share_a_session(tmp_path: Path) -> None:
    assert key(tmp_path, {}, archive=GLUE) == key(tmp_path, {}, archive=dict(GLUE))


def test_profiles_with_other_catalogs_share_none(tmp_path: Path) -> None:
    keys = [key(tmp_path, {}), key(tmp_path, {}, archive={}), key(tmp_path, {}, b={}), key(tmp_path, GLUE)]
    assert len(set(keys)) == len(keys)


def test_new_credentials_that_only_java_is_told_reach_it(tmp_path: Path) -> None:
    renewed = {**GLUE, "glue.secret-access-key": "C"}
    assert resolve("a", GLUE, tmp_path).spark == resolve("a", renewed, tmp_path).spark
    assert key(tmp_path, GLUE) != key(tmp_path, renewed)
    assert key(tmp_path, {}, archive=GLUE) != key(tmp_path, {}, archive=renewed)


def test_certificates_that_are_renewed_in_their_file_reach_java(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    rest = {"type": "rest", "uri": "https://127.0.0.1:1/", "ssl": {"cabundle": str(file)}}
    # One that is missing is refused where Java is told of it.
    keys = [key(tmp_path, rest)]
    for text in ("old", "new"):
        file.write_text(text)
        keys.append(key(tmp_path, rest))
        assert key(tmp_path, {}, archive=rest) == key(tmp_path, {}, archive=rest)
    assert len(set(keys)) == 3


def test_certificates_that_are_renewed_under_way_give_no_node_another_session(tmp_path: Path) -> None:
    """What a hook at the beginning of the command has set, and its temporary views, would not be there."""
    file = tmp_path / "ca.pem"
    file.write_text("old")
    rest = {"type": "rest", "uri": "https://127.0.0.1:1/", "ssl": {"cabundle": str(file)}}
    output = {"type": "sparkevolve", "method": "session", "schema": "shop", "catalog": "lake"}
    profile = {**output, "catalog_properties": rest, "catalogs": {"archive": rest}}

    def session(command: SparkEvolveCredentials) -> tuple[object, ...]:
        return session_key(command.all_catalog_settings(), {}, {}, tmp_path, "shop")

    command, found = SparkEvolveCredentials.from_dict(profile), set()
    for change in (lambda: None, lambda: file.write_text("new"), file.unlink):
        change()
        found.add(session(command))
    assert len(found) == 1
    file.write_text("new")
    assert session(SparkEvolveCredentials.from_dict(profile)) not in found
