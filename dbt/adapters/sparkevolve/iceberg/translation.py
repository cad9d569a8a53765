"""The properties of a catalog said to both sides, to PyIceberg and to Spark; pure.

What only one of them knows is named in ``lacking_spark`` and ``lacking_pyiceberg``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.sparkevolve.iceberg.catalog_properties import (
    BY_RULE,
    KEY_STORE,
    NOT_IN_PYICEBERG,
    NOT_IN_SPARK,
    QUIET_PYICEBERG,
    QUIET_SPARK,
    QUIET_SPARK_PREFIXES,
    SAME,
    SAME_PREFIXES,
    TO_PYICEBERG,
    TO_SPARK,
    TUNING_OF_PYICEBERG,
)

_DELEGATION = "header.X-Iceberg-Access-Delegation"
_CREDENTIALS = "software.amazon.awssdk.auth.credentials"
# The system properties by which AWS's library for Java knows a key.
_JAVA_KEYS = {
    "access-key-id": "aws.accessKeyId",
    "secret-access-key": "aws.secretAccessKey",
    "session-token": "aws.sessionToken",
}
_ASSUME_ROLE = "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"


@dataclass
class Translation:
    """The properties of one catalog on each side.

    Attributes:
        pyiceberg: PyIceberg's, by its names; ``auth`` and ``ssl`` are mappings.
        spark: Spark's, by the names below ``spark.sql.catalog.<name>``; without ``type``.
        java: system properties of Spark's Java.
        ca_file: certificates in PEM format of authorities that Spark's Java is to trust too.
        tuning: what Spark has nothing for, and which decides only how fast or how often something is done.
        lacking_spark: what Spark has nothing for, each with what to do about it in brackets.
        lacking_pyiceberg: what PyIceberg has nothing for.
        unknown: what neither is known to read; both get it as it is.
    """

    pyiceberg: dict[str, Any] = field(default_factory=dict)
    spark: dict[str, str] = field(default_factory=dict)
    java: dict[str, str] = field(default_factory=dict)
    ca_file: str | None = None
    tuning: list[str] = field(default_factory=list)
    lacking_spark: list[str] = field(default_factory=list)
    lacking_pyiceberg: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def translate(kind: str, given: Mapping[str, Any]) -> Translation:
    """Say the properties of a catalog to both sides.

    Args:
        kind: PyIceberg's ``type`` of the catalog, in lower case.
        given: the profile's; texts, but for the mappings ``auth`` and ``ssl``.
    """
    result = Translation()
    for name, value in given.items():
        if name not in BY_RULE:
            _by_table(result, name, value)
    for rule in _RULES:
        rule(result, kind, given)
    # What the profile says in so many words wins over what follows from other words of it.
    said = {name: value for name, value in given.items() if name != "client.region"}
    result.spark.update({name: value for name, value in said.items() if name in result.spark})
    result.pyiceberg.update({name: value for name, value in said.items() if name in result.pyiceberg})
    result.spark.pop("type", None)
    return result


def _by_table(result: Translation, name: str, value: str) -> None:
    if name in SAME or name.startswith(SAME_PREFIXES):
        result.pyiceberg[name] = result.spark[name] = value
    elif name in TO_SPARK:
        row = TO_SPARK[name]
        result.pyiceberg[name] = value
        _converted(row.spark, row.to_spark, value, result.spark, result.lacking_spark, name)
        if name.startswith("s3.signer."):
            # The only name before Iceberg 1.12.
            result.spark[name] = value
    elif name in TO_PYICEBERG:
        row = TO_PYICEBERG[name]
        assert row.to_pyiceberg is not None
        result.spark[name] = value
        _converted(row.pyiceberg, row.to_pyiceberg, value, result.pyiceberg, result.lacking_pyiceberg, name)
    elif name in NOT_IN_SPARK:
        result.pyiceberg[name] = value
        result.lacking_spark.append(_note(name, NOT_IN_SPARK[name]))
    elif name in TUNING_OF_PYICEBERG:
        result.pyiceberg[name] = value
        result.tuning.append(_note(name, TUNING_OF_PYICEBERG[name]))
    elif name in NOT_IN_PYICEBERG:
        result.spark[name] = value
        result.lacking_pyiceberg.append(f"`{name}`")
    elif name in QUIET_SPARK or name.startswith(QUIET_SPARK_PREFIXES):
        result.spark[name] = value
    elif name in QUIET_PYICEBERG or name.startswith("py-"):
        result.pyiceberg[name] = value
    else:
        result.pyiceberg[name] = result.spark[name] = value
        result.unknown.append(f"`{name}`")


def _converted(
    target: str,
    convert: Callable[[str], str],
    value: str,
    side: dict[str, Any],
    lacking: list[str],
    name: str,
) -> None:
    try:
        side[target] = convert(value)
    except (KeyError, ValueError):
        # `false` of a switch is what the other side does anyway.
        if value.strip().lower() != "false":
            lacking.append(f"`{name}` with this value")


def _note(name: str, advice: str) -> str:
    return f"`{name}` ({advice})" if advice else f"`{name}`"


def _hive(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """Spark says `timestamp` to a metastore of any version, since its client is one of Hive 2.3.

    PyIceberg would say `timestamp with local time zone` of the same column: before Hive 3 that is no type,
    and later it is another one than the metastore has, which it refuses to change.
    """
    if kind == "hive":
        result.pyiceberg.setdefault("hive.hive2-compatible", "true")


def _regions(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """Spark has one region for all of AWS; PyIceberg one for each service, and one for the rest."""
    names = ("glue.region", "s3.region") if kind == "glue" else ("s3.region",)
    result.pyiceberg.update({name: given[name] for name in (*names, "client.region") if name in given})
    used = [name if name in given else "client.region" for name in names]
    used = [name for name in used if name in given]
    if not used:
        return
    result.spark["client.region"] = given[used[0]]
    for name in used[1:]:
        if given[name] != given[used[0]]:
            result.lacking_spark.append(f"`{name}` (Spark has one region for all, and takes `{used[0]}`)")


def _aws_keys(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """PyIceberg's keys for all of AWS; Spark has some for S3, some for signing requests, none for Glue."""
    for key, java in _JAVA_KEYS.items():
        for_all, for_glue, for_rest = (given.get(f"{part}.{key}") for part in ("client", "glue", "rest"))
        if for_all is not None:
            result.pyiceberg[f"client.{key}"] = for_all
            result.spark.setdefault(f"s3.{key}", for_all)
        if for_glue is not None:
            result.pyiceberg[f"glue.{key}"] = for_glue
        if for_rest is not None:
            result.spark[f"rest.{key}"] = for_rest
        if _signs(given):
            # PyIceberg signs with those for all, and reads S3 with them where it has none of S3's own.
            if for_all is not None:
                result.spark.setdefault(f"rest.{key}", for_all)
            elif for_rest is not None:
                result.pyiceberg[f"client.{key}"] = for_rest
        base = for_all if for_glue is None else for_glue
        if base is not None and (kind == "glue" or "client.assume-role.arn" in result.spark):
            result.java[java] = base
    if kind == "glue" and result.java and "client.assume-role.arn" not in result.spark:
        result.spark.setdefault(
            "client.credentials-provider", f"{_CREDENTIALS}.SystemPropertyCredentialsProvider"
        )


def _aws_profile(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """Java reads one profile of AWS's files for all services; PyIceberg one for each."""
    names = ("client.profile-name", "glue.profile-name", "s3.profile-name")
    said = {name: str(given[name]) for name in names if name in given}
    result.pyiceberg.update(said)
    if not said:
        return
    first, *others = said
    result.java["aws.profile"] = said[first]
    result.spark.setdefault("client.credentials-provider", f"{_CREDENTIALS}.ProfileCredentialsProvider")
    result.lacking_spark += [
        f"`{name}` (Java has one profile for all, and takes `{first}`)"
        for name in others
        if said[name] != said[first]
    ]


def _signing(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """Requests are signed for a region, which each side would look for elsewhere."""
    if _signs(given) and "rest.signing-region" not in given:
        region = given.get("client.region", given.get("s3.region"))
        if region is not None:
            result.pyiceberg["rest.signing-region"] = result.spark["rest.signing-region"] = region


def _signs(given: Mapping[str, Any]) -> bool:
    return (
        _is_true(given.get("rest.sigv4-enabled")) or str(given.get("rest.auth.type", "")).lower() == "sigv4"
    )


def _assumed_role(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """Spark assumes a role by a factory of its own, which has to be told a region."""
    if "client.assume-role.arn" not in result.spark:
        return
    for part in ("role-arn", "role-session-name"):
        if f"s3.{part}" in given:
            # As PyIceberg prefers it.
            spark_name = TO_SPARK[f"s3.{part}"].spark
            result.spark[spark_name] = given.get(spark_name, given[f"s3.{part}"])
    result.spark.setdefault("client.factory", _ASSUME_ROLE)
    region = given.get("client.assume-role.region", result.spark.get("client.region"))
    if region is None:
        result.lacking_spark.append("the role to assume (set `client.region`)")
    else:
        result.spark["client.assume-role.region"] = region


def _addressing(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """Unless told, PyIceberg puts the bucket into the path where there is an endpoint; Spark never does."""
    if "s3.endpoint" in given:
        result.spark.setdefault("s3.path-style-access", "true")
    elif "s3.path-style-access" not in given:
        # `s3.force-virtual-addressing: false` leaves AWS's own endpoint as it is.
        result.spark.pop("s3.path-style-access", None)


def _azure(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """What Spark has by account, PyIceberg has for all."""
    account = given.get("adls.account-name", given.get("adls.auth.shared-key.account.name"))
    for name in ("adls.sas-token", "adls.connection-string"):
        if name not in given:
            continue
        result.pyiceberg[name] = given[name]
        if account is None:
            result.lacking_spark.append(_note(name, "set `adls.account-name` too"))
        else:
            result.spark[f"{name}.{account}.dfs.core.windows.net"] = given[name]
    if "adls.auth.shared-key.account.key" not in result.spark:
        # Spark wants both or none.
        result.spark.pop("adls.auth.shared-key.account.name", None)


def _tls(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """Java trusts what its trust store has, and shows the certificates of its key store."""
    if "ssl" not in given:
        return
    result.pyiceberg["ssl"] = given["ssl"]
    bundle = given["ssl"].get("cabundle", True)
    if not isinstance(bundle, bool):
        result.ca_file = str(bundle)
    elif not bundle:
        result.lacking_spark.append("`ssl.cabundle` of false (name a file with the certificate)")
    if given["ssl"].get("client"):
        result.lacking_spark.append(_note("ssl.client", KEY_STORE))


def _authentication(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    spoken = {name: value for name, value in given.items() if name.startswith(("rest.auth.", "gcp.auth."))}
    result.spark.update(spoken)
    if "auth" in given:
        result.pyiceberg["auth"] = given["auth"]
        settings = dict(_auth_of_spark(given["auth"]))
        if not settings:
            result.lacking_spark.append(f"`auth` of the type {given['auth'].get('type')!r}")
        for name, value in settings.items():
            result.spark.setdefault(name, value)
    elif spoken:
        auth = _auth_of_pyiceberg(spoken)
        if auth is not None:
            result.pyiceberg.update(auth)
        elif spoken.get("rest.auth.type", "").lower() != "oauth2":
            result.lacking_pyiceberg.append("`rest.auth.type` with this value")


def _auth_of_spark(auth: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield Spark's settings for PyIceberg's ``auth``; none if it has no such thing."""
    kind = str(auth.get("type"))
    config = auth.get(kind) or {}
    if kind == "noop":
        yield "rest.auth.type", "none"
    elif kind == "basic":
        yield "rest.auth.type", "basic"
        yield "rest.auth.basic.username", str(config.get("username", ""))
        yield "rest.auth.basic.password", str(config.get("password", ""))
    elif kind == "oauth2":
        yield "rest.auth.type", "oauth2"
        yield "credential", f"{config.get('client_id', '')}:{config.get('client_secret', '')}"
        if config.get("token_url"):
            yield "oauth2-server-uri", str(config["token_url"])
        if config.get("scope"):
            yield "scope", str(config["scope"])
    elif kind == "google":
        yield "rest.auth.type", "google"
        if config.get("credentials_path"):
            yield "gcp.auth.credentials-path", str(config["credentials_path"])
        if config.get("scopes"):
            yield "gcp.auth.scopes", ",".join(map(str, config["scopes"]))


def _auth_of_pyiceberg(spoken: Mapping[str, str]) -> dict[str, Any] | None:
    """Return PyIceberg's properties for Spark's ``rest.auth.*``; None if it has no such thing."""
    kind = spoken.get("rest.auth.type", "").lower()
    if kind == "none":
        return {"auth": {"type": "noop"}}
    if kind == "basic":
        user, password = (spoken.get(f"rest.auth.basic.{part}", "") for part in ("username", "password"))
        return {"auth": {"type": "basic", "basic": {"username": user, "password": password}}}
    if kind == "sigv4":
        return {"rest.sigv4-enabled": "true"}
    if kind == "google" and "gcp.auth.credentials-json" not in spoken:
        config: dict[str, Any] = {}
        if "gcp.auth.credentials-path" in spoken:
            config["credentials_path"] = spoken["gcp.auth.credentials-path"]
        if "gcp.auth.scopes" in spoken:
            config["scopes"] = [scope.strip() for scope in spoken["gcp.auth.scopes"].split(",")]
        return {"auth": {"type": "google", **({"google": config} if config else {})}}
    return None


def _delegation(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """PyIceberg asks a REST catalog for the credentials of each table unless told else; Spark never does."""
    names = {name.lower() for name in given}
    if kind == "rest" and _DELEGATION.lower() not in names:
        result.spark[_DELEGATION] = "vended-credentials"


def _is_true(value: Any) -> bool:
    return str(value).strip().lower() == "true"


_RULES = (
    _hive,
    _regions,
    _aws_keys,
    _aws_profile,
    _signing,
    _assumed_role,
    _addressing,
    _azure,
    _tls,
    _authentication,
    _delegation,
)
