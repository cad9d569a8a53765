"""What the one Java of this process has of the profile that runs: system properties, and whom it trusts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.spark.trust import trust

_TRUST = ("javax.net.ssl.trustStore", "javax.net.ssl.trustStorePassword", "javax.net.ssl.trustStoreType")


class JavaProperties:
    """Has Java read what one profile says, and nothing that another has said before.

    Sessions keep their settings, and libraries below Iceberg look at these whenever they connect: with those
    of another profile, a run would reach another account. They stand on no command line.
    """

    def __init__(self) -> None:
        self._to_java: Any = None
        self._said: object = None
        # What Java had by itself, of each property that the profile has set.
        self._before: dict[str, str | None] = {}
        self._context: Any = None

    def say(self, gateway: Any, catalogs: Sequence[CatalogSettings], folder: Path) -> None:
        """Say what a profile says, unless it was the last one to do so, and the certificates are the same.

        Args:
            gateway: py4j's gateway to Java.
            catalogs: those that the profile states.
            folder: where a store of certificates is kept.

        Raises:
            ProfileError: a file of certificates cannot be read, or has none.
        """
        if gateway is not self._to_java:
            self._to_java, self._said, self._before, self._context = gateway, None, {}, None
        properties = {name: value for each in catalogs for name, value in each.java_properties.items()}
        ca_files = {each.place.setting: each.ca_file for each in catalogs if each.ca_file is not None}
        authorities = [each.authorities for each in catalogs]
        said = (properties, ca_files, authorities, folder if ca_files else None)
        if said == self._said:
            return
        # What fails half-way is said wholly the next time.
        self._said = None
        self._take_back()
        for name, value in properties.items():
            self._set(name, value)
        if ca_files:
            # Before the store is another one: Java makes its own context when it is first asked for it.
            self._context = self._to_java.jvm.javax.net.ssl.SSLContext.getDefault()
            for name, value in zip(_TRUST, trust(gateway, ca_files, folder), strict=True):
                self._set(name, value)
            self._look_again()
        self._said = said

    def _set(self, name: str, value: str) -> None:
        system = self._to_java.jvm.java.lang.System
        self._before.setdefault(name, system.getProperty(name))
        system.setProperty(name, value)

    def _look_again(self) -> None:
        """Have Java read its store: what has connected before, such as to download jars, has read it."""
        contexts = self._to_java.jvm.javax.net.ssl.SSLContext
        context = contexts.getInstance("TLS")
        context.init(None, None, None)
        contexts.setDefault(context)

    def _take_back(self) -> None:
        system = self._to_java.jvm.java.lang.System
        for name, value in self._before.items():
            _ = system.clearProperty(name) if value is None else system.setProperty(name, value)
        self._before = {}
        if self._context is not None:
            self._to_java.jvm.javax.net.ssl.SSLContext.setDefault(self._context)
            self._context = None
