"""The authorities whose certificates Spark's Java trusts: its own, and those of the profile."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from dbt.adapters.sparkevolve.errors import ProfileError

# A trust store holds no secret; Java wants a password to see whether the file is whole.
_PASSWORD = "changeit"
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def trust(gateway: Any, ca_files: Mapping[str, str], folder: Path) -> tuple[str, str, str]:
    """Make a store of the authorities that Java trusts, and of those in some files as well.

    Java reads no PEM file by itself. The libraries below Iceberg look at the store when they connect.

    Args:
        gateway: py4j's gateway to Java.
        ca_files: their certificates, in PEM format, by the setting of the profile that names the file.
        folder: where the store is kept.

    Returns:
        the path of the store, its password and its format.

    Raises:
        ProfileError: a file cannot be read, or has no certificate.
    """
    texts = [text for setting, ca_file in ca_files.items() for text in _certificates(setting, ca_file)]
    content = b"\n".join(texts)
    jvm = gateway.jvm
    system = jvm.java.lang.System
    store_file = folder / f"trusted-{hashlib.sha256(content).hexdigest()[:16]}.p12"
    own = system.getProperty("javax.net.ssl.trustStore")
    own = own or f"{system.getProperty('java.home')}/lib/security/cacerts"
    password = _characters(gateway, system.getProperty("javax.net.ssl.trustStorePassword") or _PASSWORD)
    # Java finds out by itself which format such a file has.
    kind = system.getProperty("javax.net.ssl.trustStoreType") or "JKS"
    store = jvm.java.security.KeyStore.getInstance(kind)
    with closing(jvm.java.io.FileInputStream(own)) as stream:
        store.load(stream, password)
    both = jvm.java.security.KeyStore.getInstance("PKCS12")
    both.load(None, None)
    for alias in _each(jvm.java.util.Collections.list(store.aliases())):
        if store.isCertificateEntry(alias):
            both.setCertificateEntry(alias, store.getCertificate(alias))
    factory = jvm.java.security.cert.CertificateFactory.getInstance("X.509")
    found = factory.generateCertificates(jvm.java.io.ByteArrayInputStream(content))
    for number, certificate in enumerate(_each(jvm.java.util.ArrayList(found))):
        both.setCertificateEntry(f"sparkevolve-{number}", certificate)
    written = folder / f"{store_file.name}.{os.getpid()}"
    with closing(jvm.java.io.FileOutputStream(str(written))) as stream:
        both.store(stream, _characters(gateway, _PASSWORD))
    written.replace(store_file)
    return str(store_file), _PASSWORD, "PKCS12"


def _certificates(setting: str, ca_file: str) -> list[bytes]:
    """Return the certificates of a file, without its comments and keys, which Java stumbles over."""
    try:
        texts = _CERTIFICATE.findall(Path(ca_file).read_bytes())
    except OSError as exc:
        raise ProfileError(setting, f"`ssl.cabundle` in `{setting}` cannot be read: {exc}.") from exc
    if not texts:
        raise ProfileError(setting, f"`ssl.cabundle` in `{setting}` has no certificate: {ca_file}.")
    return texts


def _each(items: Any) -> Iterator[Any]:
    """Yield what is in a list of Java's."""
    return (items.get(position) for position in range(items.size()))


def _characters(gateway: Any, text: str) -> Any:
    array = gateway.new_array(gateway.jvm.char, len(text))
    for position, character in enumerate(text):
        array[position] = character
    return array
