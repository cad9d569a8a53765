"""No secret of a profile reaches a command line, which every user of a machine can read, or a text."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.harness import Scenario

# Starts a session while a thread reads the command lines of all processes, and prints what it saw as JSON.
STARTS = """
    import glob, json, os, threading
    from pathlib import Path
    from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
    from dbt.adapters.sparkevolve.spark.session import SESSIONS

    secrets, done, seen, java = json.loads(os.environ["SECRETS"]), threading.Event(), set(), set()

    def look():
        while not done.is_set():
            for path in glob.glob("/proc/[0-9]*/cmdline"):
                try:
                    line = Path(path).read_bytes().decode(errors="replace")
                except OSError:
                    continue
                if "dbt-sparkevolve-test-mark" in line or "SparkSubmit" in line:
                    java.add(line)
                seen.update(s for s in secrets.values() if s in line)

    thread = threading.Thread(target=look)
    thread.start()
    properties = {
        "type": "sql", "uri": f"postgresql://me:{secrets['url']}@127.0.0.1:1/db", "warehouse": "file:///tmp/w",
        "s3.secret-access-key": secrets["s3"], "credential": secrets["rest"],
    }
    spark_config = {
        "spark.hadoop.fs.s3a.secret.key": secrets["hadoop"],
        "spark.driver.memory": "612m",
        "spark.ui.enabled": "false",
        "spark.app.name": "dbt-sparkevolve-test-mark",
    }
    lake = resolve("lake", properties, Path("."))
    session = SESSIONS.get(lake, spark_config, {"spark.sql.x.token": secrets["parameter"]}, Path("."))
    done.set()
    thread.join()
    context = session.sparkContext
    prefix = "spark.sql.catalog.lake."
    print(json.dumps({
        "seen": sorted(seen),
        "heap": sorted({word for line in java for word in line.split("\\0") if word.startswith("-Xmx612")}),
        "values": {
            "url": session.conf.get(prefix + "jdbc.password"),
            "s3": session.conf.get(prefix + "s3.secret-access-key"),
            "rest": session.conf.get(prefix + "credential"),
            "hadoop": context._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
            "parameter": session.conf.get("spark.sql.x.token"),
        },
        "defaults": context.getConf().get("spark.from.defaults", ""),
        "own": context.getConf().get("spark.own", ""),
    }))
"""


def test_no_secret_is_on_a_command_line_while_a_session_starts(method: str, tmp_path: Path) -> None:
    if method != "session":
        pytest.skip("a server is started by its operator")
    secrets = {
        "url": "pw-of-the-url-1",
        "s3": 'odd \\ "value": é😀 = # 2',
        "rest": "client:pw-of-rest-3",
        "hadoop": " pw of hadoop 4 ",
        "parameter": "pw-of-a-parameter-5",
    }
    (tmp_path / "conf").mkdir()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.from.defaults yes\nspark.own defaults\n")
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(STARTS)],
        cwd=tmp_path,
        env={
            **os.environ,
            "SECRETS": json.dumps(secrets),
            "SPARK_CONF_DIR": str(tmp_path / "conf"),
            "TMPDIR": str(tmp_path / "tmp"),
            "PYSPARK_SUBMIT_ARGS": "--conf spark.own=arguments pyspark-shell",
        },
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["seen"] == []
    assert found["values"] == secrets
    assert found["heap"] == ["-Xmx612m"]
    assert (found["defaults"], found["own"]) == ("yes", "arguments")


def test_no_text_of_a_run_shows_a_secret(scenario_factory: Callable[..., Scenario], method: str) -> None:
    """A statement, a model and an option quote the secret, as a library's text would; dbt logs all of it."""
    if method != "session":
        pytest.skip("the texts are the same")
    scenario = scenario_factory(password="open sesame 1", token="t0ken")
    scenario.writes_artifacts = True
    scenario.model(
        "select cast(raise_error('no entry: open sesame 1, open%20sesame%201, t0ken') as int) as id"
    )
    run = scenario.fail("--log-level-file", "debug")
    assert "no entry: *****, *****, *****" in run.message
    results = (scenario.folder / "target" / "run_results.json").read_text()
    assert "no entry: *****, *****, *****" in results
    log = (scenario.folder / "logs" / "dbt.log").read_text()
    assert "no entry: *****, *****, *****" in log
    for secret in ("open sesame 1", "open%20sesame%201", "t0ken"):
        assert secret not in log
        assert secret not in run.message
