"""What a SQL catalog's database is to Java's drivers: an address without secrets, and what it lacks; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field


class SocketAddressError(ValueError):
    """The address is a Unix socket, to which Java's driver does not connect.

    Attributes:
        path: of the socket.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True)
class JdbcAddress:
    """The address for Java.

    Attributes:
        url: without user and password.
        user: empty for none.
        password: empty for none.
        lacking: parameters that Java's driver has nothing for, and need not.
        denied: the same of parameters by which a server tells who asks.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    lacking: Sequence[str] = ()
    denied: Sequence[str] = ()


def bracketed(host: str) -> str:
    """Return a host as it stands in a URL, in which an address of IPv6 is in brackets."""
    return f"[{host}]" if ":" in host else host
