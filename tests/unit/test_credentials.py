"""The profile: what it may say, and what is shown of it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve import credentials as module
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import ProfileError

SESSION = {"type": "sparkevolve", "method": "session", "schema": "analytics", "catalog": "lake"}
CACHE = "spark.sql.catalog.lake.cache-enabled"
SQL = {"type": "sql", "uri": "sqlite:////nowhere/catalog.db", "warehouse": "file:///nowhere"}
THRIFT = {**SESSION, "method": "thrift", "host": "spark.host", "catalog_properties": SQL}


def credentials(output: dict[str, Any]) -> SparkEvolveCredentials:
    """Return what dbt makes of an output of ``profiles.yml``."""
    SparkEvolveCredentials.validate(output)
    return SparkEvolveCredentials.from_dict(output)


def refused(output: dict[str, Any]) -> ProfileError:
    with pytest.raises(ProfileError) as raised:
        credentials(output)
    return raised.value


def test_a_profile_of_five_lines_is_enough(tmp_path: Path) -> None:
    profile = credentials(
        yaml.safe_load(
            """
            type: sparkevolve
            method: session
            catalog: lake
            schema: analytics
            threads: 4
            """
        )
    )
    profile.set_base_dir(tmp_path)
    assert profile.type == "sparkevolve"
    assert (profile.catalog, profile.database, profile.schema) == ("lake", "lake", "analytics")
    assert profile.catalog_properties == {}
    assert profile.spark_config == {}
    settings = profile.catalog_settings()
    assert settings.embedded
    assert settings.sqlite_file == tmp_path / ".sparkevolve" / "catalog.db"


@pytest.mark.parametrize("master", ["spark://head:7077", "yarn", "k8s://https://api:6443"])
def test_the_embedded_catalog_is_for_one_machine(master: str) -> None:
    on_cluster = {"spark_config": {"spark.master": master}}
    error = refused({**SESSION, **on_cluster})
    assert error.setting == "spark_config"
    assert error.msg == (
        "`spark.master` in `spark_config` names a cluster, and the profile has no `catalog_properties`: the "
        "embedded catalog keeps its files on this machine, where the executors would not find them. Give "
        "`catalog_properties`, with a `warehouse` that this machine and all executors reach."
    )
    credentials({**SESSION, **on_cluster, "catalog_properties": SQL})
    credentials({**SESSION, "spark_config": {"spark.master": "local-cluster[2,1,1024]"}})
    credentials({**THRIFT, **on_cluster})


@pytest.mark.parametrize(
    ("output", "keeps"),
    [
        (SESSION, False),
        ({**SESSION, "spark_config": {CACHE: True}}, True),
        ({**SESSION, "server_side_parameters": {CACHE: "TRUE"}}, True),
        ({**SESSION, "spark_config": {CACHE: True}, "server_side_parameters": {CACHE: "false"}}, False),
        ({**SESSION, "spark_config": {CACHE.replace("lake", "sea"): True}}, False),
        ({**SESSION, "catalog_properties": {**SQL, "cache-enabled": True}}, True),
        (THRIFT, False),
        # A server's catalog is what its operator, or the connection, says.
        ({**THRIFT, "catalog_properties": {**SQL, "cache-enabled": True}}, False),
        ({**THRIFT, "server_side_parameters": {CACHE: "true"}}, True),
    ],
)
def test_a_cache_of_tables_is_known_wherever_it_is_asked_for(output: dict[str, Any], keeps: bool) -> None:
    assert credentials(output).cached_catalogs == (["lake"] if keeps else [])


def test_the_embedded_catalog_lies_in_the_project_wherever_dbt_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    profile = credentials(SESSION)
    assert profile.base_dir == tmp_path
    profile.set_base_dir(Path("project"))
    assert profile.base_dir == tmp_path / "project"


def test_a_thrift_profile_takes_the_settings_of_dbt_spark() -> None:
    profile = credentials({**THRIFT, "port": 10001, "user": "me", "query_timeout": 30})
    assert (profile.host, profile.port, profile.user) == ("spark.host", 10001, "me")
    assert profile.query_timeout == 30


def test_a_host_that_a_session_profile_names_stays() -> None:
    assert credentials({**SESSION, "host": "laptop"}).host == "laptop"
    assert credentials(SESSION).host == "in-process"


@pytest.mark.parametrize("timeout", ["connect_timeout", "response_timeout", "catalog_timeout"])
def test_a_timeout_that_nothing_could_meet_is_refused(timeout: str) -> None:
    """With dbt-spark a `connect_timeout` of 0 is a pause between attempts, and works."""
    error = refused({**THRIFT, timeout: 0})
    assert (error.setting, error.msg) == (
        timeout,
        f"`{timeout}` in the profile has to be more than 0 seconds, and is 0.0: nothing answers in no time.",
    )
    assert getattr(credentials({**THRIFT, timeout: 0.5}), timeout) == 0.5


NUMBERS = {
    "query_timeout": {
        value: f"`query_timeout` in the profile has to be more than 0 seconds, and is {value}: nothing "
        "answers in no time."
        for value in (0, -1)
    },
    "response_timeout": {
        float("inf"): "`response_timeout` in the profile is inf: it can be 31536000 seconds at most.",
        float("nan"): "`response_timeout` in the profile has to be more than 0 seconds, and is nan: nothing "
        "answers in no time.",
    },
    "poll_interval": {
        value: f"`poll_interval` in the profile is {value!r}: it has to be a number of seconds above 0."
        for value in (0.0, -1.0, float("nan"), float("inf"))
    },
    "connect_retries": {-1: "`connect_retries` in the profile is -1: it has to be 0 or more."},
    "port": {
        value: f"`port` in the profile is {value}: it has to be a number up to 65535."
        for value in (-1, 65536)
    },
}


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [(setting, value, text) for setting, found in NUMBERS.items() for value, text in found.items()],
)
def test_numbers_with_which_nothing_works_are_refused(setting: str, value: float, message: str) -> None:
    error = refused({**THRIFT, setting: value})
    assert (error.setting, error.msg) == (setting, message)


def test_a_host_may_be_an_address_in_brackets() -> None:
    assert (
        credentials({**THRIFT, "host": "[::1]"}).host == credentials({**THRIFT, "host": "::1"}).host == "::1"
    )


@pytest.mark.parametrize("output", [SESSION, THRIFT])
@pytest.mark.parametrize("host", ["", " ", "[]"])
def test_a_host_is_a_name(output: dict[str, Any], host: str) -> None:
    error = refused({**output, "host": host})
    assert (error.setting, error.msg) == ("host", "`host` of the profile names no server.")


def test_a_schema_needs_a_name() -> None:
    for schema in ("", " "):
        error = refused({**SESSION, "schema": schema})
        assert (error.setting, error.msg) == (
            "schema",
            f"`schema` of the profile is {schema!r}, and a schema needs a name.",
        )


@pytest.mark.parametrize(
    ("value", "kind"), [(None, "nothing"), ([1], "a list"), ({"a": 1}, "a mapping of keys to values")]
)
def test_a_setting_of_spark_is_one_value(value: Any, kind: str) -> None:
    """As text a None would be the value `None`."""
    error = refused({**SESSION, "spark_config": {"spark.executor.cores": value}})
    assert (error.setting, error.msg) == (
        "spark_config",
        "`spark.executor.cores` in `spark_config` has to be a string, a number, or true or false, but is "
        f"{kind}.",
    )


def test_the_poll_interval_may_be_a_fraction() -> None:
    assert credentials(SESSION).poll_interval == 5
    assert credentials({**SESSION, "poll_interval": 0.5}).poll_interval == 0.5


def test_the_database_may_repeat_the_catalog() -> None:
    assert credentials({**SESSION, "database": "lake"}).database == "lake"


@pytest.mark.parametrize("method", ["odbc", "http"])
def test_another_method_is_refused(method: str) -> None:
    error = refused({**SESSION, "method": method})
    assert error.msg == f"`method` of a sparkevolve profile is session or thrift, not {method!r}."
    assert error.setting == "method"


def test_a_missing_method_is_refused() -> None:
    error = refused({key: value for key, value in SESSION.items() if key != "method"})
    assert error.msg == "`method` of a sparkevolve profile is session or thrift, and this one has none."
    assert error.setting == "method"


@pytest.mark.parametrize(
    "catalog", ["my-lake", "a.b", "`lake`", "1lake", "", "lake ", "läke", "a b", "lake\n"]
)
def test_a_catalog_of_another_form_is_refused(catalog: str) -> None:
    error = refused({**SESSION, "catalog": catalog})
    assert error.msg == (
        "`catalog` of a sparkevolve profile names the Iceberg catalog in letters, digits and underscores, "
        f"such as lake; it is {catalog!r}."
    )
    assert error.setting == "catalog"


def test_a_missing_catalog_is_refused() -> None:
    error = refused({key: value for key, value in SESSION.items() if key != "catalog"})
    assert error.msg.endswith("such as lake; this one has none.")


def test_a_catalog_that_is_called_database_is_told() -> None:
    output = {key: value for key, value in SESSION.items() if key != "catalog"}
    assert refused({**output, "database": "lake"}).msg.endswith(
        "such as lake; this one has none: write `catalog` in place of `database`, which is 'lake'."
    )


@pytest.mark.parametrize("setting", ["spark_config", "server_side_parameters"])
@pytest.mark.parametrize("key", ["type", "catalog-impl", "uri", "warehouse"])
@pytest.mark.parametrize("is_further", [False, True])
def test_spark_s_settings_place_no_catalog_that_is_embedded_for_pyiceberg(
    setting: str, key: str, is_further: bool
) -> None:
    """A profile of dbt-spark with another `type` would load into a catalog that PyIceberg does not see."""
    name, place = ("old", "catalogs.old") if is_further else ("lake", "catalog_properties")
    given = {f"spark.sql.catalog.{name}.{key}": "jdbc:sqlite:/tmp/lake.db"}
    catalogs: dict[str, Any] = {"catalogs": {"old": {}}} if is_further else {}
    error = refused({**SESSION, **catalogs, setting: given})
    assert error.msg == (
        f"`{setting}` of the profile has `spark.sql.catalog.{name}.{key}`, and the profile has no `{place}`: "
        f"Spark would find the tables of `{name}` there, and PyIceberg look for them in the embedded "
        f"catalog. State the catalog in `{place}`, from which Spark's settings follow, and leave those out "
        f"that begin with `spark.sql.catalog.{name}`."
    )
    assert error.setting == setting
    properties = {"type": "rest", "uri": "http://h:8181"}
    stated: dict[str, Any] = {"catalogs": {"old": properties}} if is_further else {}
    credentials({**SESSION, "catalog_properties": properties, **stated, setting: given})


@pytest.mark.parametrize("empty", [{}, {"catalog_properties": {}}])
def test_a_server_s_catalog_is_never_the_embedded_one(empty: dict[str, Any]) -> None:
    """As in the profile that `dbt init` writes, whose questions cannot ask for a mapping."""
    output = {key: value for key, value in THRIFT.items() if key != "catalog_properties"}
    error = refused({**output, **empty})
    assert error.msg == (
        "The profile has no `catalog_properties`, and with `method: thrift` the catalog `lake` is one of the "
        "server's: dbt would look for its tables in an embedded catalog, of which the server knows nothing. "
        "State how PyIceberg reaches the same one, such as `{type: rest, uri: https://catalog.internal, "
        "warehouse: lake}`."
    )
    assert error.setting == "catalog_properties"
    error = refused({**THRIFT, "catalogs": {"old": {}}})
    assert error.msg.startswith("The profile has `catalogs.old` empty, and with `method: thrift` the catalog")


LOCKS = "hadoop.iceberg.engine.hive.lock-enabled"
OF_ALL, OF_LAKE = f"spark.{LOCKS}", f"spark.sql.catalog.lake.{LOCKS}"


@pytest.mark.parametrize(
    ("told", "properties", "takes_locks"),
    [
        ({}, {}, True),
        ({"spark_config": {OF_ALL: False}}, {}, False),
        ({"spark_config": {OF_ALL: "false"}}, {LOCKS: True}, True),
        ({"spark_config": {OF_ALL: "true"}}, {LOCKS: "false"}, False),
        ({"spark_config": {OF_LAKE: "false"}}, {LOCKS: True}, False),
        ({"spark_config": {OF_ALL: "false", OF_LAKE: "true"}}, {}, True),
        ({"spark_config": {OF_LAKE: "false"}, "server_side_parameters": {OF_LAKE: "true"}}, {}, True),
        ({"server_side_parameters": {OF_ALL: "false"}}, {}, False),
        ({"method": "thrift", "host": "h", "server_side_parameters": {OF_LAKE: "false"}}, {}, False),
        # Read where Spark starts, which a connection does not see.
        ({"method": "thrift", "host": "h", "server_side_parameters": {OF_ALL: "false"}}, {}, True),
        # Neither true nor false is nothing to Hadoop.
        ({}, {LOCKS: "no"}, True),
    ],
)
def test_both_sides_take_locks_or_none_does(
    told: dict[str, Any], properties: dict[str, Any], takes_locks: bool
) -> None:
    hive = {"type": "hive", "uri": "thrift://h:1", **properties}
    settings = credentials({**SESSION, "catalog_properties": hive, **told}).catalog_settings()
    assert settings.takes_locks is takes_locks
    assert (settings.spark.get(OF_LAKE, "true") != "false") is takes_locks


def test_locks_are_of_metastores_alone() -> None:
    given = {**SESSION, "catalog_properties": SQL, "spark_config": {OF_ALL: "false"}}
    assert OF_LAKE not in credentials(given).catalog_settings().spark


def test_an_embedded_catalog_may_be_tuned_in_spark() -> None:
    tuned = {"spark.sql.catalog.lake.table-default.write.format.default": "orc"}
    credentials({**SESSION, "spark_config": tuned, "server_side_parameters": tuned})


@pytest.mark.parametrize("catalog", ["lake", "Lake", "_x", "spark_catalog", "l1"])
def test_a_catalog_may_have_letters_digits_and_underscores(catalog: str) -> None:
    assert credentials({**SESSION, "catalog": catalog}).database == catalog


def test_another_database_is_refused() -> None:
    error = refused({**SESSION, "database": "analytics"})
    assert error.msg == "`database` is 'analytics' and `catalog` is 'lake': leave `database` out."
    assert error.setting == "database"


def test_a_missing_schema_is_refused() -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        credentials({key: value for key, value in SESSION.items() if key != "schema"})
    assert raised.value.msg == "Must specify `schema` in profile"


def test_a_thrift_profile_without_a_host_is_refused() -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        credentials({key: value for key, value in THRIFT.items() if key != "host"})
    assert raised.value.msg == "Must specify `host` in profile"


def test_wrong_catalog_properties_are_refused_when_the_profile_is_read() -> None:
    error = refused({**SESSION, "catalog_properties": {"type": "nessie"}})
    assert error.setting == "catalog_properties"
    assert error.msg.startswith("`catalog_properties` of the catalog `lake` has the type 'nessie', and")


SECRETS = {
    "password": "hidden-1",
    "token": "hidden-2",
    "user": "me",
    "catalog_properties": {
        "type": "sql",
        "uri": "postgresql://lake:hidden-3@host/db",
        "warehouse": "s3://lake/warehouse",
        "s3.secret-access-key": "hidden-4",
    },
    "spark_config": {"spark.hadoop.fs.s3a.secret.key": "hidden-5"},
    "server_side_parameters": {"spark.x": "hidden-6"},
}


def test_a_session_profile_shows_no_secret() -> None:
    assert list(credentials({**SESSION, **SECRETS}).connection_info()) == [
        ("method", "session"),
        ("catalog", "lake"),
        ("database", "lake"),
        ("schema", "analytics"),
    ]


def test_a_thrift_profile_shows_where_the_server_is_and_no_secret() -> None:
    assert list(credentials({**THRIFT, **SECRETS, "port": 10000}).connection_info()) == [
        ("method", "thrift"),
        ("host", "spark.host"),
        ("port", 10000),
        ("user", "me"),
        ("catalog", "lake"),
        ("database", "lake"),
        ("schema", "analytics"),
    ]


def test_installations_are_counted_by_host() -> None:
    assert credentials(THRIFT).unique_field == "spark.host"
    assert credentials(SESSION).unique_field == "in-process"


# Schemas


def test_a_nested_schema_is_what_is_current() -> None:
    assert credentials({**SESSION, "schema": "a.b"}).default_namespace == "a.b"
    assert credentials({**SESSION, "schema": "`a`.b"}).default_namespace == "a.b"


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("lake.x", "'lake' is the profile's catalog, which `catalog` names. Write 'x'."),
        ("other.x", "'other' is a catalog of Spark. Write 'x' to build in the profile's catalog"),
        ("third.x", "'third' is a catalog of Spark. Write 'x' to build in the profile's catalog"),
        ("a..b", "a dot stands between the levels of a nested schema, and each needs a name"),
    ],
)
def test_a_schema_that_cannot_be_is_refused(schema: str, told: str) -> None:
    error = refused(
        {
            **SESSION,
            "schema": schema,
            "spark_config": {"spark.sql.catalog.other.type": "rest"},
            "server_side_parameters": {"spark.sql.catalog.third": "x.Y"},
        }
    )
    assert error.msg.startswith(f"`schema` of the profile is {schema!r}, and {told}")
    assert error.setting == "schema"


def test_a_nested_schema_in_a_hive_metastore_is_refused() -> None:
    properties = {"type": "hive", "uri": "thrift://h:9083"}
    error = refused({**SESSION, "schema": "a.b", "catalog_properties": properties})
    assert "this catalog (Hive metastore) has no schemas inside schemas." in error.msg


# Names


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("catalog_propertis", "catalog_properties"),
        ("catalog-properties", "catalog_properties"),
        ("catalogProperties", "catalog_properties"),
        ("Catalog", "catalog"),
        ("spark_configs", "spark_config"),
        ("scheme", "schema"),
        ("server_side_params", "server_side_parameters"),
        ("query_time_out", "query_timeout"),
        ("poll_intervall", "poll_interval"),
    ],
)
def test_a_near_miss_of_a_setting_is_refused(key: str, meant: str) -> None:
    error = refused({**SESSION, key: {"type": "rest", "uri": "http://me:hidden@h"}})
    assert error.msg == f"The profile has no setting `{key}`. Did you mean `{meant}`?"
    assert error.setting == key


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("warehouse", "catalog_properties"),
        ("uri", "catalog_properties"),
        ("s3.region", "catalog_properties"),
        ("spark.driver.memory", "spark_config"),
    ],
)
def test_a_key_that_is_not_indented_is_refused(key: str, place: str) -> None:
    """Else the profile means the embedded catalog."""
    error = refused({**SESSION, key: "hidden"})
    assert error.msg == f"`{key}` is no setting of the profile itself: it belongs under `{place}`."
    assert error.setting == key


def test_another_unknown_setting_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(module, "warn", told.append)
    credentials({**SESSION, "threads": 4, "keepalives_idle": "hidden", "role": None})
    assert told == [
        "The profile's setting `keepalives_idle` means nothing to sparkevolve, and is not used.",
        "The profile's setting `role` means nothing to sparkevolve, and is not used.",
    ]


IN_PROCESS = (
    "no effect: with `method: session`, Spark runs in the process of dbt. For a server, set `method: thrift`."
)
ALONE = "no effect: dbt-spark connects, or sends a statement again, in ways that sparkevolve does not have."
OF_SERVERS = {
    "connect_retries": 3,
    "host": "spark.host",
    "password": "hidden",
    "user": "me",
    "auth": "LDAP",
    "use_ssl": True,
    "ssl_verify": False,
    "ssl_ca_file": "/ca.pem",
    "kerberos_service_name": "hive",
    "retry_all": True,
    "connect_timeout": 5,
    "response_timeout": 5,
    "query_timeout": 5,
    "poll_interval": 1,
}


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({**SESSION, "port": 10000}, [f"`port` in the profile has {IN_PROCESS}"]),
        (
            {**SESSION, **OF_SERVERS},
            [
                "`host`, `user`, `password`, `auth`, `kerberos_service_name`, `use_ssl`, `ssl_verify`, "
                "`ssl_ca_file`, `connect_retries`, `retry_all`, `connect_timeout`, `response_timeout`, "
                f"`query_timeout`, `poll_interval` in the profile have {IN_PROCESS}"
            ],
        ),
        # dbt-spark's page says to write that, and both take what is for a connection.
        ({**SESSION, "host": "NA", "server_side_parameters": {"a": "b"}, "catalog_timeout": 5}, []),
        *(
            ({**SESSION, "host": host}, [])
            for host in (None, "local", "localhost", "127.0.0.1", "N/A", "none", "in-process")
        ),
        # What is as if it was left out.
        ({**SESSION, "user": None, "port": 443, "connect_retries": 0, "use_ssl": False}, []),
        ({**THRIFT, "port": 10000, "user": "me", "query_timeout": 5, "retry_all": True}, []),
        ({**THRIFT, "spark_config": {}}, []),
        ({**THRIFT, "spark_config": {"spark.sql.ansi.enabled": True}}, []),
        (
            {**THRIFT, "spark_config": {"spark.driver.memory": "4g"}},
            [
                "`spark_config` in the profile has no effect: with `method: thrift`, Spark is as the "
                "server's operator has set it up. What a connection may set itself goes into "
                "`server_side_parameters`."
            ],
        ),
        ({**THRIFT, "query_retries": 3}, [f"`query_retries` in the profile has {ALONE}"]),
        ({**THRIFT, "query_retries": 1, "organization": "0"}, []),
        (
            {**SESSION, "token": "hidden", "cluster": "c", "user": "me"},
            [f"`user` in the profile has {IN_PROCESS}", f"`cluster`, `token` in the profile have {ALONE}"],
        ),
    ],
)
def test_what_the_way_of_connecting_does_not_use_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, output: dict[str, Any], said: list[str]
) -> None:
    told: list[str] = []
    monkeypatch.setattr(module, "warn", told.append)
    profile = credentials(output)
    assert told == said
    # Nor is it said of what dbt makes of it again that was left out.
    del told[:]
    credentials({**profile.to_dict(), "type": "sparkevolve"})
    assert told == said


def test_all_settings_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(module, "warn", told.append)
    # As dbt makes a profile again from its own values.
    again = {**credentials({**SESSION, **SECRETS}).to_dict(), "type": "sparkevolve", "threads": 1}
    assert credentials(again).to_dict() == credentials({**SESSION, **SECRETS}).to_dict()
    assert not [text for text in told if "means nothing" in text]


def test_a_near_miss_in_catalog_properties_is_refused_when_the_profile_is_read() -> None:
    properties = {"type": "rest", "uri": "http://h", "warehose": "hidden"}
    error = refused({**SESSION, "catalog_properties": properties})
    assert error.msg.endswith(
        "`warehose`, which neither Spark nor PyIceberg reads. Did you mean `warehouse`?"
    )


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("spark.sql.extension", "spark.sql.extensions"),
        ("spark.jars.package", "spark.jars.packages"),
        ("spark.sql.defaultcatalog", "spark.sql.defaultCatalog"),
        ("spark.driver.memoryy", "spark.driver.memory"),
        ("spark.sql.sessions.timeZone", "spark.sql.session.timeZone"),
        ("spark.sql.catalogs.lake.uri", "spark.sql.catalog.lake.uri"),
        ("spark.sql.catlog.lake", "spark.sql.catalog.lake"),
    ],
)
def test_a_near_miss_of_a_setting_of_spark_is_refused(key: str, meant: str) -> None:
    error = refused({**SESSION, "spark_config": {key: "hidden"}})
    assert error.msg == f"`spark_config` has `{key}`, which Spark does not read. Did you mean `{meant}`?"
    assert error.setting == "spark_config"


@pytest.mark.parametrize(
    "key",
    [
        *(
            "spark.jars.excludes",
            "spark.jars.ivySettings",
            "spark.driver.memoryOverhead",
            "spark.driver.cores",
        ),
        *("spark.driver.cores", "spark.executor.memory", "spark.executor.memoryOverhead"),
        *("spark.sql.catalog.late.uri", "spark.sql.catalog.lake.io-impl"),
        *("spark.sql.files.maxPartitionBytes", "spark.hadoop.fs.s3a.endpoint"),
        *("spark.driver.defaultJavaOptions", "spark.executor.extraJavaOptions", "spark.sql.warehouse.dir"),
        *("spark.sql.adaptive.enabled", "spark.driver.extraClassPath", "spark.driver.extraLibraryPath"),
    ],
)
def test_a_setting_that_spark_may_have_is_not_refused(key: str) -> None:
    assert credentials({**SESSION, "spark_config": {key: "x"}}).spark_config == {key: "x"}


@pytest.mark.parametrize("name", ["Spark_Catalog", "SPARK_CATALOG", "global_temp", "Global_Temp"])
@pytest.mark.parametrize("is_own", [True, False])
def test_a_catalog_that_spark_never_looks_for_under_its_name_is_refused(name: str, is_own: bool) -> None:
    error = refused({**SESSION, "catalog": name} if is_own else {**SESSION, "catalogs": {name: SQL}})
    setting = "catalog" if is_own else "catalogs"
    assert (error.setting, error.msg) == (
        setting,
        f"`{setting}` of the profile names {name!r}, by which Spark means something of its own, in any "
        "letters, and never a catalog that is stated. Give the catalog another name.",
    )


@pytest.mark.parametrize(
    ("profile", "method", "module"), [(SESSION, "session", "pyspark"), (THRIFT, "thrift", "pyhive")]
)
def test_what_a_method_needs_is_named_as_an_extra_of_this_package(
    monkeypatch: pytest.MonkeyPatch, profile: dict[str, Any], method: str, module: str
) -> None:
    monkeypatch.setattr("dbt.adapters.sparkevolve.credentials.find_spec", lambda name: None)
    with pytest.raises(ProfileError) as raised:
        credentials(profile)
    assert raised.value.msg == (
        f"`method: {method}` of the profile needs the Python module `{module}`, which is not there: "
        f"run `pip install 'dbt-sparkevolve[{method}]'`."
    )
