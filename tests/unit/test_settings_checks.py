"""Settings with which Spark does not start, or starts without what they name."""

from pathlib import Path

import pytest

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.spark.settings_checks import check_settings


def refused(settings: dict[str, object]) -> str:
    with pytest.raises(ProfileError) as raised:
        check_settings(settings, "4.1.4")
    assert raised.value.setting == "spark_config"
    return str(raised.value.msg)


@pytest.mark.parametrize("said", ["2g", "2G", "2048m", "460800k", "1t", "450m", "1073741824"])
def test_memory_that_java_takes(said: str) -> None:
    check_settings({"spark.driver.memory": said}, "4.1.4")


@pytest.mark.parametrize("said", ["lots", "2gb", "2 g", "-1g", "0g", "2.5g", ""])
def test_memory_that_java_does_not_take(said: str) -> None:
    assert refused({"spark.driver.memory": said}) == (
        f"`spark.driver.memory` in `spark_config` is {said!r}: Java takes a whole number with k, m, g or t "
        "behind it, such as 2g."
    )


def test_memory_that_yaml_has_read_as_a_number() -> None:
    check_settings({"spark.driver.memory": 1073741824}, "4.1.4")
    # To Java these are bytes.
    assert refused({"spark.driver.memory": 512}) == (
        "`spark.driver.memory` in `spark_config` is '512', and Spark does not start with less than 450m."
    )


@pytest.mark.parametrize("said", ["449m", "460799k", "1k", "471859199"])
def test_memory_that_is_too_little_for_spark(said: str) -> None:
    assert refused({"spark.driver.memory": said}) == (
        f"`spark.driver.memory` in `spark_config` is {said!r}, and Spark does not start with less than 450m."
    )


def test_a_jar_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "a b.jar"
    there.touch()
    elsewhere = "https://h/c.jar, s3://b/d.jar,hdfs:///e.jar"
    # Spark reads what has `file:` before it as an address.
    fine = f"{there} , a b.jar,file://{there},{there.as_uri()},{tmp_path}/*.jar, ,{elsewhere}"
    check_settings({"spark.jars": fine}, "4.1.4")
    for lacking in ("nowhere.jar", "/no/where.jar", "file:///no/where.jar"):
        assert refused({"spark.jars": f"{fine},{lacking}"}) == (
            f"`spark.jars` in `spark_config` names {lacking}, and there is no such file. A path that does "
            f"not begin with / begins in the folder that dbt is run in, here {tmp_path}."
        )


def test_iceberg_s_runtime_is_the_one_for_this_spark(tmp_path: Path) -> None:
    fitting = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13"
    check_settings({"spark.jars.packages": f"a:b:1,{fitting}:1.11.0"}, "4.1.4")
    older = "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0"
    assert refused({"spark.jars.packages": f"a:b:1,{older}"}) == (
        "`spark.jars.packages` in `spark_config` has iceberg-spark-runtime-3.5_2.12, Iceberg's runtime for "
        f"Spark 3.5, and this is Spark 4.1.4. Name {fitting}:1.12.0, or leave it out: it is what a session "
        "gets by itself."
    )
    jar = tmp_path / "iceberg-spark-runtime-4.0_2.13-1.11.0.jar"
    jar.touch()
    assert "has iceberg-spark-runtime-4.0_2.13, Iceberg's runtime for Spark 4.0" in refused(
        {"spark.jars": str(jar)}
    )
