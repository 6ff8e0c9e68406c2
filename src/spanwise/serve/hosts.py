"""The check of the Host header, which stops DNS rebinding.

A web page of another site can make its own name resolve to 127.0.0.1 and then send requests from
the browser of a user to a service on the same machine. Such requests name the other site in the Host
header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

NOT_ALLOWED = "this host name is not allowed; start the service with --allowed-host NAME, or use its IP address"


class AllowedHosts:
    """Host names that requests may use. Addresses and ``localhost`` are always allowed; ``*`` allows all.

    >>> hosts = AllowedHosts(["ner.example.org"])
    >>> [hosts.allows(name) for name in (b"127.0.0.1:8000", b"[::1]", b"localhost:8000", b"NER.example.org", b"evil.org")]
    [True, True, True, True, False]
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {"localhost", "", *(name.lower().rstrip(".") for name in names)}

    def allows(self, header: bytes) -> bool:
        """Return whether a Host header names this service; requests without one come from no browser."""
        host = header.decode("latin-1").strip().lower()
        name, colon, port = host.rpartition(":")
        if colon and (port.isdecimal() or not port) and not name.endswith(":"):
            host = name
        return "*" in self._names or host.rstrip(".") in self._names or _is_address(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    except ValueError:
        return False
    return True
