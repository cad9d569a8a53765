"""Derive the emoji seeds from five published releases of ``emoji-datasource``.

The npm package ``emoji-datasource`` (MIT licence) has changed the columns of
its ``emoji.json`` over the years, which makes it a real history of a table
whose columns come and go. This script fetches five releases with ``npm pack``
into a temporary folder, takes a fixed sample of the records of each one and
writes one CSV file per release, together with the licence of the package.

The same releases always give the same bytes: the sample depends only on the
``unified`` code of a record (see :func:`choose`).

Needs Python 3.10 or newer (standard library only) and ``npm``::

    python integration_tests/scripts/derive_emoji.py
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "emoji-datasource"
RELEASES = ("2.4.4", "3.0.0", "4.0.4", "5.0.1", "6.1.1")
KEY = "unified"
LICENSE_FILE = "LICENSE.emoji-datasource"
SEEDS = Path(__file__).resolve().parent.parent / "seeds"

# The sample. Each key has a place from 0 to PLACES - 1. The release number i
# (from 0) takes the places from i * STEP up to i * STEP + WIDTH, so that two
# consecutive releases share most of their window, and some keys come and go.
PLACES = 1000
WIDTH = 90
STEP = 30

# Of the keys whose spelling changed in some release, those with a place below
# this one are taken (both spellings, in every release which has them).
RESPELLED_BELOW = 220

# Keys which a careless reader takes for numbers: leading zeros, digits only,
# and digits with an "E" between them. Both spellings, where there are two.
NUMBER_LIKE = (
    "0023-20E3",
    "0023-FE0F-20E3",
    "0030-20E3",
    "0030-FE0F-20E3",
    "00A9",
    "00A9-FE0F",
    "2049",
    "2049-FE0F",
    "2122",
    "2122-FE0F",
    "23E9",
    "2614",
    "2648",
)

# Records with one of these characters in a value are left out, so that a row of
# a seed is a line of its file.
UNSAFE = frozenset("\r\n\0")

Record = dict[str, Any]


def pack(release: str, folder: Path) -> Path:
    """Fetch one release of the package into ``folder``; return its tarball."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm was not found on the PATH")
    command = [npm, "pack", "--silent", f"{PACKAGE}@{release}"]
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return folder / done.stdout.split()[-1]


def read_member(tarball: Path, name: str) -> bytes:
    """Return the content of the file ``name`` of a tarball."""
    with tarfile.open(tarball) as archive:
        member = archive.extractfile(name)
        if member is None:
            raise SystemExit(f"{tarball.name}: {name} is not a file")
        return member.read()


def columns_of(records: list[Record]) -> list[str]:
    """Return the columns of a release in the order of their first appearance.

    Some records lack the optional columns, so this is the union over all
    records. It fails if a record has its columns in some other order.
    """
    columns = list(dict.fromkeys(name for record in records for name in record))
    for record in records:
        if list(record) != [name for name in columns if name in record]:
            raise SystemExit(f"{record[KEY]}: columns in an unexpected order")
    return columns


def to_text(value: Any) -> str:
    """Return a value as the text of a CSV field; NULL is the empty text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, str)):
        text = str(value)
    elif isinstance(value, (list, dict)):
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    else:
        raise SystemExit(f"unexpected type of value: {value!r}")
    if text.strip().lower() == "null" or (text and not text.strip()):
        raise SystemExit(f"dbt reads this value as NULL: {text!r}")
    return text


def place(key: str) -> int:
    """Return the place of a key, a number which is the same for ever."""
    digest = hashlib.sha256(key.encode("utf-8")).digest()
    return int.from_bytes(digest[:8], "big") % PLACES


def choose(history: dict[str, list[Record]]) -> dict[str, set[str]]:
    """Return the keys to take from each release.

    Taken wherever they exist are: the keys which obsolete another one or are
    obsoleted by another one in any release, the keys with an ASCII spelling
    (``text`` or ``texts``), the keys of :data:`NUMBER_LIKE`, and a part of the
    keys which ended because their spelling changed (the old spelling is the
    ``non_qualified`` one of a later record), with the new spelling. Added to
    these are the keys within the window of the release.
    """
    always = set(NUMBER_LIKE)
    unsafe: set[str] = set()
    new_spelling: dict[str, str] = {}
    keys = {release: {str(r[KEY]) for r in records} for release, records in history.items()}
    for records in history.values():
        for record in records:
            key = record[KEY]
            for link in ("obsoletes", "obsoleted_by"):
                if record.get(link):
                    always.update((key, record[link]))
            if record.get("text") or record.get("texts"):
                always.add(key)
            if record.get("non_qualified"):
                new_spelling[record["non_qualified"]] = key
            if any(UNSAFE.intersection(to_text(value)) for value in record.values()):
                unsafe.add(key)
    every_key = {key for found in keys.values() for key in found}
    for old in every_key - keys[RELEASES[-1]]:
        if old in new_spelling and place(old) < RESPELLED_BELOW:
            always.update((old, new_spelling[old]))
    chosen: dict[str, set[str]] = {}
    for number, release in enumerate(history):
        window = {key for key in keys[release] if 0 <= place(key) - number * STEP < WIDTH}
        chosen[release] = ((always & keys[release]) | window) - unsafe
    return chosen


def write_seed(path: Path, records: list[Record], keys: set[str]) -> int:
    """Write the chosen records of a release, in its order; return their number."""
    columns = columns_of(records)
    rows = [record for record in records if record[KEY] in keys]
    if len({record[KEY] for record in rows}) != len(rows):
        raise SystemExit(f"{path.name}: {KEY} is not unique")
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        for record in rows:
            writer.writerow([to_text(record.get(name)) for name in columns])
    return len(rows)


def main(arguments: list[str] | None = None) -> int:
    """Fetch the releases and write the seeds and the licence."""
    parser = argparse.ArgumentParser(description="Derive the emoji seeds.")
    parser.add_argument("--out", type=Path, default=SEEDS, help="folder to write to (the project's seeds)")
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    history: dict[str, list[Record]] = {}
    with tempfile.TemporaryDirectory() as name:
        for release in RELEASES:
            tarball = pack(release, Path(name))
            history[release] = json.loads(read_member(tarball, "package/emoji.json"))
            licence = read_member(tarball, "package/LICENSE")
    (out / LICENSE_FILE).write_bytes(licence)
    chosen = choose(history)
    for release, records in history.items():
        path = out / f"emoji_{release.replace('.', '_')}.csv"
        count = write_seed(path, records, chosen[release])
        print(f"{path.name}: {count} of {len(records)} records, {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
