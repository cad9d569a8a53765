"""Draw what the commands of the README's first table print in a terminal, as they print it.

``python scripts/terminal_picture.py README.md FOLDER docs/terminal.svg``: in a folder that is empty, with the
dbt that is first on the path. All commands but `dbt init` are run; the picture has those about the second
delivery. It needs `rich`, and names no font of the network.
"""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from readme_commands import INTERACTIVE, commands, run
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS = 148
# What the picture shows: the run of the second delivery, and the table after it.
SHOWN = ("dbt run --vars 'release: 2'", "dbt show --inline")
# Lines of dbt's own about the project, the same in each command.
_LEFT_OUT = re.compile(
    r"Running with dbt=|Registered adapter|Unable to do partial parsing|Found \d+ model|Concurrency:|"
    r"Finished running|Starting full parse|^\s*$"
)
_TIME = re.compile(r"^(?:\x1b\[\d*m)*\d\d:\d\d:\d\d(?:\x1b\[\d*m)*  ")
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def printed(command: str, folder: Path) -> list[str]:
    """Run a command in a terminal, and return the lines of its screen, with their colours.

    Raises:
        SystemExit: it has failed.
    """
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    done = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            said += os.read(ours, 4096)
        except OSError:  # it has ended
            break
    if done.wait():
        sys.exit(f"failed: {command}")
    lines = said.decode().replace("\r\n", "\n").split("\n")
    # A line that gave way to another is not on the screen any more.
    kept = [re.sub(r"\x1b\[[0-9;]*[A-LN-Za-ln-z]", "", line.rsplit("\r", 1)[-1]) for line in lines]
    return [_TIME.sub("", line).replace(str(folder.parent), "~") for line in kept]


def picture(parts: list[tuple[str, list[str]]]) -> str:
    """Return the picture of commands, each with what it has printed."""
    with open(os.devnull, "w") as nowhere:
        console = Console(
            record=True, width=COLUMNS, file=nowhere, color_system="truecolor", force_terminal=True
        )
        for number, (command, lines) in enumerate(parts):
            if number:
                console.print()
            console.print(Text(f"$ {command}", style="bold"))
            for line in lines:
                if not _LEFT_OUT.search(Text.from_ansi(line).plain) and not _LEFT_OUT.search(line):
                    console.print(Text.from_ansi(line))
        svg = console.export_svg(title="shop", theme=MONOKAI, unique_id="terminal")
    return _FONTS.sub("", svg).replace("Fira Code, ", "")


def project(folder: Path) -> Path:
    """Make what `dbt init shop` asks for, which finds no adapter that is installed as editable."""
    shop = folder / "shop"
    (shop / "models").mkdir(parents=True)
    (shop / "dbt_project.yml").write_text("name: shop\nversion: 1.0.0\nprofile: shop\n")
    target = "{type: sparkevolve, method: session, catalog: lake, schema: analytics, threads: 4}"
    (shop / "profiles.yml").write_text(f"shop: {{target: dev, outputs: {{dev: {target}}}}}\n")
    return shop


def main() -> None:
    """Run the section, and write the picture."""
    page, folder, file = (
        Path(sys.argv[1]).read_text(encoding="utf-8"),
        Path(sys.argv[2]).resolve(),
        sys.argv[3],
    )
    parts = []
    for script, expected in commands(page):
        if script.startswith(SHOWN) and (parts or script.startswith(SHOWN[0])):
            parts.append((script, printed(script, folder)))
        elif INTERACTIVE in script:
            folder = project(folder)
        else:
            folder = run(script, expected, folder)
    Path(file).write_text(picture(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
