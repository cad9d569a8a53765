"""Run the commands of the README's first table as they stand there, and compare what they print.

``python scripts/readme_commands.py README.md FOLDER``: in a folder that is empty, with the dbt that is first
on the path and the home folder of the environment. Blocks of ``sh`` are run; in those of ``console`` each
line after a command has to be among those that it prints, in this order.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HEADING = "## Your first table"
INTERACTIVE = "dbt init shop"


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the languages and texts of the section's listings."""
    section = page[page.index(HEADING) :]
    section = section[: section.index("\n## ", 1)]
    return re.findall(r"^```(sh|console)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


def commands(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what is run, one shell script each, with the lines that it has to print."""
    for language, text in blocks(page):
        if language == "sh":
            yield text, []
        else:
            for command, shown in re.findall(r"^\$ (.*)\n((?:[^$\n].*\n)*)", text, re.MULTILINE):
                yield command, shown.splitlines()


def answers() -> str:
    """Return what somebody types whom ``dbt init`` asks: the two numbers, and Enter for what is proposed."""
    elsewhere = {**os.environ, "HOME": os.getcwd()}
    asked = subprocess.run(["dbt", "init", "asked"], input="", capture_output=True, text=True, env=elsewhere)
    numbers = dict(re.findall(r"^\[(\d+)\] (\w+)", asked.stdout, re.MULTILINE))
    (database,) = [number for number, name in numbers.items() if name == "sparkevolve"]
    # The first method is `session`; then the catalog, the schema and the number of threads.
    return f"{database}\n1\n\n\n\n"


def run(script: str, expected: list[str], folder: Path) -> Path:
    """Run a script, show what it says, and compare; return the folder in which it has ended.

    Raises:
        SystemExit: it has failed, or has not printed a line that the README shows.
    """
    typed = ""
    if INTERACTIVE in script:
        scratch = folder / ".asked"
        scratch.mkdir()
        os.chdir(scratch)
        typed = answers()
        os.chdir(folder)
    print(f"$ {script.strip()}", flush=True)
    place = folder / ".place"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f'{script}\npwd > "{place}"'],
        cwd=folder,
        input=typed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout, flush=True)
    if done.returncode != 0:
        sys.exit(f"failed: {script}")
    # dbt's own lines, and the time before each, are left out of the README.
    said = iter([re.sub(r"^\d\d:\d\d:\d\d  ", "", plain(line)) for line in done.stdout.splitlines()])
    missing = [line for line in expected if line.rstrip() not in said]
    if missing:
        sys.exit(f"not printed, or not in this order: {missing}")
    found = Path(place.read_text().strip())
    place.unlink()
    return found


def plain(line: str) -> str:
    """Return a line without colours, and without blanks at its end."""
    return re.sub(r"\x1b\[\d*m", "", line).rstrip()


def main() -> None:
    """Run all of it."""
    page, folder = Path(sys.argv[1]).read_text(encoding="utf-8"), Path(sys.argv[2]).resolve()
    count = 0
    for script, expected in commands(page):
        folder = run(script, expected, folder)
        count += len(expected)
    print(f"{count} lines of the README are what was printed")


if __name__ == "__main__":
    main()
