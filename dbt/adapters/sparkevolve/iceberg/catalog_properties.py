"""The properties of a catalog by the names that PyIceberg and Spark have for them; pure.

A profile may name a property as either of the two does. What only one of them knows is named in ``lacking``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.sparkevolve.suggestions import closest

# Both know these by one name.
_SAME = frozenset(
    [
        "type",
        "uri",
        "warehouse",
        "prefix",
        "token",
        "credential",
        "scope",
        "audience",
        "resource",
        "oauth2-server-uri",
        "token-refresh-enabled",
        "rest.sigv4-enabled",
        "rest.signing-region",
        "rest.signing-name",
        "rest-page-size",
        "snapshot-loading-mode",
        "scan-planning-mode",
        "view-endpoints-supported",
        "namespace-separator",
        "s3.endpoint",
        "s3.access-key-id",
        "s3.secret-access-key",
        "s3.session-token",
        "glue.id",
        "glue.skip-archive",
        "glue.endpoint",
        "adls.token",
        "gcs.oauth2.token",
        "gcs.oauth2.token-expires-at",
        "gcs.project-id",
        "gcs.service.host",
    ]
)

# PyIceberg's name -> Spark's, the values being the same.
_SPARK_NAMES = {
    "s3.proxy-uri": "http-client.proxy-endpoint",
    "s3.signer.uri": "signer.uri",
    "s3.signer.endpoint": "signer.endpoint",
    "s3.sse-kms-key-id": "s3.sse.key",
    "s3.role-arn": "client.assume-role.arn",
    "s3.role-session-name": "client.assume-role.session-name",
    "client.role-arn": "client.assume-role.arn",
    "client.role-session-name": "client.assume-role.session-name",
    "adls.account-name": "adls.auth.shared-key.account.name",
    "adls.account-key": "adls.auth.shared-key.account.key",
    "init_catalog_tables": "jdbc.init-catalog-tables",
}

# The same the other way round, where Spark's is what the profile has.
_PYICEBERG_NAMES = {
    "http-client.proxy-endpoint": "s3.proxy-uri",
    "signer.uri": "s3.signer.uri",
    "signer.endpoint": "s3.signer.endpoint",
    "s3.sse.key": "s3.sse-kms-key-id",
    "client.assume-role.arn": "client.role-arn",
    "client.assume-role.session-name": "client.role-session-name",
    "adls.auth.shared-key.account.name": "adls.account-name",
    "adls.auth.shared-key.account.key": "adls.account-key",
    "jdbc.init-catalog-tables": "init_catalog_tables",
}


def _milliseconds(seconds: str) -> str:
    return str(round(float(seconds) * 1000))


def _seconds(milliseconds: str) -> str:
    return str(float(milliseconds) / 1000)


def _opposite(flag: str) -> str:
    return "false" if flag.strip().lower() == "true" else "true"


def _value(values: Mapping[str, str]) -> Callable[[str], str]:
    return lambda value: values[value.strip().lower()]


# PyIceberg's name -> Spark's, and how its value is said there; the second one is the way back. A value that
# cannot be said so raises.
_SPARK_VALUES: dict[str, tuple[str, Callable[[str], str]]] = {
    "s3.connect-timeout": ("http-client.apache.connection-timeout-ms", _milliseconds),
    "s3.request-timeout": ("http-client.apache.socket-timeout-ms", _milliseconds),
    "s3.force-virtual-addressing": ("s3.path-style-access", _opposite),
    "s3.server-side-encryption": ("s3.sse.type", _value({"aes256": "s3", "aws:kms": "kms"})),
    "s3.signer": ("s3.remote-signing-enabled", _value({"s3v4restsigner": "true"})),
    "s3.anonymous": (
        "client.credentials-provider",
        _value({"true": "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider"}),
    ),
    "schema_version": ("jdbc.schema-version", str.upper),
}
_PYICEBERG_VALUES: dict[str, tuple[str, Callable[[str], str]]] = {
    "http-client.apache.connection-timeout-ms": ("s3.connect-timeout", _seconds),
    "http-client.apache.socket-timeout-ms": ("s3.request-timeout", _seconds),
    "s3.path-style-access": ("s3.force-virtual-addressing", _opposite),
    "s3.sse.type": ("s3.server-side-encryption", _value({"s3": "AES256", "kms": "aws:kms"})),
    "s3.remote-signing-enabled": ("s3.signer", _value({"true": "S3V4RestSigner"})),
    "jdbc.schema-version": ("schema_version", str.lower),
}

# What PyIceberg alone needs, and Spark's side has no part in.
_QUIET_PYICEBERG = frozenset(
    [
        "echo",
        "pool_pre_ping",
        "hive.hive2-compatible",
        "downcast-ns-timestamp-to-us-on-write",
        "rest.sigv4.max-retries",
    ]
)

_TRUST_STORE = "Java has its own trust store: -Djavax.net.ssl.trustStore=… in spark.driver.extraJavaOptions"
_AWS_ENVIRONMENT = "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN for both"
_AWS_PROFILE = "set AWS_PROFILE for both"
_AZURE_ENVIRONMENT = "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET for both"
_HADOOP = "set it as `spark.hadoop.…` in spark_config"

# What PyIceberg knows and Spark does not -> what to do about it, or nothing that we know of.
_NOT_IN_SPARK = {
    "client.profile-name": _AWS_PROFILE,
    "s3.profile-name": _AWS_PROFILE,
    "glue.profile-name": _AWS_PROFILE,
    "glue.access-key-id": _AWS_ENVIRONMENT,
    "glue.secret-access-key": _AWS_ENVIRONMENT,
    "glue.session-token": _AWS_ENVIRONMENT,
    "glue.max-retries": "",
    "glue.retry-mode": "",
    "s3.resolve-region": "",
    "s3.retry-strategy-impl": "",
    "adls.credential": "",
    "adls.tenant-id": _AZURE_ENVIRONMENT,
    "adls.client-id": _AZURE_ENVIRONMENT,
    "adls.client-secret": _AZURE_ENVIRONMENT,
    "adls.account-host": "",
    "adls.blob-storage-authority": "",
    "adls.dfs-storage-authority": "",
    "adls.blob-storage-scheme": "",
    "adls.dfs-storage-scheme": "",
    "adls.anon": "",
    "gcs.access": "",
    "gcs.consistency": "",
    "gcs.cache-timeout": "",
    "gcs.requester-pays": "Spark has `gcs.user-project`",
    "gcs.session-kwargs": "",
    "gcs.default-bucket-location": "",
    "gcs.version-aware": "",
    "hf.endpoint": "",
    "hf.token": "",
    "hdfs.host": _HADOOP,
    "hdfs.port": _HADOOP,
    "hdfs.user": _HADOOP,
    "hdfs.kerberos_ticket": _HADOOP,
    "hive.kerberos-authentication": "set `spark.hadoop.hive.metastore.sasl.enabled` in spark_config",
    "hive.kerberos-service-name": "set `spark.hadoop.hive.metastore.kerberos.principal` in spark_config",
    "lock-check-min-wait-time": "Spark has `spark.hadoop.iceberg.hive.lock-check-min-wait-ms`",
    "lock-check-max-wait-time": "Spark has `spark.hadoop.iceberg.hive.lock-check-max-wait-ms`",
    "lock-check-retries": "Spark has `spark.hadoop.iceberg.hive.lock-timeout-ms`",
}

# What Spark knows and PyIceberg does not, where it decides who may read and write.
_NOT_IN_PYICEBERG = frozenset(
    [
        "client.factory",
        "client.credentials-provider",
        "s3.client-factory-impl",
        "client.assume-role.external-id",
        "glue.account-id",
        "glue.lakeformation-enabled",
        "rest.access-key-id",
        "rest.secret-access-key",
        "rest.session-token",
        "token-exchange-enabled",
        "gcs.no-auth",
        "gcs.user-project",
        "gcs.impersonate.service-account",
        "gcs.encryption-key",
        "gcs.decryption-key",
        "adls.token-credential-provider",
        "s3.access-grants.enabled",
        "s3.acl",
        "s3.sse.md5",
    ]
)

# What Spark knows and PyIceberg does not need.
_QUIET_SPARK = frozenset(
    [
        "cache-enabled",
        "catalog-impl",
        "clients",
        "client-pool-cache-keys",
        "default-namespace",
        "io-impl",
        "list-all-tables",
        "metrics-reporter-impl",
        "lock-impl",
        "app-id",
        "app-name",
        "user",
        "unique-table-location",
        "token-expires-in-ms",
        "rest-metrics-reporting-enabled",
        "http-client.type",
        "auth.session-timeout-ms",
        "client.assume-role.region",
        "client.assume-role.timeout-sec",
        "client.refresh-credentials-enabled",
        "client.refresh-credentials-endpoint",
        "client.legacy-md5-plugin-enabled",
        "s3.acceleration-enabled",
        "s3.access-grants.fallback-to-iam",
        "s3.analytics-accelerator.enabled",
        "s3.checksum-enabled",
        "s3.chunked-encoding-enabled",
        "s3.cross-region-access-enabled",
        "s3.crt.enabled",
        "s3.crt.max-concurrency",
        "s3.delete-enabled",
        "s3.delete.batch-size",
        "s3.delete.num-threads",
        "s3.directory-bucket.list-prefix-as-directory",
        "s3.dualstack-enabled",
        "s3.multipart.num-threads",
        "s3.multipart.part-size-bytes",
        "s3.multipart.threshold",
        "s3.preload-client-enabled",
        "s3.retry.max-wait-ms",
        "s3.retry.min-wait-ms",
        "s3.retry.num-retries",
        "s3.session-token-expires-at-ms",
        "s3.staging-dir",
        "s3.use-arn-region-enabled",
        "s3.write.namespace-tag-enabled",
        "s3.write.storage-class",
        "s3.write.table-tag-enabled",
        "glue.skip-name-validation",
        "adls.read.block-size-bytes",
        "adls.write.block-size-bytes",
        "adls.refresh-credentials-enabled",
        "adls.refresh-credentials-endpoint",
        "gcs.channel.read.chunk-size-bytes",
        "gcs.channel.write.chunk-size-bytes",
        "gcs.client-lib-token",
        "gcs.delete.batch-size",
        "gcs.analytics-core.enabled",
        "gcs.impersonate.delegates",
        "gcs.impersonate.lifetime-seconds",
        "gcs.impersonate.scopes",
        "gcs.oauth2.refresh-credentials-enabled",
        "gcs.oauth2.refresh-credentials-endpoint",
    ]
)
_QUIET_SPARK_PREFIXES = (
    *("jdbc.", "table-default.", "table-override.", "view-default.", "view-override.", "cache.", "lock."),
    *("io.manifest.", "http-client.", "rest.client.", "rest-scan-planning.", "rest-table-cache."),
    *("client.assume-role.tags.", "client.pool.", "client.credentials-provider.", "encryption.", "kms."),
    *("s3.write.tags.", "s3.delete.tags.", "s3.access-points.", "s3.analytics-accelerator.", "azure."),
    *("lakeformation.", "adls.token-credential-provider.", "hive.metastore."),
)
# Both know what begins so; `adls.` ones go by the name of an account.
_SAME_PREFIXES = ("header.", "adls.sas-token.", "adls.sas-token-expires-at-ms.", "adls.connection-string.")

# Where rules below, and not a table, say what becomes of a property.
_BY_RULE = frozenset(
    [
        "client.region",
        "s3.region",
        "glue.region",
        "client.access-key-id",
        "client.secret-access-key",
        "client.session-token",
        "adls.sas-token",
        "adls.connection-string",
        "auth",
        "ssl",
        "rest.auth.type",
        "rest.auth.basic.username",
        "rest.auth.basic.password",
        "rest.auth.sigv4.delegate-auth-type",
        "gcp.auth.credentials-path",
        "gcp.auth.credentials-json",
        "gcp.auth.scopes",
    ]
)

KNOWN = frozenset().union(
    _SAME,
    _SPARK_NAMES,
    _PYICEBERG_NAMES,
    _SPARK_VALUES,
    _PYICEBERG_VALUES,
    _QUIET_PYICEBERG,
    _NOT_IN_SPARK,
    _NOT_IN_PYICEBERG,
    _QUIET_SPARK,
    _BY_RULE,
)
# PyIceberg takes these as mappings, and nothing else -> an example.
MAPPINGS = {
    "auth": "auth: {type: basic, basic: {username: …, password: …}}",
    "ssl": "ssl: {cabundle: /path/of/ca.pem, client: {cert: …, key: …}}",
}

_DELEGATION = "header.X-Iceberg-Access-Delegation"
_ASSUME_ROLE = "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"


@dataclass
class Translation:
    """The properties of one catalog on each side.

    Attributes:
        pyiceberg: PyIceberg's, by its names; ``auth`` and ``ssl`` are mappings.
        spark: Spark's, by the names below ``spark.sql.catalog.<name>``; without ``type``.
        lacking_spark: what Spark has nothing for, each with what to do about it in brackets.
        lacking_pyiceberg: what PyIceberg has nothing for.
        unknown: what neither is known to read; both get it as it is.
    """

    pyiceberg: dict[str, Any] = field(default_factory=dict)
    spark: dict[str, str] = field(default_factory=dict)
    lacking_spark: list[str] = field(default_factory=list)
    lacking_pyiceberg: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def near_miss(name: str) -> str | None:
    """Return the property that ``name`` is a near miss of; None if it is one, or is like none."""
    if name.startswith(("py-", *_SAME_PREFIXES, *_QUIET_SPARK_PREFIXES)):
        return None
    return closest(name, KNOWN)


def translate(kind: str, given: Mapping[str, Any]) -> Translation:
    """Say the properties of a catalog to both sides.

    Args:
        kind: PyIceberg's ``type`` of the catalog, in lower case.
        given: the profile's; texts, but for the mappings ``auth`` and ``ssl``.
    """
    result = Translation()
    for name, value in given.items():
        if name not in _BY_RULE:
            _by_table(result, name, value)
    for rule in (_regions, _aws_keys, _assumed_role, _addressing, _azure, _tls, _authentication, _delegation):
        rule(result, kind, given)
    # What the profile says in so many words wins over what follows from other words of it.
    said = {name: value for name, value in given.items() if name != "client.region"}
    result.spark.update({name: value for name, value in said.items() if name in result.spark})
    result.pyiceberg.update({name: value for name, value in said.items() if name in result.pyiceberg})
    result.spark.pop("type", None)
    return result


def _by_table(result: Translation, name: str, value: str) -> None:
    if name in _SAME or name.startswith(_SAME_PREFIXES):
        result.pyiceberg[name] = result.spark[name] = value
    elif name in _SPARK_NAMES:
        result.pyiceberg[name] = value
        result.spark[_SPARK_NAMES[name]] = value
        if name.startswith("s3.signer."):
            # The only name before Iceberg 1.12.
            result.spark[name] = value
    elif name in _PYICEBERG_NAMES:
        result.spark[name] = value
        result.pyiceberg[_PYICEBERG_NAMES[name]] = value
    elif name in _SPARK_VALUES:
        result.pyiceberg[name] = value
        _converted(_SPARK_VALUES[name], value, result.spark, result.lacking_spark, name)
    elif name in _PYICEBERG_VALUES:
        result.spark[name] = value
        _converted(_PYICEBERG_VALUES[name], value, result.pyiceberg, result.lacking_pyiceberg, name)
    elif name in _NOT_IN_SPARK:
        result.pyiceberg[name] = value
        result.lacking_spark.append(_note(name, _NOT_IN_SPARK[name]))
    elif name in _NOT_IN_PYICEBERG:
        result.spark[name] = value
        result.lacking_pyiceberg.append(f"`{name}`")
    elif name in _QUIET_SPARK or name.startswith(_QUIET_SPARK_PREFIXES):
        result.spark[name] = value
    elif name in _QUIET_PYICEBERG or name.startswith("py-"):
        result.pyiceberg[name] = value
    else:
        result.pyiceberg[name] = result.spark[name] = value
        result.unknown.append(f"`{name}`")


def _converted(
    rule: tuple[str, Callable[[str], str]], value: str, side: dict[str, Any], lacking: list[str], name: str
) -> None:
    target, convert = rule
    try:
        side[target] = convert(value)
    except (KeyError, ValueError):
        # `false` of a switch is what the other side does anyway.
        if value.strip().lower() != "false":
            lacking.append(f"`{name}` with this value")


def _note(name: str, advice: str) -> str:
    return f"`{name}` ({advice})" if advice else f"`{name}`"


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
    """PyIceberg's keys for all of AWS; Spark has some for S3, and some for signing REST requests."""
    signs = _is_true(given.get("rest.sigv4-enabled")) or given.get("rest.auth.type") == "sigv4"
    for key in ("access-key-id", "secret-access-key", "session-token"):
        name = f"client.{key}"
        if name not in given:
            continue
        result.pyiceberg[name] = given[name]
        result.spark.setdefault(f"s3.{key}", given[name])
        if signs:
            result.spark.setdefault(f"rest.{key}", given[name])
        if kind == "glue":
            result.lacking_spark.append(_note(name, f"for Glue; {_AWS_ENVIRONMENT}"))


def _assumed_role(result: Translation, kind: str, given: Mapping[str, Any]) -> None:
    """Spark assumes a role by a factory of its own, which has to be told a region."""
    if "client.assume-role.arn" not in result.spark:
        return
    for part in ("role-arn", "role-session-name"):
        if f"s3.{part}" in given:
            # As PyIceberg prefers it.
            spark_name = _SPARK_NAMES[f"s3.{part}"]
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
    if "ssl" in given:
        result.pyiceberg["ssl"] = given["ssl"]
        result.lacking_spark.append(_note("ssl", _TRUST_STORE))


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
