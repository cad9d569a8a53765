"""Secrets in texts: those of the profile by their value, all others by what stands before them."""

import base64
import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from dbt_common.events.event_manager_client import get_event_manager
from dbt_common.events.logger import LoggerConfig
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import URL

from dbt.adapters.sparkevolve import redaction
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import ProfileError, SchemaCommitError, StatementError
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.messages import short_message
from dbt.adapters.sparkevolve.redaction import clean, is_secret_key, learn, safe

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nAAAASCBKcwggSjAg\n-----END PRIVATE KEY-----\n"
SESSION = {"type": "sparkevolve", "method": "session", "schema": "analytics", "catalog": "lake"}


@contextmanager
def knowing(settings: dict[str, Any]) -> Iterator[None]:
    """Know the secrets of these settings alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "KNOWN", redaction.Known())
        learn(settings)
        yield


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    with knowing({}):
        yield


# By what stands before them


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("GET http://h/v1?token=abc&x=1", "GET http://h/v1?token=*****&x=1"),
        (
            "jdbc:postgresql://h/db?user=me&password=abc failed",
            "jdbc:postgresql://h/db?user=me&password=***** failed",
        ),
        (
            "https://b.s3.aws/x?X-Amz-Signature=ab12&sig=cd",
            "https://b.s3.aws/x?X-Amz-Signature=*****&sig=*****",
        ),
        ("body: grant=x&client_secret=a%20b&scope=c", "body: grant=x&client_secret=*****&scope=c"),
        ("host=h password='a b' dbname=d", "host=h password='*****' dbname=d"),
        ('host=h password="a b" dbname=d', 'host=h password="*****" dbname=d'),
        ("msg='dsn password=abc'", "msg='dsn password=*****'"),
        ("-Djavax.net.ssl.trustStorePassword=abc -Dx=1", "-Djavax.net.ssl.trustStorePassword=***** -Dx=1"),
        ("{'s3.secret-access-key': 'abc', 'a': 'b'}", "{'s3.secret-access-key': '*****', 'a': 'b'}"),
        ('{"credential": "a:b", "a": "b"}', '{"credential": "*****", "a": "b"}'),
        ('"{\\"password\\": \\"abc\\", \\"a\\": 1}"', '"{\\"password\\": \\"*****\\", \\"a\\": 1}"'),
        # with a quote inside
        ('{"password": "ab\\"cd", "x": 1}', '{"password": "*****", "x": 1}'),
        ("{'password': 'ab\\'cd', 'x': 1}", "{'password': '*****', 'x': 1}"),
        ("password='a\\'b' x=1", "password='*****' x=1"),
        (
            json.dumps(json.dumps({"password": 'ab"cd\\', "x": 1})),
            json.dumps(json.dumps({"password": "*****", "x": 1})),
        ),
        ("Authorization: Bearer abc", "Authorization: Bearer *****"),
        ("Set-Cookie: sid=abc; Path=/\nHost: h", "Set-Cookie: *****\nHost: h"),
        ("{'Cookie': 'sid=abc', 'x': 'y'}", "{'Cookie': '*****', 'x': 'y'}"),
        ("X-Api-Key: abc, X-Request-Id: 1", "X-Api-Key: *****, X-Request-Id: 1"),
        ("{'Authorization': 'Basic bWU6'}", "{'Authorization': '*****'}"),
        ("sent Bearer eyJhbGciOi.J9-x", "sent Bearer *****"),
        ("to http://me:a:b@c@h/x", "to http://h/x"),
        ("at abfss://data@acct.dfs.core.windows.net/t", "at abfss://data@acct.dfs.core.windows.net/t"),
        ("at wasb://data@acct.blob/t and abfs://me:abc@h", "at wasb://data@acct.blob/t and abfs://h"),
        # what is none
        ("token-refresh-enabled=true", "token-refresh-enabled=true"),
        ("oauth2-server-uri=http://h/tokens", "oauth2-server-uri=http://h/tokens"),
        ("{'credentials.path': '/x'}", "{'credentials.path': '/x'}"),
        ("Column `token` is int in the table", "Column `token` is int in the table"),
        ("struct<password:string,pwd:int>", "struct<password:string,pwd:int>"),
        ("the token: lost", "the token: lost"),
        ("2: cookie: optional string", "2: cookie: optional string"),
        ("PASS=1 WARN=0", "PASS=1 WARN=0"),
        ("Basic rules of the bearer of it", "Basic rules of the bearer of it"),
        ("unique_key=id", "unique_key=id"),
        # brackets belong to the text around if they close what is open there
        ("(see http://h?token=abc)", "(see http://h?token=*****)"),
        ("{password=a(b)c, x=1}", "{password=*****, x=1}"),
        ("Map(s3.session-token -> abc, x -> 1)", "Map(s3.session-token -> *****, x -> 1)"),
        ("authorization=Bearer abc", "authorization=Bearer *****"),
        ("Authorization: token abc", "Authorization: token *****"),
        # Basic authentication is the Base64 of a user and a password
        ("sent Basic bWU6b3BlbnNlc2FtZQ== again", "sent Basic ***** again"),
        ("basic knowledge1234 and bearer bonds2024", "basic knowledge1234 and bearer bonds2024"),
        ("sent bearer 0123456789abcdef", "sent bearer *****"),
        # SQL, with a column on both sides
        ("on a.token_id=b.token_id and a.token=b.token", "on a.token_id=b.token_id and a.token=b.token"),
        ("on (t.Password=S.PASSWORD)", "on (t.Password=S.PASSWORD)"),
        ("set access_token=src.tok, secret=b.secret", "set access_token=src.tok, secret=b.secret"),
        ("where a.authorization=b.authorization", "where a.authorization=b.authorization"),
        ("where\n  token=new_rows.t", "where\n  token=new_rows.t"),
        ("transform(tokens, token -> upper(token))", "transform(tokens, token -> upper(token))"),
        ("max_tokens=100 token_count=5 secretary=x", "max_tokens=100 token_count=5 secretary=x"),
        ("|-- authorization: string (nullable = true)", "|-- authorization: string (nullable = true)"),
        ("2: authorization: optional string", "2: authorization: optional string"),
        # which is told from a setting by more than a dot
        ("and token=eyJhbGciOiJI.eyJzdWIi9.SflKx2", "and token=*****"),
        ("s3.session-token=abc.def", "s3.session-token=*****"),
        ("user=me password=summer.time dbname=d", "user=me password=***** dbname=d"),
        ("where token='abc' or password=abc", "where token='*****' or password=*****"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    "key",
    [
        *("password", "token", "credential", "s3.secret-access-key", "s3.access-key-id", "s3.session-token"),
        *("adls.account-key", "adls.sas-token", "adls.client-secret", "gcs.oauth2.token", "client_secret"),
        *("spark.hadoop.fs.s3a.secret.key", "fs.azure.account.key.x.dfs", "ssl.keystore.passphrase"),
        *("header.Authorization", "rest.sigv4-secret", "jdbc.password", "PGPASSWORD", "api_key", "sas"),
        *("header.Cookie", "header.X-Auth-Key", "header.Ocp-Apim-Subscription-Key", "header.X-Session-Id"),
        *("spark.sql.catalog.lake.header.X-Auth", "s3.sse.key", "kms.key", "db_pass", "client_assertion"),
    ],
)
def test_keys_of_secrets(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    [
        *("user", "uri", "warehouse", "schema", "unique_key", "oauth2-server-uri", "credentials-path"),
        *("fs.s3a.aws.credentials.provider", "token-refresh-enabled", "token-expires-in", "s3.region"),
        *("password_file", "message", "significant", "compass", "header.X-Tenant", "header.X-Auth-Type"),
        *("ssl.key", "auth", "spark.bypass", "client-pool-cache-keys", "header.X-Iceberg-Access-Delegation"),
    ],
)
def test_keys_of_other_things(key: str) -> None:
    assert not is_secret_key(key)


NAMES = st.from_regex(r"[a-z][a-z_]{0,9}|[A-Z][A-Z_]{0,9}|[a-z]{1,5}[A-Z][a-z]{1,5}", fullmatch=True)
SECRET_COLUMNS = st.sampled_from(
    ("token", "token_id", "ACCESS_TOKEN", "password", "pwd", "clientSecret", "api_key", "sig", "signature")
)


@given(left=NAMES, right=NAMES, column=SECRET_COLUMNS, other=SECRET_COLUMNS | NAMES, data=st.data())
def test_a_condition_with_columns_on_both_sides_is_no_setting(
    left: str, right: str, column: str, other: str, data: st.DataObject
) -> None:
    word = data.draw(st.sampled_from(("on ", "where ", "and (", "or not ", "when\n", "set ")))
    before = data.draw(st.sampled_from((word, ", ", "(", "\n\t")))
    qualified = data.draw(st.sampled_from((column, f"{left}.{column}", f"lake.{left}.{column}")))
    for sql in (
        f"{before}{qualified}={right}.{data.draw(st.sampled_from((column, column.upper())))} then",
        f"{word}{qualified}={right}.{other})",
        f"{word}{qualified}==s.{right}.{other}",
    ):
        assert clean(sql) == sql


@given(
    secret=st.text(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/=!$%^*~:|?", min_size=1
    ),
    key=st.sampled_from(
        ("password", "s3.secret-access-key", "client_secret", "PGPASSWORD", "-Dx.trustStorePassword", "token")
    ),
    before=st.sampled_from(("", "http://h/?a=b&", "user=me ", "x;", "{a=b, ", "grant=on&")),
)
def test_what_stands_after_the_key_of_a_secret_is_masked(secret: str, key: str, before: str) -> None:
    assume(not secret.lower().startswith(("=", "bearer", "basic")))
    # As if it were the column of a table that has the name of the key.
    assume(secret.lower().rpartition(".")[2] != key.lower().rpartition(".")[2])
    text = f"{before}{key}={secret}"
    assert clean(text) == f"{before}{key}={redaction.MASK}"


def test_a_long_text_is_cleaned_quickly() -> None:
    text = "a" * 300_000 + "='" + "b." * 300_000 + " password=x"
    assert clean(text) == text[:-1] + "*****"


# By value


@pytest.mark.parametrize(
    ("settings", "text", "cleaned"),
    [
        ({"password": "sesame"}, "sesame sesames (sesame)", "***** sesames (*****)"),
        ({"password": "opensesame"}, "xopensesamex", "x*****x"),
        ({"password": "cat"}, "a cat, cats", "a *****, cats"),
        # too short, an ordinary word, or said openly: what stands before it tells
        ({"password": "a"}, "a password=a, password a", "a password=*****, password *****"),
        ({"password": "a"}, "Password: 'a' me:a@h a@h", "Password: '*****' me:*****@h a@h"),
        ({"password": "dbt"}, "dbt {'password': 'dbt'} pwd is dbt", "dbt {'password': '*****'} pwd is *****"),
        (
            {"password": "dbt1", "user": "dbt1"},
            "dbt1 http://dbt1:dbt1@h/ password=dbt1",
            "dbt1 http://h/ password=*****",
        ),
        (
            {"password": "opensesame", "spark_config": {"spark.custom.auth": "opensesame"}},
            "no opensesame",
            "no *****",
        ),
        ({"password": "open sesame 1"}, "token 1 of 1", "token 1 of 1"),
        ({"password": "lake", "catalog": "lake"}, "`lake`.`s`", "`lake`.`s`"),
        ({"password": "password"}, "the password is wrong", "the password is wrong"),
        ({"password": "password"}, "password = password", "password = *****"),
        ({"token": True, "password": None}, "True or None", "True or None"),
        ({"password": 123456}, "got 123456, not 1234567", "got *****, not 1234567"),
        # parts that are sent by themselves
        (
            {"catalog_properties": {"credential": "client:opensesame"}},
            "opensesame of client",
            "***** of client",
        ),
        (
            {"catalog_properties": {"uri": "postgresql://me:open%20sesame@h/db"}},
            "open sesame me h db",
            "***** me h db",
        ),
        (
            {"catalog_properties": {"uri": "postgresql://me:se/sa@me?!@h/db"}},
            "wrong: se/sa@me?!",
            "wrong: *****",
        ),
        ({"catalog_properties": {"uri": "http://h?token=opensesame"}}, "no opensesame", "no *****"),
        # a file of credentials, and a key of several lines
        (
            {"x": {"credentials-json": json.dumps({"private_key": KEY, "client_email": "me@h"})}},
            f"{KEY} {KEY!r} MIIEvQIBADANBgkq me@h",
            "***** '*****' ***** me@h",
        ),
        ({"catalog_properties": {"header.Authorization": "Bearer opensesame"}}, "no opensesame", "no *****"),
        (
            {"catalog_properties": {"auth": {"oauth2": {"client_secret": "opensesame"}}}},
            "no opensesame",
            "no *****",
        ),
        ({"catalogs": {"b": {"secrets": [{"x": "opensesame"}]}}}, "no opensesame", "no *****"),
        ({"spark_config": {"o": "-Da.password=opensesame -Db=1"}}, "no opensesame", "no *****"),
        ({"password": "open sesame"}, "b3BlbiBzZXNhbWU= open+sesame open%20sesame", "***** ***** *****"),
    ],
)
def test_secrets_of_the_profile_are_masked_wherever_they_are(
    settings: dict[str, Any], text: str, cleaned: str
) -> None:
    with knowing(settings):
        assert clean(text) == cleaned


SECRETS = st.text(
    st.one_of(
        st.characters(codec="utf-8", exclude_categories=["Cs"]), st.sampled_from("'\"\\/@:%?#&= \n;{}$`")
    ),
    min_size=8,
    max_size=20,
)


def test_secrets_that_libraries_take_from_the_environment_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7")
    monkeypatch.setenv("PGPASSWORD", "sesame12")
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    monkeypatch.setenv("PWD", "/somewhere")
    with knowing({}):
        text = "wJalrXUtnFEMI/K7 sesame12 abc /somewhere"
        assert clean(text) == "***** ***** abc /somewhere"


@settings(deadline=None)
@given(SECRETS)
def test_no_text_has_the_secret(secret: str) -> None:
    """However a library may have written it into its text."""
    assume(secret.strip() == secret and len(set(secret)) > 3 and not set(secret) <= set("*"))
    url = URL.create("postgresql", "me", secret, "h", 5432, "db")
    settings = {"password": secret, "catalog_properties": {"uri": url.render_as_string(hide_password=False)}}
    nested = repr({"x": json.dumps({"y": secret})})
    ways = [
        *(secret, repr(secret), json.dumps(secret), json.dumps(secret, ensure_ascii=False), nested),
        *(quote(secret), quote(secret, safe=""), quote_plus(secret), repr([ValueError(secret)])),
        *(url.render_as_string(hide_password=False), base64.b64encode(secret.encode()).decode()),
        *(f"password={secret}", repr(settings), json.dumps(settings)),
    ]
    with knowing(settings):
        for way in ways:
            text = f"The catalog says <{way}> and\nno more"
            for shown in (
                clean(text),
                short_message(text),
                str(StatementError(text, text)),
                repr(StatementError(text, text)),
                str(ProfileError("x", text)),
                str(SchemaCommitError("t", [], text)),
                "".join(traceback.format_exception_only(safe(ValueError(text)))),
            ):
                assert secret not in shown
                assert way not in shown


# Exceptions


class TextOfItsOwn(Exception):
    """Makes its text again each time, as pydantic's and py4j's do."""

    def __str__(self) -> str:
        return "input_value={'token': 'abc'}"


def test_an_exception_is_cleaned_with_its_causes_and_stays_what_it_is() -> None:
    inner = OSError("http://me:abc@h")
    outer = LookupError("token=abc", 1, ValueError("sig=abc"))
    outer.__cause__ = inner
    shown = safe(outer)
    assert shown is outer
    assert (outer.args[:2], str(outer.args[2]), str(inner)) == (("token=*****", 1), "sig=*****", "http://h")


def test_an_exception_that_makes_its_own_text_is_replaced() -> None:
    shown = safe(TextOfItsOwn())
    assert (type(shown), str(shown)) == (RuntimeError, "TextOfItsOwn: input_value={'token': '*****'}")


def test_an_exception_without_a_secret_is_left_alone() -> None:
    exc = LookupError("x")
    assert safe(exc) is exc
    assert exc.args == ("x",)


@pytest.mark.parametrize(
    ("properties", "secret"),
    [
        (
            {"type": "sql", "uri": "postgresql+psycopg2://me:opensesame@127.0.0.1:1/d?bad=opensesame"},
            "opensesame",
        ),
        (
            {"type": "rest", "uri": "http://127.0.0.1:1/?token=opensesame", "credential": "a:sesameopen"},
            "sesameopen",
        ),
    ],
)
def test_the_errors_of_pyiceberg_show_no_secret(
    properties: dict[str, str], secret: str, tmp_path: Any
) -> None:
    with knowing({"catalog_properties": properties}):
        catalog = IcebergCatalog(resolve("lake", {**properties, "warehouse": "/w"}, tmp_path))
        with pytest.raises(Exception, match=r"\S") as raised:
            catalog.namespace_exists("s")
        # A traceback shows the lines of the source too; those of this test have the secret.
        shown = [str(link) + repr(link) for link in redaction.chain(raised.value)]
    assert not any(secret in text or "opensesame" in text for text in shown)


# dbt's own texts


def wrong(output: dict[str, Any]) -> str:
    with pytest.raises(ProfileError) as raised:
        SparkEvolveCredentials.validate({**SESSION, **output})
    assert raised.value.__suppress_context__
    return str(raised.value.msg)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            {"spark_config": [{"spark.hadoop.fs.s3a.secret.key": "opensesame"}]},
            "`spark_config` in the profile has to be a mapping of keys to values, but is a list.",
        ),
        (
            {"catalog_properties": "uri=x;password=opensesame"},
            "`catalog_properties` in the profile has to be a mapping of keys to values, but is a string.",
        ),
        (
            {"password": {"value": "opensesame"}},
            "`password` in the profile has to be a string or nothing, but is a mapping of keys to values.",
        ),
        ({"port": "opensesame"}, "`port` in the profile has to be a whole number, but is a string."),
        (
            {"server_side_parameters": {"spark.token": ["opensesame"]}},
            "`server_side_parameters.spark.token` in the profile has to be a string, but is a list.",
        ),
        (
            {"method": "opensesame"},
            "`method` in the profile has to be session or thrift, but is something else.",
        ),
    ],
)
def test_a_profile_that_is_wrong_is_not_printed(output: dict[str, Any], message: str) -> None:
    assert wrong(output) == message


@pytest.mark.parametrize("openly", ["own", "further", "another"])
def test_what_one_catalog_says_openly_is_in_the_texts_of_all(openly: str) -> None:
    """A further catalog's password may be the name of the profile's schema, which each text has."""
    uris = {"secret": "postgresql://me:reports@h/db", "open": "postgresql://h/reports"}
    catalogs = {"other": {"type": "sql", "uri": uris["secret"]}}
    output: dict[str, Any] = {**SESSION, "catalogs": catalogs}
    if openly == "own":
        output["schema"] = "reports"
    elif openly == "further":
        output["catalog_properties"] = {"type": "sql", "uri": uris["secret"]}
        catalogs["other"] = {"type": "sql", "uri": uris["open"]}
    else:
        catalogs["third"] = {"type": "sql", "uri": uris["open"]}
    SparkEvolveCredentials.validate(output)
    assert clean("no table reports.orders") == "no table reports.orders"
    assert clean("password 'reports'") == "password '*****'"


def test_a_profile_shows_no_secret_in_a_debugger() -> None:
    output = {
        **SESSION,
        "password": "opensesame",
        "catalog_properties": {"type": "rest", "uri": "http://a:b@h", "token": "c3"},
    }
    credentials = SparkEvolveCredentials.from_dict(output)
    assert repr(credentials) == (
        "SparkEvolveCredentials({'method': 'session', 'catalog': 'lake', 'database': 'lake', "
        "'schema': 'analytics'})"
    )
    assert repr(credentials.catalog_settings()) == (
        "CatalogSettings(name='lake', packages=(), bundles=(), file_io=None, sqlite_file=None, "
        "embedded=False, ca_file=None, tuning=(), lacking_spark=(), lacking_pyiceberg=(), unknown=())"
    )


def test_the_lines_that_dbt_logs_are_cleaned_once_a_profile_is_known() -> None:
    manager = get_event_manager()
    manager.add_logger(LoggerConfig("test", scrubber=lambda line: line.replace("dbt", "DBT")))
    logger = manager.loggers[-1]
    try:
        for _ in range(2):
            learn({"password": "opensesame"})
        assert logger.scrubber("dbt: opensesame, token=x") == "DBT: *****, token=*****"
        # A terminal obeys neither what a name has in it nor what hides it; dbt's own colours stay.
        hidden = "\x1b[31mred\x1b[0m a\tb\nc\r\nd \x1b[8m\x1b]0;x\x07\r\x9b1A\u202e"
        assert logger.scrubber(hidden) == (
            "\x1b[31mred\x1b[0m a\tb\nc\r\nd \\x1b[8m\\x1b]0;x\\x07\\r\\x9b1A\\u202e"
        )
        assert isinstance(logger.scrubber, redaction.Scrubber)
        assert not isinstance(logger.scrubber.before, redaction.Scrubber)
    finally:
        manager.loggers.remove(logger)
