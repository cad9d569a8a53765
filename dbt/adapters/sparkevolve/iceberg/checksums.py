"""What Hadoop's local file system leaves behind of files that are gone: checksums, and empty folders."""

import os
import re
from contextlib import suppress

_LOCAL = re.compile(r"(?:file:(?://(?=/))?)?(/[^/].*?)/*", re.DOTALL)
_CHECKSUM = re.compile(r"\.(.+)\.crc")


def remove_leftovers(location: str) -> None:
    """Remove checksums of files that are gone, and folders that are empty then, at a table's location.

    Hadoop writes a hidden ``.x.crc`` beside each file ``x`` of a local folder; Iceberg knows nothing of it.
    Whatever else is there stays, with the folders that it lies in; links are not followed.

    Args:
        location: of a table that has been removed with its files; only one on this machine is looked at.
    """
    # Not urlparse: a location is no URL with %20 for a space, and ? and # are parts of names.
    found = _LOCAL.fullmatch(location)
    if found is None or os.path.islink(found[1]):
        return
    for folder, _, files in os.walk(found[1], topdown=False):
        present = set(files)
        for name in files:
            checksum = _CHECKSUM.fullmatch(name)
            if checksum is not None and checksum[1] not in present:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))
        with suppress(OSError):  # one that is not empty stays
            os.rmdir(folder)


def remove_checksum(file: str) -> None:
    """Remove the checksum of a file that was deleted, if it was on this machine.

    Args:
        file: the location of the file.
    """
    found = _LOCAL.fullmatch(file)
    if found is not None and not os.path.lexists(found[1]):
        folder, name = os.path.split(found[1])
        with suppress(OSError):
            os.unlink(os.path.join(folder, f".{name}.crc"))
