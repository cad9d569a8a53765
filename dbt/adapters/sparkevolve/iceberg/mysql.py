"""A MySQL or MariaDB server: its address, said to Java's driver of both, and how it compares names."""

from urllib.parse import quote, urlencode

from sqlalchemy import text
from sqlalchemy.engine import URL, Engine

from dbt.adapters.sparkevolve.iceberg.jdbc import JdbcAddress, SocketAddressError, bracketed

DIALECTS = ("mysql", "mariadb")
_DEFAULT_PORT = 3306
# A parameter of PyMySQL or mysqlclient, in seconds -> that of Java's driver, in milliseconds.
_TIMES = {"connect_timeout": "connectTimeout", "read_timeout": "socketTimeout"}
_MODES = {
    "DISABLED": "disable",
    "REQUIRED": "trust",
    "VERIFY_CA": "verify-ca",
    "VERIFY_IDENTITY": "verify-full",
}
_OF_CLIENT = ("ssl_cert", "ssl_key", "ssl_key_password")
# Where the server is: said elsewhere. Java always speaks UTF-8.
_PARTS = ("charset", "use_unicode", "ssl_ca", "ssl_check_hostname")
_COLLATIONS = text(
    "SELECT DISTINCT collation_name FROM information_schema.columns WHERE table_schema = DATABASE() "
    "AND table_name IN ('iceberg_tables', 'iceberg_namespace_properties') "
    "AND column_name IN ('catalog_name', 'table_namespace', 'namespace', 'table_name', 'metadata_location')"
)


def jdbc_address(url: URL) -> JdbcAddress:
    """Return what Java's driver needs to reach the server that ``url`` names.

    Raises:
        SocketAddressError: ``url`` names a Unix socket.
    """
    query = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    if "unix_socket" in query:
        raise SocketAddressError(query["unix_socket"])
    found: dict[str, str] = {}
    lacking, denied = [], []
    for name, value in query.items():
        if name in _TIMES and value.isdecimal():
            found[_TIMES[name]] = str(int(value) * 1000)
        elif name == "ssl_mode" and value.upper() in _MODES:
            found["sslMode"] = _MODES[value.upper()]
        elif name in _OF_CLIENT:
            denied.append(name)
        elif name not in _PARTS:
            lacking.append(name)
    if "ssl_ca" in query:
        is_checked = query.get("ssl_check_hostname", "true").lower() not in ("false", "0", "no")
        found.setdefault("sslMode", "verify-full" if is_checked else "verify-ca")
        found["serverSslCert"] = query["ssl_ca"]
    place = f"{bracketed(url.host or 'localhost')}:{url.port or _DEFAULT_PORT}"
    return JdbcAddress(
        f"jdbc:mariadb://{place}/{quote(url.database or '', safe='')}"
        + (f"?{urlencode(found, safe='/')}" if found else ""),
        str(url.username or ""),
        str(url.password or ""),
        tuple(lacking),
        tuple(denied),
    )


def collation_of_names(engine: Engine | None) -> str | None:
    """Return how a catalog's database compares names, if it takes different ones for the same; None if not.

    By MySQL's default, `órders` and `Orders` are `orders`: a table would be found under the name of another.
    """
    if engine is None or engine.dialect.name not in DIALECTS:
        return None
    with engine.connect() as connection:
        found = [str(row[0]) for row in connection.execute(_COLLATIONS)]
    return next((name for name in sorted(found) if not name.endswith("_bin") and name != "binary"), None)
