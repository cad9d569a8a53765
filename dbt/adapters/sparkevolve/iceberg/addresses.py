"""Where a catalog is, as an error names it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_DEFAULT_PORTS = {
    "postgresql": 5432,
    "mysql": 3306,
    "mariadb": 3306,
    "http": 80,
    "https": 443,
    "thrift": 9083,
}


def address(properties: Mapping[str, Any]) -> str:
    """Return where a catalog is, without user and password: ``host:port``, or the path of a file."""
    uri = str(properties.get("uri", ""))
    if not uri:
        region = properties.get("glue.region") or properties.get("client.region")
        return f"AWS{f' in {region}' if region else ''}" if properties.get("type") == "glue" else "no address"
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        return "an address that cannot be read"
    scheme = parts.scheme.partition("+")[0]
    if scheme == "sqlite":
        return parts.path.removeprefix("/") if parts.path.startswith("//") else parts.path
    port = port or _DEFAULT_PORTS.get(scheme)
    return f"{parts.hostname or 'localhost'}{f':{port}' if port else ''}"
