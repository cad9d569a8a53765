"""What the documentation says of the tests is what the tests are."""

import ast
import json
import re
from dataclasses import fields
from pathlib import Path

import yaml

from dbt.adapters.sparkevolve.load.results import Response
from dbt.adapters.sparkevolve.model_config import KNOWN
from dbt.adapters.sparkevolve.operations import OPERATIONS, Operations
from dbt.adapters.sparkevolve.settings import DOCUMENTED
from dbt.adapters.sparkevolve.variables import KNOWN as VARIABLES
from tests.functional.test_readme import RUN_BY

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "dbt-tests.md"


def suites() -> dict[str, tuple[list[str], list[str]]]:
    """Return by file which suites of dbt-tests-adapter run as they are, and which with something changed.

    A class of our own between the two counts as a change. A suite that runs in both ways is listed with
    those that are changed.
    """
    found = {}
    for path in sorted((ROOT / "tests" / "functional" / "adapter").glob("test_*.py")):
        imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        imported = {alias.name for node in imports if _is_in(node, "dbt.tests") for alias in node.names}
        classes = _classes(path)
        for node in imports:
            if node.module and _is_in(node, "tests"):
                classes = {**_classes(ROOT / f"{node.module.replace('.', '/')}.py"), **classes}
        plain: dict[str, None] = {}
        adapted: dict[str, None] = {}
        for node in classes.values():
            if node.name.startswith("Test") and node.name not in imported:
                names, changed = _bases(node, classes)
                for name in names:
                    (adapted if changed else plain)[name] = None
        kept = [name for name in plain if name not in adapted]
        found[path.stem.removeprefix("test_").replace("_", " ")] = (kept, list(adapted))
    return found


def _classes(path: Path) -> dict[str, ast.ClassDef]:
    """Return the classes of a file by name."""
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}


def _is_in(node: ast.ImportFrom, package: str) -> bool:
    """Return whether an import is from a package or a module in it."""
    return f"{node.module}.".startswith(f"{package}.")


def _bases(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> tuple[list[str], bool]:
    """Return the suites that a class runs, and whether it or a class of ours between changes something."""
    names: list[str] = []
    changed = any(not isinstance(statement, ast.Pass | ast.Expr) for statement in node.body)
    for base in node.bases:
        name = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
        if name in classes:
            inner, inner_changed = _bases(classes[name], classes)
            names += inner
            changed = changed or inner_changed
        else:
            names.append(name)
    return names, changed


def test_the_page_lists_the_suites_that_are_run() -> None:
    listed = {}
    rows = re.findall(r"^\| ([a-z ]+) \| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    for file, plain, adapted in rows:
        listed[file] = (re.findall(r"`(\w+)`", plain), re.findall(r"`(\w+)`", adapted))
    listed.pop("file")
    assert listed == {file: both for file, both in suites().items() if any(both)}


def test_what_the_page_says_is_left_out_is_not_run() -> None:
    run = {name for both in suites().values() for names in both for name in names}
    left_out = PAGE.read_text().split("## Left out")[1]
    named = set(re.findall(r"`(Base\w+)`", left_out))
    assert len(named) > 50
    assert named & run == set()


def test_each_promise_names_tests_that_there_are() -> None:
    """A promise names a file below ``tests``, or one test of it: ``unit/test_x.py::test_y``."""
    rows = re.findall(r"^\| .* \| (`.*) \|$", (ROOT / "docs" / "promises.md").read_text(), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]*)`", row)]
    assert len(named) > 50
    assert [name for name in named if not _is_there(name)] == []


def _is_there(name: str) -> bool:
    """Return whether a test, or a file of tests, is there."""
    file, _, test = name.partition("::")
    path = ROOT / "tests" / file
    if not file.endswith(".py") or not path.is_file():
        return False
    functions = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    return not test or test in functions


def _rows_under(page: str, heading: str) -> list[str]:
    """Return the first cells of the first table under a heading of a page."""
    text = (ROOT / "docs" / page).read_text().partition(f"{heading}\n")[2]
    table = re.search(r"^\|.*\|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    return [line.split("|")[1] for line in table[1].splitlines()]


def test_the_variables_of_a_run_are_on_the_page_of_settings() -> None:
    rows = _rows_under("settings.md", "## Variables of a run")
    assert sorted(re.findall(r"`(\w+)`", "".join(rows))) == sorted(VARIABLES)
    macros = "\n".join(path.read_text() for path in (ROOT / "dbt").rglob("*.sql"))
    assert set(re.findall(r"\bvar\('(\w+)'", macros)) == set(VARIABLES)


def test_the_results_page_has_each_name_of_a_response() -> None:
    named = re.findall(r"`(\w+)`", "".join(_rows_under("results.md", "# Results as data")))
    # dbt-spark knows of no id of a query.
    assert sorted(named) == sorted(f.name for f in fields(Response) if f.name != "query_id")


def test_tests_are_named_by_their_subject() -> None:
    """Codes of lists outside the repository (``test_a01_``, ``test_b_case.py``) say nothing to a reader."""
    paths = list((ROOT / "tests").rglob("test_*.py"))
    assert [path.name for path in paths if re.match(r"test_[a-z]\d*_", path.name)] == []
    names = [name for path in paths for name in _functions(path)]
    assert [name for name in names if re.match(r"test_[a-z]\d\d+_", name)] == []


def _functions(path: Path) -> list[str]:
    """Return the names of the functions of a file, and of its classes' methods."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef)]


def test_each_relative_link_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    # A link in a listing is the reader's.
    texts = [(page, re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)) for page in pages]
    links = [(page, link) for page, text in texts for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    relative = [(page, link) for page, link in links if "://" not in link]
    assert len(relative) > 30
    assert [f"{page.relative_to(ROOT)}: {link}" for page, link in relative if not _leads(page, link)] == []


def _leads(page: Path, link: str) -> bool:
    """Return whether a link of a page leads to a file, and to a heading in it if it names one."""
    file, _, anchor = link.partition("#")
    target = page.parent / file if file else page
    if not anchor:
        return target.exists()
    headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
    # As code hosts make anchors: punctuation goes, and a space becomes a hyphen.
    return anchor in [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_each_error_of_the_page_is_raised_somewhere() -> None:
    """The longest part of a message that has no name and no value in it is in the code."""
    not_ours = {"… types incompatible with the existing columns in their respective positions"}
    texts = [text for path in (ROOT / "dbt").rglob("*.py") for text in _texts(path)]
    macros = [*(ROOT / "dbt").rglob("*.sql"), *(ROOT / "dbt_package" / "macros").rglob("*.sql")]
    texts += [path.read_text() for path in macros]
    code = "\n".join(texts).replace("`", "")
    messages = re.findall(r"^\| (`.*?`) \| ", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    parts = [
        (message, max(message.split("…"), key=len).strip())
        for cell in messages
        for message in re.findall(r"`([^`]*)`", cell)
        if message not in not_ours
    ]
    assert len(parts) > 40
    assert [message for message, part in parts if part not in code] == []


def _texts(path: Path) -> list[str]:
    """Return the texts in a file, with … for what is put into them."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            found.append("".join(str(part) for part in parts))
    return found


def test_the_table_of_settings_is_what_the_code_says() -> None:
    """Each row of a setting, in the order of the code; the other rows are of dbt's own settings."""
    rows = [f"| `{s.key}` | {s.default_text} | {s.meaning} |" for s in DOCUMENTED]
    lines = (ROOT / "docs" / "settings.md").read_text().splitlines()
    start = lines.index("| setting | default | meaning |") + 2
    table = lines[start : lines.index("", start)]
    assert table[: len(rows)] == rows
    others = [name for line in table[len(rows) :] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert set(others) <= KNOWN


def _pages() -> list[Path]:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return sorted(pages)


def test_each_run_operation_of_the_pages_takes_its_arguments() -> None:
    """What a page shows as a command is accepted as far as that can be told without a table."""
    operations = Operations("lake", {})
    shown = []
    for page in _pages():
        for name, quoted, args in re.findall(
            r"dbt run-operation (\w+)(?: --args (['\"])(.*?)(?<!\\)\2)?", page.read_text(encoding="utf-8")
        ):
            given = yaml.safe_load(args.replace('\\"', '"') if quoted == '"' else args) or {} if args else {}
            if args and name in OPERATIONS and name != "NAME":
                operations.arguments(name, given)
            shown.append((page.name, name))
    assert len(shown) > 15
    unknown = {name for _, name in shown} - set(OPERATIONS)
    # Of the dbt package, whose own tests run it; and of dbt, which a listing shows.
    assert unknown <= {"sparkevolve", "NAME", "run_query"}


def test_each_command_in_a_listing_is_run_by_a_test() -> None:
    with_commands = set()
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
        text = page.read_text(encoding="utf-8")
        for code in re.findall(
            r"^ *```(?:sh|console|bash|shell)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL
        ):
            if re.search(r"^ *(?:\$ )?dbt ", code, re.MULTILINE):
                with_commands.add(page.name)
    assert with_commands == set(RUN_BY)
    run = (ROOT / "tests" / "functional" / "test_readme.py").read_text(encoding="utf-8")
    # What does not read the page could run something else.
    for page, test in RUN_BY.items():
        if test.startswith("test_"):
            body = run[run.index(f"def {test}(") :].split("\n\n\n")[0]
            assert f'"{page}"' in body, page


def test_each_variable_and_setting_of_the_pages_exists() -> None:
    for page in _pages():
        text = page.read_text(encoding="utf-8")
        variables = set(re.findall(r"sparkevolve_[a-z_]+(?=:)", text))
        assert variables <= set(VARIABLES), page.name
        for block in re.findall(r"\{\{ config\((.*?)\) \}\}", text, re.DOTALL):
            call = ast.parse(f"config({block})").body[0]
            assert isinstance(call, ast.Expr)
            assert isinstance(call.value, ast.Call)
            keys = {str(keyword.arg) for keyword in call.value.keywords}
            assert keys <= KNOWN | {"materialized", "meta", "alias"}, page.name


def test_each_page_is_in_the_navigation_of_the_site() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = re.findall(r"[\w-]+\.md", json.dumps(site["nav"]))
    outside = {"start.md", "dbt-package.md", "contributing.md", "operations.md"}
    assert sorted(listed) == sorted({page.name for page in (ROOT / "docs").glob("*.md")} | outside)


def test_what_the_readme_begins_with_is_what_its_first_table_shows() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    heading = text.index("## Your first table")
    begin = re.search(r"^```console\n(.*?)^```$", text[:heading], re.DOTALL | re.MULTILINE)
    assert begin is not None
    shown = iter(text[heading:].splitlines())
    assert [line for line in begin[1].splitlines() if line not in shown] == []
