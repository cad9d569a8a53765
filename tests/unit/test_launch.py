"""Settings that spark-submit reads from a file which nobody else can read."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.sparkevolve.spark.launch import private_file, private_submit_args, properties_text

HOME = "/opt/spark"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)


def submitted(config: dict[str, str], home: str = HOME) -> tuple[list[str], str]:
    """Return spark-submit's arguments, and what the file says that they begin with."""
    with private_submit_args(config, home):
        option, path, *rest = os.environ["PYSPARK_SUBMIT_ARGS"].split(" ")
        assert option == "--properties-file"
        return rest, Path(path).read_text(encoding="utf-8")


def test_the_settings_are_in_the_file_and_not_among_the_arguments() -> None:
    assert submitted({"spark.a": "b c"}) == (["pyspark-shell"], "spark.a=b\\u0020c\n")
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ


def test_arguments_of_the_user_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.a=1 pyspark-shell")
    assert submitted({"spark.b": "2"}) == (["--conf", "spark.a=1", "pyspark-shell"], "spark.b=2\n")
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--conf spark.a=1 pyspark-shell"


def test_the_defaults_of_spark_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.a 1")
    assert submitted({"spark.b": "2"}, str(tmp_path))[1] == "spark.a 1\nspark.b=2\n"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert submitted({"spark.b": "2"}, str(tmp_path))[1] == "spark.b=2\n"


@pytest.mark.parametrize("form", ["--properties-file {}", "--properties-file={}"])
def test_a_file_of_the_user_takes_the_place_of_the_defaults(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.conf").write_text("spark.a 1\n")
    option = form.format(tmp_path / "mine.conf")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{option} --verbose pyspark-shell")
    assert submitted({"spark.b": "2"}) == (["--verbose", "pyspark-shell"], "spark.a 1\n\nspark.b=2\n")


@pytest.mark.parametrize("in_memory", [True, False])
def test_nobody_else_can_read_the_file_and_it_goes(
    in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create")
    elif not hasattr(os, "memfd_create"):
        pytest.skip("a system without files in memory")
    with private_file("x=é\n") as (path, fds):
        assert Path(path).read_text(encoding="utf-8") == "x=é\n"
        assert Path(path).read_text(encoding="utf-8") == "x=é\n", "the launcher reads it, and then Spark"
        assert len(fds) == in_memory
        if not in_memory:
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            assert stat.S_IMODE(os.stat(Path(path).parent).st_mode) == 0o700
        assert len(list(tmp_path.iterdir())) == (not in_memory)
    assert list(tmp_path.iterdir()) == []
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


def test_where_no_file_in_memory_is_allowed_it_is_in_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(name: str) -> int:
        raise PermissionError(name)

    monkeypatch.setattr(os, "memfd_create", denied, raising=False)
    with private_file("x=y\n") as (path, fds):
        assert Path(path).read_text(encoding="utf-8") == "x=y\n"
        assert (fds, stat.S_IMODE(os.stat(path).st_mode)) == ((), 0o600)
    assert not Path(path).exists()


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_a_property_file_has_one_plain_line_for_each_setting(config: dict[str, str]) -> None:
    lines = properties_text(config).splitlines()
    read = {}
    for line in lines:
        assert line.isascii()
        key, value = line.split("=")
        units = [side.encode().decode("unicode_escape") for side in (key, value)]
        # Java joins the two halves of a character as it reads them.
        read.update({tuple(unit.encode("utf-16-be", "surrogatepass") for unit in units): None})
    expected = [
        tuple(side.encode("utf-16-be", "surrogatepass") for side in setting) for setting in config.items()
    ]
    assert list(read) == expected
