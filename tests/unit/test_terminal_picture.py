"""The picture of a terminal in the README shows what the README's commands print, and loads nothing."""

import html
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "terminal.svg"


def lines() -> list[str]:
    """Return the lines of the picture, from the top."""
    found: dict[float, list[tuple[float, str]]] = {}
    texts = re.findall(
        r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', PICTURE.read_text(encoding="utf-8"), re.S
    )
    for x, y, text in texts:
        plain = html.unescape(re.sub(r"<.*?>", "", text)).replace("\xa0", " ")
        found.setdefault(float(y), []).append((float(x), plain))
    return ["".join(text for _, text in sorted(parts)).rstrip() for _, parts in sorted(found.items())]


def test_it_shows_what_the_commands_print() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme[readme.index("The run does it:") :]
    (listing,) = re.findall(
        r"^```console\n(.*?)^```$", section[: section.index("What the table has")], re.M | re.S
    )
    assert len(listing.splitlines()) == 8
    shown = iter(lines())
    assert [line for line in listing.splitlines() if line not in shown] == []
    assert any(
        line.endswith(("s]",)) and "[OK 2 rows, +1 column, 1 widened, 1 padded in " in line
        for line in lines()
    )


def test_it_loads_nothing() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert "@font-face" not in text
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "https://www.textualize.io",
    }
