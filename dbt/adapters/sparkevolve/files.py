"""Files that others read while they are written."""

import errno
import os
import uuid
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old one or the whole new one, and nothing else is left behind.

    Args:
        path: where; of a symbolic link, what it leads to is written.
        text: what is to be in it. Half of a surrogate pair, which UTF-8 has no bytes for, is written escaped.

    Raises:
        OSError: it cannot be written there, or something is there that is no file, such as a device.
    """
    try:
        place = path.resolve()
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if place.exists() and not place.is_file():
            # root could put a file in its place.
            raise OSError(errno.ENOTSUP, "Not a regular file")
        place.parent.mkdir(parents=True, exist_ok=True)
    except (ValueError, RuntimeError) as exc:  # a byte 0 in the path, links in a circle
        raise OSError(errno.EINVAL, str(exc)) from exc
    # Short, since the file's own name may be as long as names can be, and no number of a process:
    # containers that share a folder may share these.
    draft = place.with_name(f".{uuid.uuid4().hex}.part")
    try:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
        draft.replace(place)
    finally:
        # It is there only if something, and be it Ctrl-C, came in between.
        draft.unlink(missing_ok=True)
