"""The plans of a command as files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from dbt.adapters.sparkevolve.load import plan_file
from dbt.adapters.sparkevolve.load.plan_file import PlanFile, markdown

PLAN: dict[str, Any] = {
    "unique_id": "model.p.a",
    "relation": "`lake`.`s`.`a`",
    "changes": ["add column `x|y` map<string, int>"],
    "removed_get": {f"`c{n}`": "padded with NULL" for n in range(12)},
    "warnings": ["two\nlines"],
    "refusals": [],
}


def test_a_table_stands_whatever_is_in_its_cells() -> None:
    text = markdown([{**PLAN, "status": "changes"}])
    changes = "add column <code>x&#124;y</code> map&lt;string, int&gt;"
    padded = "<br>".join(f"`c{n}`: padded with NULL" for n in range(10))
    assert text == (
        "## Plan of the schemas\n\n"
        "1 incremental model, 1 with changes, 0 refused.\n\n"
        "| model | status | changes | gets no value from the model | read by |\n"
        "|---|---|---|---|---|\n"
        f"| model.p.a | changes | {changes} | {padded}<br>and 2 more |  |\n\n"
        "* **model.p.a**: warning: two lines\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("add column `a b` array<int>", "add column <code>a b</code> array&lt;int&gt;"),
        ("add column `a|b`", "add column <code>a|b</code>"),
        ("add column `a\\|b`", "add column <code>a\\|b</code>"),
        ("add column `a<b>&amp;`", "add column <code>a&lt;b&gt;&amp;amp;</code>"),
        ("add column `a``b`", "add column <code>a``b</code>"),
        ("add column ```![i](http://x/p)`", "add column <code>``![i](http://x/p)</code>"),
        ("default '![i](http://x/p) *a* [l](x)'", "default '![i](http://x/p) *a* [l](x)'"),
        ("a \\| b ` c | <img src=x>\nd", "a \\| b ` c | &lt;img src=x&gt; d"),
    ],
)
def test_no_text_is_markup(text: str, shown: str) -> None:
    """In a cell and in a note, as a parser of Markdown shows them."""
    model = {**PLAN, "status": "refused", "changes": [text], "removed_get": {}, "warnings": []}
    html = MarkdownIt("commonmark").enable("table").render(markdown([{**model, "refusals": [text]}]))
    assert re.findall("<td>(.*)</td>", html) == ["model.p.a", "refused", shown, "", ""]
    assert re.findall("<li>(.*)</li>", html) == [f"<strong>model.p.a</strong>: {shown}"]


def test_a_command_without_a_plan_leaves_no_older_one(tmp_path: Path) -> None:
    PlanFile(tmp_path).add(PLAN)
    file = PlanFile(tmp_path)
    file.add_none()
    assert json.loads((tmp_path / plan_file.JSON_FILE).read_text(encoding="utf-8"))["models"] == []
    text = (tmp_path / plan_file.MARKDOWN_FILE).read_text(encoding="utf-8")
    assert "0 incremental models, 0 with changes, 0 refused." in text
    file.add(PLAN)
    file.add_none()
    (model,) = json.loads((tmp_path / plan_file.JSON_FILE).read_text(encoding="utf-8"))["models"]
    assert model["unique_id"] == "model.p.a"


def test_each_model_is_added_to_the_files(tmp_path: Path) -> None:
    file = PlanFile(tmp_path / "target")
    file.add({**PLAN, "unique_id": "model.p.b", "refusals": ["no"]})
    file.add_failure("model.p.b", "its plan is there")
    file.add_failure("model.p.a", "a hook with password=hunter2")
    text = (tmp_path / "target" / "sparkevolve_plan.json").read_text()
    models = json.loads(text)["models"]
    assert [(model["unique_id"], model["status"]) for model in models] == [
        ("model.p.a", "not planned"),
        ("model.p.b", "refused"),
    ]
    assert "hunter2" not in text
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == [
        "sparkevolve_plan.json",
        "sparkevolve_plan.md",
    ]


def test_no_text_of_a_plan_has_a_secret(tmp_path: Path) -> None:
    secret = "https://me:hunter2@host"
    texts = ("changes", "defaults", "warnings", "refusals")
    projections = [{"column": "a", "expression": f"CAST('{secret}' AS string)"}]
    plan = {**PLAN, **{key: [secret] for key in texts}, "removed_get": {"`a`": secret}}
    PlanFile(tmp_path).add({**plan, "projections": projections})
    (model,) = json.loads((tmp_path / "sparkevolve_plan.json").read_text())["models"]
    assert [model[key] for key in texts] == [["https://host"]] * 4
    assert model["removed_get"] == {"`a`": "https://host"}
    assert model["projections"] == [{"column": "a", "expression": "CAST('https://host' AS string)"}]
    assert "hunter2" not in (tmp_path / "sparkevolve_plan.md").read_text()


def test_a_folder_that_cannot_be_written_to_fails_no_plan(tmp_path: Path, monkeypatch: Any) -> None:
    texts: list[str] = []
    monkeypatch.setattr(plan_file.logger, "warning", texts.append)
    (tmp_path / "file").write_text("")
    PlanFile(tmp_path / "file").add(PLAN)
    assert texts[0].startswith(f"The plan could not be written to {tmp_path / 'file'}: ")


def test_what_a_plan_comes_to() -> None:
    assert plan_file.status_of({**PLAN, "creates": True}) == "new table"
    assert plan_file.status_of({**PLAN, "changes": []}) == "no change"
    assert plan_file.status_of({**PLAN, "refusals": ["no"]}) == "refused"
