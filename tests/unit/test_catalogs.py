"""Several catalogs in a profile: what `catalogs` may say, and which catalog answers for a relation."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.contracts.relation import RelationType
from dbt.artifacts.resources import FileHash
from dbt.artifacts.resources import TestConfig as NodeConfigOfTest
from dbt.contracts.graph.nodes import SingularTestNode
from dbt.node_types import NodeType
from dbt_common.exceptions import DbtRuntimeError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from dbt.adapters.sparkevolve.documentation import Documentation
from dbt.adapters.sparkevolve.errors import (
    CatalogUnavailableError,
    ForeignCatalogError,
    FreshnessError,
    NoSuchCatalogError,
    ProfileError,
    SameTableError,
    StatementError,
)
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import Place, resolve
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.listing import Listing, built_nodes, check_places
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.put_off import SchemasPutOff
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.spark.jars import ICEBERG_RUNTIMES
from dbt.adapters.sparkevolve.spark.session_config import session_config
from dbt.adapters.sparkevolve.spark.thrift import thrift_configuration
from tests.unit.test_credentials import SESSION, THRIFT, credentials, refused

SECRET = "correct-horse-battery"
REST = {"type": "rest", "uri": "http://127.0.0.1:1/", "token": SECRET}
GLUE = {"type": "glue", "warehouse": "s3://w", "client.region": "eu-west-1"}


def relation(database: str | None, name: str = "t") -> SparkEvolveRelation:
    return SparkEvolveRelation.create(database, "db", name, type=RelationType.Table)


# What `catalogs` may say


@pytest.mark.parametrize(
    ("catalogs", "setting", "said"),
    [
        (
            None,
            "catalogs",
            "`catalogs` in the profile has to be a mapping of keys to values, but is nothing.",
        ),
        (
            "o",
            "catalogs",
            "`catalogs` in the profile has to be a mapping of keys to values, but is a string.",
        ),
        (
            ["o"],
            "catalogs",
            "`catalogs` in the profile has to be a mapping of keys to values, but is a list.",
        ),
        (
            {"type": "rest", "uri": f"https://me:{SECRET}@host"},
            "catalogs.type",
            "`catalogs.type` in the profile has to be a mapping of PyIceberg's properties of the catalog "
            "`type`, but is a string. `catalogs` has the name of each further catalog, and its properties "
            "below that.",
        ),
        ({"o": [REST]}, "catalogs.o", "properties of the catalog `o`, but is a list."),
        (
            {"lake": REST},
            "catalogs.lake",
            "`catalogs` of the profile has 'lake', which is the name of the profile's `catalog`, 'lake'. "
            "State each catalog once.",
        ),
        (
            {"Lake": REST},
            "catalogs.Lake",
            "`catalogs` of the profile has 'Lake', which is the name of the profile's `catalog`, 'lake', in "
            "other letters: dbt does not tell them apart. State each catalog once.",
        ),
        ({"o": REST, "O": REST}, "catalogs.O", "is the name of another one there, 'o', in other letters"),
        (
            {"spark_catalog": {}},
            "catalogs.spark_catalog",
            "`catalogs` of the profile has 'spark_catalog', which is Spark's own catalog and keeps its "
            "schemas in Spark or in a Hive metastore: it needs `type: hive`. What is in it can be read, and "
            "tables of other formats and views can be built in it, without being stated; give an Iceberg "
            "catalog another name.",
        ),
        ({"spark_catalog": REST}, "catalogs.spark_catalog", "it needs `type: hive`."),
        *(
            (
                {name: REST},
                "catalogs",
                f"`catalogs` of the profile has a catalog {name!r}: the name of a catalog consists of "
                "letters, digits and underscores, such as lake.",
            )
            for name in ("my-lake", "a.b", "`o`", "1o", "", "o ", "ö", "a b", "o\n", "*")
        ),
        (
            {"o": {"type": "hadoop"}},
            "catalogs.o",
            "`catalogs.o` has the type 'hadoop', and Spark and PyIceberg can share one of: sql, rest, hive, "
            "glue. Set `type`, or leave `catalogs.o` empty for the embedded catalog under ./.sparkevolve.",
        ),
        (
            {"o": {**REST, "warehose": "w"}},
            "catalogs.o",
            "`catalogs.o` has `warehose`, which neither Spark nor",
        ),
        ({"o": {**REST, "scope": ["a"]}}, "catalogs.o", "`scope` in `catalogs.o` is a list"),
        ({"o": {**REST, "spark": "x"}}, "catalogs.o", "`spark` in `catalogs.o` is no mapping"),
        (
            {"o": {**REST, "auth": {"type": "entra"}}},
            "catalogs.o",
            "`catalogs.o` cannot be said to both sides: one would be denied what the other may do",
        ),
        ({"o": {"type": "sql", "uri": "nonsense"}}, "catalogs.o", "`catalogs.o` needs a SQLAlchemy URL"),
        (
            {"o": {"type": "sql", "uri": f"mssql://me:{SECRET}@h/db"}},
            "catalogs.o",
            "The SQL catalog `o` is in mssql",
        ),
    ],
)
def test_each_wrong_form_is_refused(catalogs: Any, setting: str, said: str) -> None:
    error = refused({**SESSION, "catalogs": catalogs})
    assert error.setting == setting
    assert said in error.msg
    assert SECRET not in str(error)


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(ProfileError, match="a catalog 1: the name of a catalog consists of letters"):
        credentials({**SESSION, "catalogs": {1: REST}})


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("spark.sql.catalogs.other.type", "spark.sql.catalog.other.type"),
        ("spark.sql.catalog.othr.type", None),
        ("spark.sql.catalgo.other.type", "spark.sql.catalog.other.type"),
    ],
)
def test_near_misses_of_settings_of_each_catalog(key: str, meant: str | None) -> None:
    output = {**SESSION, "catalogs": {"other": REST}, "spark_config": {key: "rest"}}
    if meant is None:
        credentials(output)
    else:
        assert f"Did you mean `{meant}`?" in refused(output).msg


def test_a_misspelt_catalogs_is_no_setting() -> None:
    assert "Did you mean `catalogs`?" in refused({**SESSION, "cataloges": {"other": REST}}).msg


def test_what_java_has_once_is_said_once() -> None:
    keys = {"client.access-key-id": "A", "client.secret-access-key": SECRET}
    other = {"client.access-key-id": "B", "client.secret-access-key": f"{SECRET}-2"}
    said = {**SESSION, "catalog_properties": {**GLUE, **keys}}
    for second in ({**GLUE, **other}, GLUE):
        error = refused({**said, "catalogs": {"other": second}})
        assert error.setting == "catalogs.other"
        assert "its Java has one `aws.accessKeyId` for all, and they do not say the same of it" in error.msg
        assert SECRET not in str(error)
    for output in ({**said, "catalogs": {"other": {**GLUE, **keys}}}, {**said, "catalogs": {"other": REST}}):
        assert len(credentials(output).all_catalog_settings()) == 2
    # A server has its operator's.
    properties = {"catalog_properties": {**GLUE, **keys}, "catalogs": {"other": {**GLUE, **other}}}
    assert credentials({**THRIFT, **properties}).catalog_names == ("lake", "other")


def test_a_cache_is_known_of_each() -> None:
    cached = {**REST, "cache-enabled": True}
    output = {**SESSION, "catalogs": {"other": cached, "third": REST}}
    assert credentials(output).cached_catalogs == ["other"]
    assert credentials({**THRIFT, "catalogs": {"other": cached}}).cached_catalogs == []


def test_only_names_are_shown() -> None:
    profile = credentials({**SESSION, "catalogs": {"other": REST, "third": {}}})
    assert dict(profile.connection_info())["catalogs"] == "other, third"
    assert SECRET not in repr(profile)
    assert "catalogs" not in dict(credentials(SESSION).connection_info())


# What Spark is told


def test_a_session_knows_each_catalog(tmp_path: Path) -> None:
    profile = credentials(
        {
            **SESSION,
            "catalog_properties": {**GLUE, "warehouse": "gs://w"},
            "catalogs": {"other": {**REST, "client.region": "eu-west-1"}, "own": {}},
            "spark_config": {"spark.sql.catalog.own.x": "y"},
        }
    )
    own, *further = profile.all_catalog_settings()
    config = session_config(own, profile.spark_config, "4.1.4", tmp_path, further)
    assert config["spark.sql.defaultCatalog"] == "lake"
    for name, kind in (("lake", "glue"), ("other", "rest"), ("own", "jdbc")):
        prefix = f"spark.sql.catalog.{name}"
        assert config[prefix] == "org.apache.iceberg.spark.SparkCatalog"
        assert (config[f"{prefix}.type"], config[f"{prefix}.cache-enabled"]) == (kind, "false")
    assert config["spark.sql.catalog.own.x"] == "y"
    assert config["spark.sql.catalog.lake.io-impl"] == "org.apache.iceberg.gcp.gcs.GCSFileIO"
    assert config["spark.sql.catalog.other.token"] == SECRET
    version = ICEBERG_RUNTIMES["4.1"].rpartition(":")[2]
    jars = config.get("spark.jars.packages", "").split(",")
    wanted = {f"org.apache.iceberg:iceberg-{cloud}-bundle:{version}" for cloud in ("aws", "gcp")}
    assert not jars[0] or (wanted < set(jars) and len(jars) == len(set(jars)))
    assert set(thrift_configuration(credentials({**THRIFT, "catalogs": {"other": REST}}))) >= {
        "set:hiveconf:spark.sql.catalog.lake.cache-enabled",
        "set:hiveconf:spark.sql.catalog.other.cache-enabled",
    }


def test_spark_s_own_catalog_can_be_a_further_one(tmp_path: Path) -> None:
    hive = {"type": "hive", "uri": "thrift://metastore:9083", "warehouse": "file:///w"}
    profile = credentials({**SESSION, "catalogs": {"spark_catalog": hive}})
    own, *further = profile.all_catalog_settings()
    config = session_config(own, {}, "4.1.4", tmp_path, further)
    assert config["spark.sql.defaultCatalog"] == "lake"
    assert config["spark.sql.catalog.spark_catalog"] == "org.apache.iceberg.spark.SparkSessionCatalog"
    assert config["spark.sql.catalogImplementation"] == "hive"
    assert config["spark.hadoop.hive.metastore.uris"] == hive["uri"]


def test_embedded_catalogs_of_a_project_share_a_database_and_no_folder(tmp_path: Path) -> None:
    own, second = resolve("lake", {}, tmp_path), resolve("other", {}, tmp_path, Place.of_further("other"))
    assert own.sqlite_file == second.sqlite_file == tmp_path / ".sparkevolve/catalog.db"
    assert second.embedded
    field = Schema(NestedField(1, "id", LongType(), required=False))
    locations = []
    for settings in (own, second):
        catalog = IcebergCatalog(settings).access.opened
        catalog.create_namespace("db")
        locations.append(catalog.create_table(("db", "t"), field).location())
    assert locations == [
        f"file://{tmp_path}/.sparkevolve/warehouse/db/t",
        f"file://{tmp_path}/.sparkevolve/warehouse/.catalog-other/db/t",
    ]
    # Each of them is the profile's own at another time, and finds its tables.
    swapped = IcebergCatalog(resolve("other", {}, tmp_path))
    found = swapped.find(relation("other"))
    assert found is not None
    assert found.location() == locations[1]


# Which catalog answers


@pytest.fixture
def catalogs(lake: IcebergCatalog, tmp_path: Path) -> Catalogs:
    """The catalog of the other tests, a second one, and one that is away."""
    further = {"other": {}, "away": REST}
    settings = [resolve(name, given, tmp_path, Place.of_further(name)) for name, given in further.items()]
    return Catalogs([lake, *(IcebergCatalog(each, None, 1) for each in settings)])


def test_each_relation_has_the_catalog_of_its_database(catalogs: Catalogs, lake: IcebergCatalog) -> None:
    assert catalogs.names == ("lake", "other", "away")
    assert catalogs.of(None) is catalogs.of("lake") is catalogs.own is lake
    assert catalogs.of("other") is catalogs.of("other") is not lake
    assert [catalogs.has(name) for name in (None, "lake", "other", "Other", "third")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    other = catalogs.of("other")
    other.access.opened.create_namespace("db")
    other.access.opened.create_table(("db", "t"), schema)
    assert other.find(relation("other")) is not None
    assert lake.find(relation("lake")) is None
    assert lake.find(relation("other")) is None


def test_what_is_not_stated_is_found_by_spark_alone(catalogs: Catalogs) -> None:
    third = catalogs.of("third")
    assert third.name == "third"
    assert third.find(relation("third")) is None
    assert third.find_readable(relation("third")) is None
    assert third.table_names("db") == frozenset()
    assert not third.is_newer_format(relation("third"))
    assert third.capabilities.has_views
    third.check()
    for asked in (third.load, third.schema_history, third.purge):
        with pytest.raises(ForeignCatalogError) as raised:
            asked(relation("third"))
        assert raised.value.msg == (
            "`third`.`db`.`t` is in the catalog 'third', and the profile states 'lake', 'other', 'away': "
            "incremental models and snapshots, and what looks at the history of their tables, need one that "
            "it states. State `third` under `catalogs:` in the profile, with PyIceberg's properties of it, "
            "or leave `database` out (or a snapshot's `target_database`, or what your macro "
            "`generate_database_name` returns). Nothing was read or written."
        )
    with pytest.raises(
        FreshnessError, match="it is in the catalog `third`, which the profile does not state"
    ):
        Documentation(catalogs, lambda relation: (None, [])).age(relation("third"))


@pytest.mark.parametrize(("name", "meant"), [("Lake", "lake"), ("`LAKE`", "lake"), ("OTHER", "other")])
def test_a_name_in_other_letters_is_told(catalogs: Catalogs, name: str, meant: str) -> None:
    with pytest.raises(ForeignCatalogError, match=f"Write `{meant}`, as the profile does: Spark tells"):
        catalogs.check_name(name)
    for known in ("lake", "`other`", "third"):
        catalogs.check_name(known)
    # As dbt has it where `generate_database_name` returns none.
    catalogs.check_name(None)
    for users, begins in (
        ([], "What this command builds or reads is in the catalog"),
        (["The model `a`"], "The model `a` is in the catalog"),
        (
            ["The model `a`", "The source `s.b`", "The seed `c`"],
            "The model `a` (and 2 more) is in the catalog",
        ),
    ):
        with pytest.raises(ForeignCatalogError) as raised:
            catalogs.check_name(name, users)
        assert str(raised.value.msg).startswith(begins)


def test_only_what_a_statement_names_is_asked(catalogs: Catalogs) -> None:
    for sql in (
        "select 1",
        "select * from `lake`.`s`.`t`",
        "select away.id from `other`.`s`.`t` as away",
        "select 'away' as `away`, 1",
        "select `far_away`.`x`",
    ):
        catalogs.check_before(sql)
    error = StatementError("java.net.ConnectException: Connection refused", "select")
    catalogs.check_after(error, "select faraway, _away from other.s.t")
    for sql in ("select * from `away`.`s`.`t`", "show databases in `away`", "create schema `away`.`s`"):
        with pytest.raises(CatalogUnavailableError) as raised:
            catalogs.check_before(sql)
        assert (raised.value.catalog, raised.value.address) == ("away", "127.0.0.1:1")
        assert "that `catalogs.away` of the profile name it" in raised.value.msg
    with pytest.raises(CatalogUnavailableError) as raised:
        catalogs.check_after(error, "select * from away.s.t")
    assert raised.value.catalog == "away"


@pytest.mark.parametrize("is_unknown", [False, True])
def test_an_answer_of_a_rest_catalog_to_spark_has_its_name(catalogs: Catalogs, is_unknown: bool) -> None:
    sql = "insert into `away`.`s`.`t` select * from `other`.`s`.`t`"
    for text in ("Not authorized: who are you?", "Server error: Internal: oh", "Service failed: 502: oh"):
        error = StatementError(text, sql, is_fate_unknown=is_unknown)
        with pytest.raises(StatementError) as raised:
            catalogs.check_after(error, sql)
        assert raised.value.msg == f"{text}\nSpark has asked the Iceberg catalog `away` at 127.0.0.1:1."
        assert (raised.value.statement, raised.value.is_fate_unknown) == (sql, is_unknown)
        assert raised.value.__cause__ is error
        catalogs.check_after(error, "select * from `other`.`s`.`t`")
    # What an object store says, or a user's function, is no answer of a catalog.
    for text in (
        "[DIVIDE_BY_ZERO] oh",
        "s3a://bucket/f: getFileStatus on f: Forbidden: oh (Service: S3, Status Code: 403)",
        "[USER_RAISED_EXCEPTION] Server error: oh SQLSTATE: P0001",
    ):
        catalogs.check_after(StatementError(text, sql), sql)


@pytest.mark.parametrize(
    "text",
    [
        "Unknown failure\nCaused by: ERROR: permission denied for table iceberg_tables",
        "Failed to get table s.t from catalog base\nCaused by: (conn=21) Connection is closed",
        "Failed to execute: DELETE FROM iceberg_tables WHERE catalog_name = ?\nCaused by: ERROR: no",
    ],
)
def test_what_a_database_says_to_spark_has_the_name_of_its_catalog(
    lake: IcebergCatalog, tmp_path: Path, text: str
) -> None:
    catalogs = Catalogs([lake, IcebergCatalog(resolve("base", {}, tmp_path, Place.of_further("base")))])
    sql = "insert into `base`.`s`.`t` select * from `away`.`s`.`t`"
    for is_unknown in (False, True):
        error = StatementError(text, sql, is_fate_unknown=is_unknown)
        with pytest.raises(StatementError) as raised:
            catalogs.check_after(error, sql)
        where = catalogs.of("base").access.settings.where
        assert raised.value.msg == f"{text}\nSpark has asked the Iceberg catalog `base` at {where}."
        assert (raised.value.statement, raised.value.is_fate_unknown) == (sql, is_unknown)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("lakes", "Did you mean `lake`? "),
        ("warehouse", ""),
        ("a``b", ""),
        ("Other", "Did you mean `other`? "),
    ],
)
def test_a_table_that_was_looked_for_in_no_catalog(catalogs: Catalogs, name: str, meant: str) -> None:
    text = (
        f"[TABLE_OR_VIEW_NOT_FOUND] The table or view `{name}`.`s`.`t` cannot be found. Verify the spelling "
        "and correctness of the schema and catalog."
    )
    sql = f"select * from `{name}`.`s`.`t`"
    with pytest.raises(StatementError) as raised:
        catalogs.check_after(StatementError(text, sql), sql)
    bare = name.replace("``", "`")
    assert raised.value.msg == (
        f"{text}\nThe profile states no catalog `{bare}`, but `lake`, `other`, `away`. {meant}Where Spark "
        "has none of that name either, it takes the name for a schema's: correct the `database` of the "
        "source, or whatever the name is from."
    )


@pytest.mark.parametrize("name", ["`lake`.`s`.`t`", "`s`.`t`", "`t`", "`spark_catalog`.`s`.`t`"])
def test_a_table_that_is_missing_in_a_catalog_is_spark_s_to_tell(catalogs: Catalogs, name: str) -> None:
    text = f"[TABLE_OR_VIEW_NOT_FOUND] The table or view {name} cannot be found."
    catalogs.check_after(StatementError(text, "select"), f"select * from {name}")


def data_test(*, stores: bool) -> SingularTestNode:
    """Return a test of dbt's in the catalog `away`."""
    return SingularTestNode(
        database="away",
        schema="failures",
        name="no_gaps",
        resource_type=NodeType.Test,
        package_name="shop",
        path="no_gaps.sql",
        original_file_path="tests/no_gaps.sql",
        unique_id="test.shop.no_gaps",
        fqn=["shop", "no_gaps"],
        alias="no_gaps",
        checksum=FileHash.empty(),
        config=NodeConfigOfTest(store_failures=stores),
    )


@pytest.mark.parametrize("by_flag", [False, True])
def test_schemas_of_a_catalog_that_is_away_are_put_off(
    monkeypatch: pytest.MonkeyPatch, *, by_flag: bool
) -> None:
    """Until something is built there: a model, or the table of the failures that a test stores."""
    # dbt's `--store-failures`.
    monkeypatch.setattr(
        "dbt.contracts.graph.nodes.get_flags", lambda: SimpleNamespace(STORE_FAILURES=by_flag)
    )
    put_off = SchemasPutOff("lake")
    schema, same, other = (SparkEvolveRelation.create("away", name) for name in ("db", "db", "failures"))
    for put in (schema, same, other, None):
        with put_off.failures("away", put):
            fail("away")
    failures = SparkEvolveRelation.create("away", "failures", "no_gaps")
    made: list[Any] = []
    stores, reads = data_test(stores=not by_flag), data_test(stores=False)
    put_off.make(stores, relation("lake"), made.append)
    if not by_flag:
        put_off.make(reads, failures, made.append)
    assert made == []
    with pytest.raises(CatalogUnavailableError):
        put_off.make(stores, failures, lambda _: fail("away"))
    for _ in range(2):
        put_off.make(stores, failures, made.append)
    assert made == [other]
    # Another thread makes it meanwhile, and then nothing is left to be made.
    put_off.make(stores, relation("away"), lambda _: put_off.make(stores, relation("away"), made.append))
    put_off.make(stores, relation("away"), made.append)
    assert made == [other, schema]
    # What lies in another schema does not need it: that it cannot be made is no matter there.
    nested, quoted = (
        SparkEvolveRelation.create("away", "a.b"),
        SparkEvolveRelation.create("away", "`a`.b", "t"),
    )
    for put in (schema, nested):
        with put_off.failures("away", put):
            fail("away")
    put_off.make(stores, SparkEvolveRelation.create("away", "a", "t"), made.append)
    put_off.make(stores, quoted, made.append)
    put_off.make(stores, relation("away"), made.append)
    assert made == [other, schema, nested, schema]
    with pytest.raises(CatalogUnavailableError), put_off.failures("away", schema):
        fail("lake")
    # A node says more of a statement that nobody has answered.
    unanswered = StatementError(
        "Error occurred while processing POST request", "create schema away.late", is_fate_unknown=True
    )
    late = SparkEvolveRelation.create("away", "late")
    with put_off.failures("away", late):
        raise Node().explained(unanswered) from unanswered
    put_off.make(stores, SparkEvolveRelation.create("away", "late", "t"), made.append)
    assert made[-1] == late
    with pytest.raises(DbtRuntimeError), put_off.failures("lake", schema):
        raise Node().explained(unanswered) from unanswered
    with pytest.raises(DbtRuntimeError, match="of dbt's own"), put_off.failures("away", schema):
        raise DbtRuntimeError("of dbt's own")


def test_what_spark_cannot_do_in_a_further_catalog_is_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("dbt.adapters.sparkevolve.put_off.warn_of_rest", told.append)
    put_off = SchemasPutOff("lake")
    schemas = [SparkEvolveRelation.create(catalog, "db") for catalog in ("odd", "odd", "denied")]

    def refuse(text: str) -> None:
        raise StatementError(text, "show databases")

    with put_off.failures("odd"):
        refuse("[CATALOG_NOT_FOUND] The catalog `odd` not found. ")
    for schema in schemas:
        with put_off.failures(str(schema.database), schema):
            refuse("not for you")
    assert told == [
        "Spark could not list the schemas of the catalog `odd`: [CATALOG_NOT_FOUND] The catalog `odd` not "
        "found. What is built in it, or reads from it, fails.",
        "Spark could not make `denied`.`db`: not for you. What is built in it, or reads from it, fails.",
    ]
    made: list[Any] = []
    stores = data_test(stores=True)
    put_off.make(stores, relation("lake"), made.append)
    with pytest.raises(StatementError, match="still not for you"):
        put_off.make(stores, relation("denied"), lambda _: refuse("still not for you"))
    put_off.make(stores, relation("odd"), made.append)
    assert made == [schemas[0]]
    # Without the profile's own there is no run, nor is anything else put off.
    with pytest.raises(StatementError, match="not even here"), put_off.failures("lake"):
        refuse("not even here")
    with pytest.raises(RuntimeError, match="a fault"), put_off.failures("odd", schemas[0]):
        raise RuntimeError("a fault")


class Settings:
    """Spark, of which nothing but settings is asked."""

    def __init__(self, **known: str) -> None:
        self.known = {f"spark.sql.catalog.{name}": value for name, value in known.items()}
        self.asked: list[str] = []

    def setting(self, name: str) -> str | None:
        self.asked.append(name)
        if name == "spark.sql.catalog.secret":
            raise StatementError("not for you", f"SET {name}")
        return self.known.get(name)


def test_a_catalog_that_spark_lacks_is_no_schema_of_another(
    catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under its name Spark builds in the catalog that is current."""
    spark = Settings(third="org.apache.iceberg.spark.SparkCatalog", other="o")
    in_server = Listing(catalogs, spark)  # type: ignore[arg-type]
    for name in (None, "lake", "spark_catalog", "third", "third", "other", "secret"):
        in_server.check_catalog(name)
    # Each once, and those that are always there never.
    asked = ["third", "other", "secret"]
    assert spark.asked == [f"spark.sql.catalog.{name}" for name in asked]
    for name, remedy in (
        (
            "nowhere",
            "Correct `database` (or a snapshot's `target_database`, or what your macro "
            "`generate_database_name` returns), or state the catalog under `catalogs:` in the profile.",
        ),
        (
            "away",
            "The profile states it: have the server's operator set it up, or set it in "
            "`server_side_parameters`.",
        ),
    ):
        with pytest.raises(NoSuchCatalogError) as raised:
            in_server.check_catalog(name)
        assert raised.value.msg == (
            f"Spark has no catalog `{name}`, since `spark.sql.catalog.{name}` is not set: it would take the "
            "name for a schema's, and build in the catalog that is current. "
            f"{remedy} Nothing was built."
        )
    # In a session, the adapter has set up those that are stated.
    of_session = Listing(catalogs, spark, catalogs.names)  # type: ignore[arg-type]
    of_session.check_catalog("away")
    told: list[str] = []
    monkeypatch.setattr("dbt.adapters.sparkevolve.put_off.warn_of_rest", told.append)
    put_off = SchemasPutOff("lake")
    schema = SparkEvolveRelation.create("nowhere", "db")
    for put in (None, schema):
        with put_off.failures("nowhere", put):
            in_server.check_catalog("nowhere")
    assert [text[-58:] for text in told] == [
        "Nothing was built. What is built in it, or reads from it, fails."[-58:]
    ]
    with pytest.raises(NoSuchCatalogError):
        put_off.make(
            data_test(stores=True), relation("nowhere"), lambda s: in_server.check_catalog(s.database)
        )


def fail(catalog: str) -> None:
    raise CatalogUnavailableError(catalog, "host:1", "it refuses connections")


def node(name: str, database: str | None, schema: str = "shop", alias: str = "t", kind: str = "model") -> Any:
    return SimpleNamespace(resource_type=kind, name=name, database=database, schema=schema, identifier=alias)


def test_two_nodes_of_one_table_are_refused_by_their_names(lake: IcebergCatalog, tmp_path: Path) -> None:
    properties = {"type": "hive", "uri": "thrift://127.0.0.1:1", "warehouse": "file:///w"}
    hive = IcebergCatalog(resolve("hive", properties, tmp_path, Place.of_further("hive")))
    catalogs = Catalogs([lake, hive])
    others = [
        node("a", None),
        node("b", "hive"),
        node("c", "lake", alias="T"),
        node("d", "lake", "Shop"),
        node("e", "lake", "`a.b`"),
        node("f", None, "a.b"),
        node("g", "spark_catalog"),
        node("h", "Spark_catalog", "Shop"),
    ]
    check_places(others, catalogs)
    for other, told in (
        (
            node("z", "lake", kind="seed"),
            "catalog `lake`: the model `a` as `shop`.`t`, the seed `z` as `lake`.`shop`.`t`",
        ),
        (
            node("z", "hive", "Shop", "T"),
            "catalog `hive`: the model `b` as `hive`.`shop`.`t`, the model `z` as `hive`.`Shop`.`T`",
        ),
        (
            node("z", "lake", "`a`.b"),
            "catalog `lake`: the model `f` as `a`.`b`.`t`, the model `z` as `lake`.`a`.`b`.`t`",
        ),
    ):
        with pytest.raises(SameTableError) as raised:
            check_places([*others, other], catalogs)
        assert raised.value.msg == (
            f"Two nodes of the project are one table of the {told}. Each run would replace what the other "
            "has built. Give one another `alias`, `schema` or `database`, or disable it. Nothing was built."
        )


def test_what_is_no_table_of_its_own_stands_nowhere(catalogs: Catalogs) -> None:
    kinds = {"is_ephemeral_model": False, "is_external_node": False, "is_relational": True}

    def one(name: str, **kind: bool) -> Any:
        return SimpleNamespace(**vars(node(name, "lake")), **{**kinds, **kind})

    nodes = [one("a")] + [one(kind, **{kind: not usual}) for kind, usual in kinds.items()]
    manifest = SimpleNamespace(nodes={each.name: each for each in nodes})
    assert [each.name for each in built_nodes(manifest)] == ["a"]
    check_places(built_nodes(manifest), catalogs)
    manifest.nodes["b"] = one("b")
    with pytest.raises(SameTableError, match=r"the model `a` as `lake`\.`shop`\.`t`, the model `b` as"):
        check_places(built_nodes(manifest), catalogs)
    # Before dbt has parsed the project, it has macros only.
    assert built_nodes(SimpleNamespace(macros={})) == built_nodes(None) == []


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ({"type": "rest", "uri": "http://h/c", "warehouse": "w"}, {"uri": "http://h/c/"}, True),
        # Who asks, and with which keys files are read, makes no other catalog of it.
        (
            {"type": "rest", "uri": "http://h", "warehouse": "w", "token": "a"},
            {"token": "b", "s3.region": "eu", "header.X-Iceberg-Access-Delegation": "remote-signing"},
            True,
        ),
        ({"type": "rest", "uri": "http://h", "token": "a"}, {"token": "b"}, False),
        (
            {"type": "rest", "uri": "http://h", "client.profile-name": "a"},
            {"client.profile-name": "b"},
            False,
        ),
        ({"type": "rest", "uri": "http://h", "warehouse": "w"}, {"warehouse": "v"}, False),
        ({"type": "rest", "uri": "http://h", "warehouse": "w"}, {"prefix": "p"}, False),
        ({"type": "rest", "uri": "http://h", "warehouse": "w"}, {"header.X-Tenant": "t"}, False),
        ({"type": "rest", "uri": "http://h", "warehouse": "w"}, {"uri": "http://i"}, False),
        ({"type": "hive", "uri": "thrift://h:1", "warehouse": "/w"}, {"warehouse": "/v"}, True),
        ({"type": "hive", "uri": "thrift://h:1", "warehouse": "/w"}, {"uri": "thrift://h:2"}, False),
        ({"type": "glue", "glue.region": "eu"}, {"warehouse": "s3://b/w"}, True),
        ({"type": "glue", "glue.region": "eu"}, {"glue.region": "us"}, False),
        # The tables of each have its name in the database.
        ({"type": "sql", "uri": "sqlite:////c.db", "warehouse": "/w"}, {}, False),
    ],
)
def test_one_catalog_under_two_names_is_one_place(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any], is_one: bool
) -> None:
    catalogs = Catalogs(
        [
            IcebergCatalog(resolve(name, properties, tmp_path, Place.of_further(name)))
            for name, properties in (("one", one), ("two", {**one, **other}))
        ]
    )
    nodes = [node("a", "one"), node("b", "two"), node("c", "one", alias="u"), node("d", "two", "s")]
    if not is_one:
        check_places(nodes, catalogs)
        return
    with pytest.raises(SameTableError) as raised:
        check_places(nodes, catalogs)
    assert raised.value.msg.startswith(
        "Two nodes of the project are one table of the catalog `one` and `two`, which are one to go by the "
        "profile: the model `a` as `one`.`shop`.`t`, the model `b` as `two`.`shop`.`t`. Each run would"
    )
    assert raised.value.catalogs == ("one", "two")
