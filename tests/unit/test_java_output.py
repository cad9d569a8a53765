"""What Spark's Java writes, and what of it is told when it does not start."""

import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.sparkevolve.errors import SparkStartError
from dbt.adapters.sparkevolve.spark import java_output
from dbt.adapters.sparkevolve.spark.java_output import JavaOutput, is_users_own, why_ended

UNRESOLVED = """\
WARNING: Using incubator modules: jdk.incubator.vector
:: loading settings :: url = jar:file:/ivysettings.xml
no.such#thing added as a dependency
		module not found: no.such#thing;1
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: no.such#thing;1: not found]
	at org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:539)
	at org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)"""


def test_why_a_jar_is_missing_is_told() -> None:
    text = SparkStartError(why_ended(UNRESOLVED.splitlines())).msg
    first, second = text.splitlines()
    # It may as well be a version that nobody has made.
    assert second.startswith("No Maven repository that it has reached has this jar. See whether `spark.jars.")
    assert first == "Spark did not start: [unresolved dependency: no.such#thing;1: not found]"
    assert second.endswith("it downloads its jars once, and then needs no network for them.")


def test_why_java_did_not_start_is_told() -> None:
    lines = ["Using Spark's default log4j profile: x", "Error occurred during initialization of VM", "Small"]
    assert SparkStartError(why_ended(lines)).msg == (
        "Spark did not start: Error occurred during initialization of VM\nSmall\n"
        "The settings of `spark_config` in the profile are what it was started with."
    )
    assert SparkStartError("").msg.startswith("Spark did not start: its Java said nothing\n")


def test_all_that_a_process_writes_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds, on both of its outputs, and with secrets in it."""
    logged: list[str] = []
    monkeypatch.setattr(java_output.logger, "debug", logged.append)
    watched: list[str] = []
    output = JavaOutput(watched.append)
    output.begin()
    code = "import sys\nfor n in range(9000): print('line', n)\nprint('password=hunter2', file=sys.stderr)"
    with subprocess.Popen([sys.executable, "-c", code], **output.popen) as process:
        output.started()
        assert process.wait() == 0
    assert output.last_words().splitlines()[-1].startswith("password=")
    assert len(watched) == 9001
    assert logged[0] == "line 0"
    assert not any("hunter2" in line for line in [*logged, output.last_words()])


def test_who_says_what_is_logged_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    home = str(tmp_path)
    assert not is_users_own({"spark.log.level": "ERROR"}, home)
    assert is_users_own({"spark.log.level": "info"}, home)
    assert is_users_own({"spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=x"}, home)
    (tmp_path / "log4j2.properties").write_text("")
    assert not is_users_own({}, home)
    monkeypatch.setenv("SPARK_CONF_DIR", home)
    assert is_users_own({}, home)
