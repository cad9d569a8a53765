"""Settings for Spark's Java process that no other user of the machine can read."""

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

_SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"
_PROPERTIES_FILE = "--properties-file"


@contextmanager
def private_submit_args(config: Mapping[str, str], spark_home: str) -> Iterator[tuple[int, ...]]:
    """Have spark-submit take its settings from a file, and not from its command line.

    Each user of a machine can read the command line of each process. The file takes the place of
    ``spark-defaults.conf``, or of that which ``PYSPARK_SUBMIT_ARGS`` names, so it begins with its text.

    Args:
        config: the settings.
        spark_home: the folder of Spark.

    Yields:
        The file descriptors that the Java process has to inherit.
    """
    before = os.environ.get(_SUBMIT_ARGS)
    arguments, named = _without_file(shlex.split(before or "pyspark-shell"))
    with private_file(_text_of(named or _defaults_file(spark_home)) + properties_text(config)) as (path, fds):
        os.environ[_SUBMIT_ARGS] = shlex.join([_PROPERTIES_FILE, path, *arguments])
        try:
            yield fds
        finally:
            if before is None:
                del os.environ[_SUBMIT_ARGS]
            else:
                os.environ[_SUBMIT_ARGS] = before


def own_properties(spark_home: str) -> str:
    """Return the text of the file from which Spark has its settings by itself.

    Args:
        spark_home: the folder of Spark.
    """
    _, named = _without_file(shlex.split(os.environ.get(_SUBMIT_ARGS) or ""))
    return _text_of(named or _defaults_file(spark_home))


def is_known_elsewhere(name: str) -> bool:
    """Tell whether Spark may have a setting that no profile says: of its file, its arguments, or a program.

    Args:
        name: the setting's.
    """
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    if context is not None and context._active_spark_context is not None:
        return True
    found = find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or str(Path(found.origin).parent if found and found.origin else "")
    return name in f"{os.environ.get(_SUBMIT_ARGS, '')}\n{own_properties(home)}"


@contextmanager
def private_file(text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Have a file that this user alone can read, in memory where the system can do that.

    A file in memory has no name: nothing of it is left if this process is killed.

    Yields:
        Its path, and the file descriptors that a process has to inherit to open it.
    """
    in_memory = _file_in_memory()
    if in_memory is not None:
        with open(in_memory, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            yield f"/dev/fd/{file.fileno()}", (file.fileno(),)
        return
    with tempfile.TemporaryDirectory(prefix="dbt-sparkevolve-") as folder:
        path = Path(folder) / "spark.conf"
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        yield str(path), ()


def _file_in_memory() -> int | None:
    """Return the descriptor of a new one; None where there are none, or a container does not allow them."""
    try:
        return os.memfd_create("dbt-sparkevolve")
    except (AttributeError, OSError):
        return None


def properties_text(config: Mapping[str, str]) -> str:
    """Return settings in the format of Java's property files."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in config.items())


def _escaped(text: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-/") else _units(c) for c in text)


def _units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _without_file(arguments: Sequence[str]) -> tuple[list[str], Path | None]:
    """Return spark-submit's arguments without the file of properties, and that file; the last one counts."""
    rest: list[str] = []
    named: Path | None = None
    waiting = iter(arguments)
    for argument in waiting:
        option, _, value = argument.partition("=")
        if option == _PROPERTIES_FILE:
            named = Path(value or next(waiting, ""))
        else:
            rest.append(argument)
    return rest, named


def _defaults_file(spark_home: str) -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(spark_home) / "conf") / "spark-defaults.conf"


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") + "\n"
    except FileNotFoundError:
        return ""
