"""One address of a PostgreSQL server, as SQLAlchemy's drivers take it, said to Java's; pure."""

from collections.abc import Iterator
from urllib.parse import quote, urlencode

from sqlalchemy.engine import URL

from dbt.adapters.sparkevolve.iceberg.jdbc import JdbcAddress, SocketAddressError, bracketed

# A parameter of libpq -> that of Java's driver.
_NAMES = {
    "application_name": "ApplicationName",
    "channel_binding": "channelBinding",
    "connect_timeout": "connectTimeout",
    "gssencmode": "gssEncMode",
    "krbsrvname": "kerberosServerName",
    "options": "options",
    "service": "service",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslmode": "sslmode",
    "sslnegotiation": "sslNegotiation",
    "sslpassword": "sslpassword",
    "sslrootcert": "sslrootcert",
}
_VALUES = {
    "keepalives": ("tcpKeepAlive", {"0": "false", "1": "true"}),
    "load_balance_hosts": ("loadBalanceHosts", {"disable": "false", "random": "true"}),
    "target_session_attrs": (
        "targetServerType",
        {
            "any": "any",
            "primary": "primary",
            "read-write": "primary",
            "standby": "secondary",
            "read-only": "secondary",
            "prefer-standby": "preferSecondary",
        },
    ),
}
# Where the server is, and who asks: said elsewhere. Java always speaks UTF-8.
_PARTS = ("host", "port", "user", "password", "dbname", "client_encoding")
_DEFAULT_PORT = "5432"

# What a PostgreSQL server says to a client that it has ended, by an administrator or for a time without
# a statement, or is not ready for: of the statement that is answered so, it has done nothing.
ENDED = "57P01,57P02,57P03,57P05"


def jdbc_address(url: URL) -> JdbcAddress:
    """Return what Java's driver needs to reach the server that ``url`` names.

    Raises:
        SocketAddressError: ``url`` names a Unix socket.
    """
    query = {name: value if isinstance(value, str) else ",".join(value) for name, value in url.query.items()}
    found: dict[str, str] = {}
    lacking = []
    for name, value in query.items():
        if name in _NAMES:
            found[_NAMES[name]] = value
        elif name in _VALUES and value in _VALUES[name][1]:
            found[_VALUES[name][0]] = _VALUES[name][1][value]
        elif name not in _PARTS:
            lacking.append(name)
    database = quote(query.get("dbname", url.database or ""), safe="")
    return JdbcAddress(
        f"jdbc:postgresql://{','.join(_hosts(url, query))}/{database}"
        + (f"?{urlencode(found)}" if found else ""),
        str(url.username or query.get("user", "")),
        str(url.password or query.get("password", "")),
        tuple(lacking),
    )


def _hosts(url: URL, query: dict[str, str]) -> Iterator[str]:
    """Yield each host and its port; those of the query, which libpq prefers, may be several."""
    if "host" not in query:
        yield f"{bracketed(url.host or 'localhost')}:{url.port or query.get('port', _DEFAULT_PORT)}"
        return
    ports = query.get("port", str(url.port or _DEFAULT_PORT)).split(",")
    hosts = query["host"].split(",")
    for number, host in enumerate(hosts):
        if host.startswith(("/", "@")):
            raise SocketAddressError(host)
        name, port = _host_and_port(host)
        yield f"{bracketed(name or 'localhost')}:{port or ports[number if len(ports) == len(hosts) else 0]}"


def _host_and_port(host: str) -> tuple[str, str]:
    """Take ``host:port`` apart, as SQLAlchemy writes it; an address of IPv6 has colons of its own."""
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        return name, port.removeprefix(":")
    return (host, "") if host.count(":") != 1 else (host.partition(":")[0], host.partition(":")[2])
