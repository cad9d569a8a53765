"""Which properties of a catalog PyIceberg and Spark know, and by which names: a property is one row here.

A profile may name a property as either of the two does; ``translation.py`` says it to both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dbt.adapters.sparkevolve.suggestions import closest

# Both know these by one name.
SAME = frozenset(
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


def _as_it_is(value: str) -> str:
    return value


def _milliseconds(seconds: str) -> str:
    return str(round(float(seconds) * 1000))


def _seconds(milliseconds: str) -> str:
    return str(float(milliseconds) / 1000)


def _opposite(flag: str) -> str:
    return "false" if flag.strip().lower() == "true" else "true"


def _value(values: Mapping[str, str]) -> Callable[[str], str]:
    return lambda value: values[value.strip().lower()]


@dataclass(frozen=True)
class Renamed:
    """A property that both know, each by a name of its own, and perhaps with values of its own.

    Attributes:
        pyiceberg: PyIceberg's name.
        spark: Spark's name, below ``spark.sql.catalog.<name>``.
        to_spark: says a value of PyIceberg's as Spark does; raises KeyError or ValueError if it cannot.
        to_pyiceberg: the way back; None if a profile that has Spark's name means more by it.
    """

    pyiceberg: str
    spark: str
    to_spark: Callable[[str], str] = _as_it_is
    to_pyiceberg: Callable[[str], str] | None = _as_it_is


RENAMED = (
    Renamed("s3.proxy-uri", "http-client.proxy-endpoint"),
    Renamed("s3.signer.uri", "signer.uri"),
    Renamed("s3.signer.endpoint", "signer.endpoint"),
    Renamed("s3.sse-kms-key-id", "s3.sse.key"),
    Renamed("s3.role-arn", "client.assume-role.arn", to_pyiceberg=None),
    Renamed("s3.role-session-name", "client.assume-role.session-name", to_pyiceberg=None),
    Renamed("client.role-arn", "client.assume-role.arn"),
    Renamed("client.role-session-name", "client.assume-role.session-name"),
    Renamed("adls.account-name", "adls.auth.shared-key.account.name"),
    Renamed("adls.account-key", "adls.auth.shared-key.account.key"),
    Renamed("init_catalog_tables", "jdbc.init-catalog-tables"),
    Renamed("s3.connect-timeout", "http-client.apache.connection-timeout-ms", _milliseconds, _seconds),
    Renamed("s3.request-timeout", "http-client.apache.socket-timeout-ms", _milliseconds, _seconds),
    Renamed("s3.force-virtual-addressing", "s3.path-style-access", _opposite, _opposite),
    Renamed(
        "s3.server-side-encryption",
        "s3.sse.type",
        _value({"aes256": "s3", "aws:kms": "kms"}),
        _value({"s3": "AES256", "kms": "aws:kms"}),
    ),
    Renamed(
        "s3.signer",
        "s3.remote-signing-enabled",
        _value({"s3v4restsigner": "true"}),
        _value({"true": "S3V4RestSigner"}),
    ),
    Renamed(
        "s3.anonymous",
        "client.credentials-provider",
        _value({"true": "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider"}),
        None,
    ),
    Renamed("hive.kerberos-authentication", "hadoop.hive.metastore.sasl.enabled"),
    Renamed(
        "lock-check-min-wait-time", "hadoop.iceberg.hive.lock-check-min-wait-ms", _milliseconds, _seconds
    ),
    Renamed(
        "lock-check-max-wait-time", "hadoop.iceberg.hive.lock-check-max-wait-ms", _milliseconds, _seconds
    ),
    Renamed("schema_version", "jdbc.schema-version", str.upper, str.lower),
)
TO_SPARK = {row.pyiceberg: row for row in RENAMED}
TO_PYICEBERG = {row.spark: row for row in RENAMED if row.to_pyiceberg is not None}

# What PyIceberg alone needs, and Spark's side has no part in.
QUIET_PYICEBERG = frozenset(
    [
        "echo",
        "pool_pre_ping",
        "hive.hive2-compatible",
        "downcast-ns-timestamp-to-us-on-write",
        "rest.sigv4.max-retries",
    ]
)

# Each user of a machine can read the options of a Java, and not the file that one of them names.
KEY_STORE = (
    "Java has its own key store: write its options, -Djavax.net.ssl.keyStore and …keyStorePassword, into a "
    "file that only you can read, and set `spark.driver.extraJavaOptions` to `@` and its path"
)
_AZURE_ENVIRONMENT = "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET for both"
_HADOOP = "say it to Spark as `hadoop.…`"

# What PyIceberg knows and Spark does not, where it decides who reads and writes, or where -> what to do about
# it, or nothing that we know of.
NOT_IN_SPARK = {
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
    "gcs.requester-pays": "Spark has `gcs.user-project`",
    "gcs.session-kwargs": "",
    "hf.endpoint": "",
    "hf.token": "",
    "hdfs.host": _HADOOP,
    "hdfs.port": _HADOOP,
    "hdfs.user": _HADOOP,
    "hdfs.kerberos_ticket": _HADOOP,
    "hive.kerberos-service-name": "say it to Spark as `hadoop.hive.metastore.kerberos.principal`",
}
# The same, where it decides how fast or how often something is done.
TUNING_OF_PYICEBERG = {
    "glue.max-retries": "",
    "glue.retry-mode": "",
    "s3.resolve-region": "",
    "s3.retry-strategy-impl": "",
    "gcs.access": "",
    "gcs.consistency": "",
    "gcs.cache-timeout": "",
    "gcs.default-bucket-location": "",
    "gcs.version-aware": "",
    "lock-check-retries": "Spark has `hadoop.iceberg.hive.lock-timeout-ms`",
}

# What Spark knows and PyIceberg does not, where it decides who may read and write.
NOT_IN_PYICEBERG = frozenset(
    [
        "client.factory",
        "client.credentials-provider",
        "s3.client-factory-impl",
        "client.assume-role.external-id",
        "glue.account-id",
        "glue.lakeformation-enabled",
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
QUIET_SPARK = frozenset(
    [
        "cache-enabled",
        "catalog-impl",
        "clients",
        "client-pool-cache-keys",
        "retryable_status_codes",
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
QUIET_SPARK_PREFIXES = (
    *("jdbc.", "table-default.", "table-override.", "view-default.", "view-override.", "cache.", "lock."),
    *("io.manifest.", "http-client.", "rest.client.", "rest-scan-planning.", "rest-table-cache."),
    *("client.assume-role.tags.", "client.pool.", "client.credentials-provider.", "encryption.", "kms."),
    *("s3.write.tags.", "s3.delete.tags.", "s3.access-points.", "s3.analytics-accelerator.", "azure."),
    *("lakeformation.", "adls.token-credential-provider.", "hive.metastore.", "hadoop."),
)
# Both know what begins so; `adls.` ones go by the name of an account.
SAME_PREFIXES = ("header.", "adls.sas-token.", "adls.sas-token-expires-at-ms.", "adls.connection-string.")

# Where rules of `translation.py`, and not a table, say what becomes of a property.
BY_RULE = frozenset(
    [
        "client.region",
        "s3.region",
        "glue.region",
        "client.access-key-id",
        "client.secret-access-key",
        "client.session-token",
        "client.profile-name",
        "glue.access-key-id",
        "glue.secret-access-key",
        "glue.session-token",
        "glue.profile-name",
        "s3.profile-name",
        "rest.access-key-id",
        "rest.secret-access-key",
        "rest.session-token",
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
    SAME,
    TO_SPARK,
    TO_PYICEBERG,
    QUIET_PYICEBERG,
    NOT_IN_SPARK,
    TUNING_OF_PYICEBERG,
    NOT_IN_PYICEBERG,
    QUIET_SPARK,
    BY_RULE,
)
# What one side alone gets, whatever it is, as mappings of their own.
PYICEBERG_ALONE, SPARK_ALONE = "pyiceberg", "spark"
# PyIceberg takes these as mappings, and nothing else -> an example.
MAPPINGS = {
    "auth": "auth: {type: basic, basic: {username: …, password: …}}",
    "ssl": "ssl: {cabundle: /path/of/ca.pem, client: {cert: …, key: …}}",
}


def near_miss(name: str) -> str | None:
    """Return the property that ``name`` is a near miss of; None if it is one, or is like none."""
    if name.startswith(("py-", *SAME_PREFIXES, *QUIET_SPARK_PREFIXES)):
        return None
    return closest(name, KNOWN)
