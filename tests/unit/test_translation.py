"""Each property of a catalog, by the name and the value that Spark and PyIceberg have for it."""

from typing import Any

import pytest

from dbt.adapters.sparkevolve.iceberg.catalog_properties import (
    KEY_STORE,
    NOT_IN_PYICEBERG,
    NOT_IN_SPARK,
    TUNING_OF_PYICEBERG,
)
from dbt.adapters.sparkevolve.iceberg.translation import Translation, translate

CREDENTIALS = "software.amazon.awssdk.auth.credentials"
VENDED = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
ANONYMOUS = "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider"
FACTORY = "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"


def said(given: dict[str, Any], kind: str = "sql") -> Translation:
    return translate(kind, given)


# Rows of the table


@pytest.mark.parametrize(
    ("given", "pyiceberg", "spark"),
    [
        (given, pyiceberg or given, spark or given)
        for given, pyiceberg, spark in [
            ({"warehouse": "s3://b/w"}, None, None),
            ({"prefix": "p", "token": "t", "credential": "c"}, None, None),
            ({"scope": "s", "audience": "a", "resource": "r"}, None, None),
            ({"oauth2-server-uri": "http://h/token"}, None, None),
            ({"rest.signing-region": "eu-west-1", "rest.signing-name": "glue"}, None, None),
            ({"header.X-Realm": "r"}, None, None),
            ({"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.session-token": "c"}, None, None),
            ({"glue.id": "1", "glue.skip-archive": "true", "glue.endpoint": "http://g"}, None, None),
            ({"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1"}, None, None),
            ({"gcs.project-id": "p", "gcs.service.host": "http://g"}, None, None),
            ({"adls.token": "t"}, None, None),
            ({"adls.sas-token.a.dfs.core.windows.net": "t"}, None, None),
            # What has two names, from either side.
            ({"s3.region": "eu-west-1"}, None, {"client.region": "eu-west-1"}),
            ({"client.region": "eu-west-1"}, None, None),
            ({"s3.proxy-uri": "http://p"}, None, {"http-client.proxy-endpoint": "http://p"}),
            ({"http-client.proxy-endpoint": "http://p"}, {"s3.proxy-uri": "http://p"}, None),
            (
                {"s3.signer.uri": "http://s", "s3.signer.endpoint": "e"},
                None,
                {
                    "s3.signer.uri": "http://s",
                    "signer.uri": "http://s",
                    "s3.signer.endpoint": "e",
                    "signer.endpoint": "e",
                },
            ),
            ({"signer.uri": "http://s"}, {"s3.signer.uri": "http://s"}, None),
            ({"signer.endpoint": "e"}, {"s3.signer.endpoint": "e"}, None),
            (
                {"adls.account-name": "a", "adls.account-key": "k"},
                None,
                {"adls.auth.shared-key.account.name": "a", "adls.auth.shared-key.account.key": "k"},
            ),
            (
                {"adls.auth.shared-key.account.name": "a", "adls.auth.shared-key.account.key": "k"},
                {"adls.account-name": "a", "adls.account-key": "k"},
                None,
            ),
            (
                {"hive.kerberos-authentication": "true"},
                None,
                {"hadoop.hive.metastore.sasl.enabled": "true"},
            ),
            (
                {"lock-check-min-wait-time": "0.5", "lock-check-max-wait-time": "5"},
                None,
                {
                    "hadoop.iceberg.hive.lock-check-min-wait-ms": "500",
                    "hadoop.iceberg.hive.lock-check-max-wait-ms": "5000",
                },
            ),
            ({"init_catalog_tables": "false"}, None, {"jdbc.init-catalog-tables": "false"}),
            ({"jdbc.init-catalog-tables": "false"}, {"init_catalog_tables": "false"}, None),
            ({"schema_version": "v1"}, None, {"jdbc.schema-version": "V1"}),
            ({"jdbc.schema-version": "V1"}, {"schema_version": "v1"}, None),
            # What has another value.
            ({"s3.connect-timeout": "1.5"}, None, {"http-client.apache.connection-timeout-ms": "1500"}),
            ({"s3.request-timeout": "60"}, None, {"http-client.apache.socket-timeout-ms": "60000"}),
            ({"http-client.apache.connection-timeout-ms": "1500"}, {"s3.connect-timeout": "1.5"}, None),
            ({"http-client.apache.socket-timeout-ms": "60000"}, {"s3.request-timeout": "60.0"}, None),
            (
                {"s3.server-side-encryption": "aws:kms", "s3.sse-kms-key-id": "k"},
                None,
                {"s3.sse.type": "kms", "s3.sse.key": "k"},
            ),
            ({"s3.server-side-encryption": "AES256"}, None, {"s3.sse.type": "s3"}),
            (
                {"s3.sse.type": "kms", "s3.sse.key": "k"},
                {"s3.server-side-encryption": "aws:kms", "s3.sse-kms-key-id": "k"},
                None,
            ),
            ({"s3.signer": "S3V4RestSigner"}, None, {"s3.remote-signing-enabled": "true"}),
            ({"s3.remote-signing-enabled": "true"}, {"s3.signer": "S3V4RestSigner"}, None),
            ({"s3.anonymous": "true"}, None, {"client.credentials-provider": ANONYMOUS}),
            # Keys for all of AWS: Spark has them for S3.
            (
                {"client.access-key-id": "a", "client.secret-access-key": "b", "client.session-token": "c"},
                None,
                {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.session-token": "c"},
            ),
            # Where the bucket stands.
            (
                {"s3.endpoint": "http://m"},
                None,
                {"s3.endpoint": "http://m", "s3.path-style-access": "true"},
            ),
            (
                {"s3.endpoint": "http://m", "s3.force-virtual-addressing": "true"},
                None,
                {"s3.endpoint": "http://m", "s3.path-style-access": "false"},
            ),
            (
                {"s3.endpoint": "http://m", "s3.force-virtual-addressing": "false"},
                None,
                {"s3.endpoint": "http://m", "s3.path-style-access": "true"},
            ),
            (
                {"s3.endpoint": "http://m", "s3.path-style-access": "false"},
                {"s3.endpoint": "http://m", "s3.force-virtual-addressing": "true"},
                None,
            ),
            # A role to assume: Spark wants a factory and a region.
            (
                {"s3.role-arn": "arn", "s3.role-session-name": "n", "s3.region": "eu-west-1"},
                None,
                {
                    "client.factory": FACTORY,
                    "client.assume-role.arn": "arn",
                    "client.assume-role.session-name": "n",
                    "client.assume-role.region": "eu-west-1",
                    "client.region": "eu-west-1",
                },
            ),
            (
                {"client.role-arn": "all", "s3.role-arn": "arn", "client.region": "eu-west-1"},
                None,
                {
                    "client.factory": FACTORY,
                    "client.assume-role.arn": "arn",
                    "client.assume-role.region": "eu-west-1",
                    "client.region": "eu-west-1",
                },
            ),
            (
                {"client.assume-role.arn": "arn", "client.assume-role.region": "eu-west-1"},
                {"client.role-arn": "arn"},
                {
                    "client.factory": FACTORY,
                    "client.assume-role.arn": "arn",
                    "client.assume-role.region": "eu-west-1",
                },
            ),
            # Tokens of an account.
            (
                {"adls.account-name": "acc", "adls.sas-token": "t"},
                None,
                {"adls.sas-token.acc.dfs.core.windows.net": "t"},
            ),
            (
                {"adls.account-name": "acc", "adls.connection-string": "c"},
                None,
                {"adls.connection-string.acc.dfs.core.windows.net": "c"},
            ),
        ]
    ],
)
def test_a_property_reaches_both_sides(
    given: dict[str, str], pyiceberg: dict[str, str], spark: dict[str, str]
) -> None:
    assert said(given) == Translation(pyiceberg, spark)


def test_a_switch_that_is_off_asks_for_nothing() -> None:
    given = {"s3.signer": "false", "s3.anonymous": "false", "s3.remote-signing-enabled": "false"}
    found = said(given)
    assert (found.lacking_spark, found.lacking_pyiceberg) == ([], [])
    assert found.spark == {"s3.remote-signing-enabled": "false"}


# A Hive metastore


def test_a_metastore_is_told_types_as_spark_tells_them() -> None:
    found = said({"uri": "thrift://h:1"}, "hive")
    assert found.pyiceberg == {"uri": "thrift://h:1", "hive.hive2-compatible": "true"}
    assert found.spark == {"uri": "thrift://h:1"}
    assert said({"hive.hive2-compatible": "false"}, "hive").pyiceberg == {"hive.hive2-compatible": "false"}


def test_settings_of_hadoop_for_one_catalog_are_spark_s() -> None:
    given = {"hadoop.iceberg.engine.hive.lock-enabled": "false"}
    assert said(given) == Translation({}, given)


# Where a region, or a key, is for one service


def test_glue_and_s3_in_two_regions_are_told() -> None:
    given = {"glue.region": "us-east-1", "s3.region": "eu-west-1", "client.region": "ap-south-1"}
    found = said(given, "glue")
    assert found.pyiceberg == given
    assert found.spark == {"client.region": "us-east-1"}
    assert found.lacking_spark == ["`s3.region` (Spark has one region for all, and takes `glue.region`)"]


@pytest.mark.parametrize(
    ("given", "region"),
    [
        ({"glue.region": "a"}, "a"),
        ({"glue.region": "a", "client.region": "b", "s3.region": "a"}, "a"),
        ({"client.region": "b"}, "b"),
        ({"s3.region": "c"}, "c"),
    ],
)
def test_the_region_of_glue(given: dict[str, str], region: str) -> None:
    found = said(given, "glue")
    assert (found.pyiceberg, found.spark, found.lacking_spark) == (given, {"client.region": region}, [])


def test_s3_s_own_region_goes_before_that_of_all() -> None:
    found = said({"s3.region": "a", "client.region": "b"}, "rest")
    assert found.spark == {"client.region": "a", **VENDED}


def test_keys_for_glue_reach_spark_s_java() -> None:
    given = {"client.access-key-id": "a", "client.secret-access-key": "b", "glue.secret-access-key": "c"}
    found = said(given, "glue")
    assert found == Translation(
        given,
        {
            "s3.access-key-id": "a",
            "s3.secret-access-key": "b",
            "client.credentials-provider": f"{CREDENTIALS}.SystemPropertyCredentialsProvider",
        },
        {"aws.accessKeyId": "a", "aws.secretAccessKey": "c"},
    )


def test_a_role_is_assumed_with_the_keys_for_all_of_aws() -> None:
    given = {"client.role-arn": "arn", "client.region": "r", "client.session-token": "t"}
    assert said(given).java == {"aws.sessionToken": "t"}


def test_a_profile_of_aws_s_files_reaches_both() -> None:
    provider = {"client.credentials-provider": f"{CREDENTIALS}.ProfileCredentialsProvider"}
    given = {"client.profile-name": "p"}
    assert said(given) == Translation(given, provider, {"aws.profile": "p"})
    assert said({"s3.profile-name": "p", "glue.profile-name": "p"}, "glue").lacking_spark == []
    found = said({"s3.profile-name": "p", "glue.profile-name": "q"}, "glue")
    assert found.java == {"aws.profile": "q"}
    assert found.lacking_spark == [
        "`s3.profile-name` (Java has one profile for all, and takes `glue.profile-name`)"
    ]


@pytest.mark.parametrize("name", ["client.region", "s3.region"])
def test_requests_are_signed_for_the_region_of_all(name: str) -> None:
    found = said({"rest.sigv4-enabled": "true", name: "eu-west-1"}, "rest")
    assert found.pyiceberg["rest.signing-region"] == found.spark["rest.signing-region"] == "eu-west-1"
    found = said({"rest.sigv4-enabled": "true", name: "r", "rest.signing-region": "s"}, "rest")
    assert found.pyiceberg["rest.signing-region"] == found.spark["rest.signing-region"] == "s"
    assert "rest.signing-region" not in said({name: "r"}, "rest").spark


def test_keys_for_signing_reach_pyiceberg_as_those_for_all() -> None:
    given = {"rest.sigv4-enabled": "true", "rest.access-key-id": "a", "rest.secret-access-key": "b"}
    found = said(given, "rest")
    assert found.pyiceberg == {
        "rest.sigv4-enabled": "true",
        "client.access-key-id": "a",
        "client.secret-access-key": "b",
    }
    assert found.spark == {**given, **VENDED}
    assert found.lacking_pyiceberg == []


def test_signed_requests_are_signed_with_the_keys_for_all_of_aws() -> None:
    found = said({"rest.sigv4-enabled": "true", "client.access-key-id": "a"}, "rest")
    assert found.spark == {
        "rest.sigv4-enabled": "true",
        "rest.access-key-id": "a",
        "s3.access-key-id": "a",
        **VENDED,
    }


def test_a_role_without_a_region_is_told() -> None:
    assert said({"s3.role-arn": "arn"}).lacking_spark == ["the role to assume (set `client.region`)"]


@pytest.mark.parametrize("name", ["adls.sas-token", "adls.connection-string"])
def test_a_token_without_its_account_is_told(name: str) -> None:
    found = said({name: "t"})
    assert (found.pyiceberg, found.spark) == ({name: "t"}, {})
    assert found.lacking_spark == [f"`{name}` (set `adls.account-name` too)"]


# Authentication


@pytest.mark.parametrize(
    ("auth", "spark"),
    [
        ({"type": "noop"}, {"rest.auth.type": "none"}),
        (
            {"type": "basic", "basic": {"username": "me", "password": "p:w"}},
            {
                "rest.auth.type": "basic",
                "rest.auth.basic.username": "me",
                "rest.auth.basic.password": "p:w",
            },
        ),
        (
            {
                "type": "oauth2",
                "oauth2": {"client_id": "i", "client_secret": "s", "token_url": "http://t", "scope": "x"},
            },
            {
                "rest.auth.type": "oauth2",
                "credential": "i:s",
                "oauth2-server-uri": "http://t",
                "scope": "x",
            },
        ),
        (
            {"type": "google", "google": {"credentials_path": "/k.json", "scopes": ["a", "b"]}},
            {
                "rest.auth.type": "google",
                "gcp.auth.credentials-path": "/k.json",
                "gcp.auth.scopes": "a,b",
            },
        ),
    ],
)
def test_pyiceberg_s_authentication_is_spark_s(auth: dict[str, Any], spark: dict[str, str]) -> None:
    found = said({"auth": auth}, "rest")
    assert found == Translation({"auth": auth}, {**spark, **VENDED})


@pytest.mark.parametrize("kind", ["entra", "custom", "legacyoauth2"])
def test_authentication_that_spark_has_not_is_told(kind: str) -> None:
    found = said({"auth": {"type": kind, "impl": "x.Y"}}, "rest")
    assert found.pyiceberg == {"auth": {"type": kind, "impl": "x.Y"}}
    assert (found.spark, found.lacking_spark) == (VENDED, [f"`auth` of the type '{kind}'"])


@pytest.mark.parametrize(
    ("given", "pyiceberg"),
    [
        ({"rest.auth.type": "none"}, {"auth": {"type": "noop"}}),
        (
            {
                "rest.auth.type": "basic",
                "rest.auth.basic.username": "me",
                "rest.auth.basic.password": "p",
            },
            {"auth": {"type": "basic", "basic": {"username": "me", "password": "p"}}},
        ),
        ({"rest.auth.type": "sigv4"}, {"rest.sigv4-enabled": "true"}),
        (
            {"rest.auth.type": "google", "gcp.auth.credentials-path": "/k", "gcp.auth.scopes": "a, b"},
            {"auth": {"type": "google", "google": {"credentials_path": "/k", "scopes": ["a", "b"]}}},
        ),
        ({"rest.auth.type": "oauth2", "credential": "i:s"}, {"credential": "i:s"}),
    ],
)
def test_spark_s_authentication_is_pyiceberg_s(given: dict[str, str], pyiceberg: dict[str, Any]) -> None:
    assert said(given, "rest") == Translation(pyiceberg, {**given, **VENDED})


def test_certificates_are_told() -> None:
    ssl = {"cabundle": "/ca.pem", "client": {"cert": "/c", "key": "/k"}}
    found = said({"ssl": ssl}, "rest")
    assert (found.pyiceberg, found.spark, found.ca_file) == ({"ssl": ssl}, VENDED, "/ca.pem")
    assert found.lacking_spark == [f"`ssl.client` ({KEY_STORE})"]
    for unverified in (True, False):
        found = said({"ssl": {"cabundle": unverified}}, "rest")
        assert (found.ca_file, bool(found.lacking_spark)) == (None, not unverified)


@pytest.mark.parametrize("kind", ["sql", "hive", "glue"])
def test_only_a_rest_catalog_is_asked_for_credentials(kind: str) -> None:
    assert "header.X-Iceberg-Access-Delegation" not in said({"uri": "u"}, kind).spark


@pytest.mark.parametrize("name", ["header.X-Iceberg-Access-Delegation", "header.x-iceberg-access-delegation"])
@pytest.mark.parametrize("value", ["remote-signing", ""])
def test_what_the_profile_asks_for_goes_to_both(name: str, value: str) -> None:
    assert said({name: value}, "rest") == Translation({name: value}, {name: value})


# What one side lacks


@pytest.mark.parametrize("name", sorted(TUNING_OF_PYICEBERG))
def test_what_spark_need_not_have_is_told_apart(name: str) -> None:
    found = said({name: "v"})
    assert (found.pyiceberg, found.spark, found.lacking_spark) == ({name: "v"}, {}, [])
    assert [text.split("`")[1] for text in found.tuning] == [name]


@pytest.mark.parametrize("name", sorted(NOT_IN_SPARK))
def test_what_spark_lacks_is_told_and_not_passed_on(name: str) -> None:
    found = said({name: "v"})
    assert (found.pyiceberg, found.spark, found.lacking_pyiceberg) == ({name: "v"}, {}, [])
    (note,) = found.lacking_spark
    assert note.startswith(f"`{name}`")


@pytest.mark.parametrize("name", sorted(NOT_IN_PYICEBERG))
def test_what_pyiceberg_lacks_is_told_and_not_passed_on(name: str) -> None:
    found = said({name: "v"})
    assert (found.pyiceberg, found.spark, found.lacking_spark) == ({}, {name: "v"}, [])
    assert found.lacking_pyiceberg == [f"`{name}`"]


@pytest.mark.parametrize("name", ["py-io-impl", "py-catalog-impl", "echo", "hive.hive2-compatible"])
def test_what_is_pyiceberg_s_own_business_is_not_told(name: str) -> None:
    assert said({name: "v"}) == Translation({name: "v"}, {})


@pytest.mark.parametrize(
    "name", ["io-impl", "s3.multipart.threshold", "table-default.write.format.default", "jdbc.verifyCA"]
)
def test_what_is_spark_s_own_business_is_not_told(name: str) -> None:
    assert said({name: "v"}) == Translation({}, {name: "v"})


def test_what_neither_knows_goes_to_both_and_is_told() -> None:
    assert said({"flag": "v"}) == Translation({"flag": "v"}, {"flag": "v"}, unknown=["`flag`"])


def test_a_value_that_the_other_side_lacks_is_told() -> None:
    found = said({"s3.sse.type": "custom", "s3.connect-timeout": "soon"})
    assert found.lacking_pyiceberg == ["`s3.sse.type` with this value"]
    assert found.lacking_spark == ["`s3.connect-timeout` with this value"]
    assert (found.pyiceberg, found.spark) == ({"s3.connect-timeout": "soon"}, {"s3.sse.type": "custom"})


# Names
