"""What mkdocs does beside its own: pages from outside of docs/, and one that is generated from the code.

Links lead where they lead on a code host, from the file that they are in. In the site, pages of the
repository that it has are linked; what it has not (folders, decisions) becomes plain text.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Pages outside of docs/, by what they are called in the site.
OUTSIDE = {
    "README.md": "start.md",
    "dbt_package/README.md": "dbt-package.md",
    "CONTRIBUTING.md": "contributing.md",
}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_LISTING = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)


def linked(text: str, path: str) -> str:
    """Return a page with its links as the site has them.

    Args:
        text: the page, in Markdown.
        path: its file, from the root of the repository.
    """
    parts, end = [], 0
    for listing in _LISTING.finditer(text):
        parts += [_LINK.sub(lambda link: _link(link, path), text[end : listing.start()]), listing[0]]
        end = listing.end()
    return "".join([*parts, _LINK.sub(lambda link: _link(link, path), text[end:])])


def _link(found: re.Match[str], path: str) -> str:
    mark, label, address = found.groups()
    if "://" in address or address.startswith("#"):
        return found[0]
    file, hash_, anchor = address.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
    if target in OUTSIDE:
        return f"{mark}[{label}]({OUTSIDE[target]}{hash_}{anchor})"
    inside = target.removeprefix("docs/")
    if target == inside or inside.startswith("decisions") or not (ROOT / target).is_file():
        return label
    return f"{mark}[{label}]({inside}{hash_}{anchor})"


def operations() -> str:
    """Return the page of the run-operations, as the code has them."""
    from dbt.adapters.sparkevolve.operations import OPERATIONS

    lines = [
        "# Run-operations",
        "",
        "`dbt run-operation NAME --args '{argument: value}'`. This page is made from the code.",
    ]
    for name, arguments in OPERATIONS.items():
        lines += ["", f"## {name}", "", "| argument | what | default |", "|---|---|---|"]
        for argument in arguments:
            default = "required" if argument.is_required else _default(argument.default)
            lines.append(f"| `{argument.name}` | {argument.kind.wanted} | {default} |")
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    return "" if value in (None, "", ()) else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    for path, name in OUTSIDE.items():
        text = linked((ROOT / path).read_text(encoding="utf-8"), path)
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "operations.md", content=operations()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links lead to pages of the site."""
    if page.file.generated_by is not None:
        return markdown
    return linked(markdown, f"docs/{page.file.src_uri}")
