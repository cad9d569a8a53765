"""Files that take the place of others at once."""

import os
from pathlib import Path

import pytest

from dbt.adapters.sparkevolve.files import replace_file


def test_a_new_file_and_its_folder_are_made_and_an_old_one_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / ("n" * 250 + ".html")
    replace_file(path, "one")
    replace_file(path, "half of \ud83d, \U0001f984")
    assert path.read_bytes() == b"half of \\ud83d, \xf0\x9f\xa6\x84"
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_what_a_link_leads_to_is_written(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    replace_file(link, "one")
    assert (link.is_symlink(), (tmp_path / "file").read_text()) == (True, "one")


def test_what_is_no_file_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    before = sorted(tmp_path.iterdir())
    for name, reason in (
        ("", "Is a directory"),
        ("pipe", "Not a regular file"),
        ("file/page.html", "File exists"),
        ("n" * 300, "File name too long"),
        ("a\0b", "embedded null byte"),
        ("circle", "Symlink loop"),
        ("/", "Is a directory"),
        ("/dev/null", "Not a regular file"),
    ):
        with pytest.raises(OSError, match=reason):
            replace_file(tmp_path / name, "one")
    assert sorted(tmp_path.iterdir()) == before
    assert Path("/dev/null").is_char_device()


def test_an_interruption_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    replace_file(path, "old")

    def interrupted(draft: Path, place: Path) -> None:
        assert draft.read_text() == "new"
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_file(path, "new")
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("page.html", "old")]
