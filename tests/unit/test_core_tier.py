"""What of the functional tests `make test` runs: something of each subject, and each strategy."""

import ast
from pathlib import Path

FUNCTIONAL = Path(__file__).parents[1] / "functional"
# Subjects that want a server, which `make test-thrift` and `make test-all` start.
NOT_IN_THE_CORE = {"connections"}


def _core() -> dict[str, str]:
    """Return the text of each function or class that is marked, with its decorators, by its node id."""
    found = {}
    for path in sorted(FUNCTIONAL.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                if "pytest.mark.core" in marks:
                    found[f"{path.relative_to(FUNCTIONAL).as_posix()}::{node.name}"] = "\n".join(marks)
    return found


def test_each_subject_has_a_test_in_the_core() -> None:
    subjects = {path.name for path in FUNCTIONAL.iterdir() if (path / "__init__.py").exists()}
    assert "strategies" in subjects
    assert subjects - {node.split("/")[0] for node in _core()} == NOT_IN_THE_CORE


def test_each_strategy_is_in_the_core() -> None:
    core = _core()
    marks = core["strategies/test_rows.py::test_every_strategy_pads_evolves_and_publishes"]
    assert [
        name for name in ("append", "delete+insert", "merge", "insert_overwrite") if f"'{name}'" not in marks
    ] == []
    assert "strategies/test_microbatch.py::test_batches_in_parallel_lose_nothing" in core


def test_a_crash_a_concurrent_writer_and_the_demo_are_in_the_core() -> None:
    assert {
        "failures/test_crashes.py::test_a_process_that_is_killed_at_any_step",
        "publication/test_other_writers.py::test_a_commit_while_a_batch_is_loaded_stays",
        "test_integration_project.py::test_five_releases_end_in_the_expected_table",
    } <= _core().keys()
