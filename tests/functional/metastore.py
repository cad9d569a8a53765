"""Run a real Hive metastore: one of Hive 2.3 from an installed pyspark, or one of Hive 4 from Maven Central.

pyspark's wheel ships the metastore's jars and Derby, for Spark's own use; Hive's server starts from them. A
server keeps its tables in a Derby database inside the given directory and listens on 127.0.0.1 only.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from pyiceberg.catalog.hive import HiveCatalog

from dbt.adapters.sparkevolve.iceberg.capabilities import Kind
from dbt.adapters.sparkevolve.iceberg.metastore import Connections
from tests.functional.servers import HOST, Server, ServerProcess, free_port, java
from tests.functional.thrift_server import installed_spark_home
from tests.printed_profiles import as_printed

# Hive's server makes its other tables by itself, and expects its operator to have made those of the locks.
LOCK_TABLES = """
create table TXNS (TXN_ID bigint primary key, TXN_STATE char(1) not null, TXN_STARTED bigint not null,
  TXN_LAST_HEARTBEAT bigint not null, TXN_USER varchar(128) not null, TXN_HOST varchar(128) not null,
  TXN_AGENT_INFO varchar(128), TXN_META_INFO varchar(128), TXN_HEARTBEAT_COUNT integer);
create table TXN_COMPONENTS (TC_TXNID bigint references TXNS (TXN_ID), TC_DATABASE varchar(128) not null,
  TC_TABLE varchar(128), TC_PARTITION varchar(767), TC_OPERATION_TYPE char(1) not null);
create table HIVE_LOCKS (HL_LOCK_EXT_ID bigint not null, HL_LOCK_INT_ID bigint not null, HL_TXNID bigint,
  HL_DB varchar(128) not null, HL_TABLE varchar(128), HL_PARTITION varchar(767),
  HL_LOCK_STATE char(1) not null, HL_LOCK_TYPE char(1) not null, HL_LAST_HEARTBEAT bigint not null,
  HL_ACQUIRED_AT bigint, HL_USER varchar(128) not null, HL_HOST varchar(128) not null,
  HL_HEARTBEAT_COUNT integer, HL_AGENT_INFO varchar(128), HL_BLOCKEDBY_EXT_ID bigint,
  HL_BLOCKEDBY_INT_ID bigint, primary key (HL_LOCK_EXT_ID, HL_LOCK_INT_ID));
create table NEXT_LOCK_ID (NL_NEXT bigint not null);
insert into NEXT_LOCK_ID values (1);
create table AUX_TABLE (MT_KEY1 varchar(128) not null, MT_KEY2 bigint not null, MT_COMMENT varchar(255),
  primary key (MT_KEY1, MT_KEY2));
create table WRITE_SET (WS_DATABASE varchar(128) not null, WS_TABLE varchar(128) not null,
  WS_PARTITION varchar(767), WS_TXNID bigint not null, WS_COMMIT_ID bigint not null,
  WS_OPERATION_TYPE char(1) not null);
"""
# What Hive 4 has beside or instead.
LOCK_TABLES_OF_HIVE_4 = """
alter table TXNS add column TXN_TYPE integer;
alter table TXN_COMPONENTS add column TC_WRITEID bigint;
create table TXN_LOCK_TBL (TXN_LOCK bigint not null);
insert into TXN_LOCK_TBL values (1);
create table MIN_HISTORY_LEVEL (MHL_TXNID bigint primary key, MHL_MIN_OPEN_TXNID bigint not null);
create table COMPLETED_TXN_COMPONENTS (CTC_TXNID bigint not null, CTC_DATABASE varchar(128) not null,
  CTC_TABLE varchar(256), CTC_PARTITION varchar(767),
  CTC_TIMESTAMP timestamp default current_timestamp not null,
  CTC_WRITEID bigint, CTC_UPDATE_DELETE char(1) not null);
create table TXN_TO_WRITE_ID (T2W_TXNID bigint not null, T2W_DATABASE varchar(128) not null,
  T2W_TABLE varchar(256) not null, T2W_WRITEID bigint not null);
create table NEXT_WRITE_ID (NWI_DATABASE varchar(128) not null, NWI_TABLE varchar(256) not null,
  NWI_NEXT bigint not null);
create table COMPACTION_QUEUE (CQ_ID bigint primary key, CQ_DATABASE varchar(128) not null,
  CQ_TABLE varchar(128) not null, CQ_PARTITION varchar(767));
create table COMPLETED_COMPACTIONS (CC_ID bigint primary key, CC_DATABASE varchar(128) not null,
  CC_TABLE varchar(128) not null, CC_PARTITION varchar(767));
create table MATERIALIZATION_REBUILD_LOCKS (MRL_TXN_ID bigint primary key, MRL_DB_NAME varchar(128) not null,
  MRL_TBL_NAME varchar(256) not null, MRL_LAST_HEARTBEAT bigint not null);
"""
_HIVE_4 = Path(__file__).with_name("hive_4.xml")


class HiveMetastore(Server):
    """A metastore as a child process; use it as a context manager, in a thread that outlives it."""

    lock_tables = LOCK_TABLES
    further_settings: Mapping[str, str] = {
        # The pools that it knows are not among pyspark's jars.
        "datanucleus.connectionPoolingType": "NONE",
    }

    def __init__(self, work_dir: Path) -> None:
        """Keep the folder; nothing runs before the context is entered."""
        self.work_dir = work_dir.resolve()
        self.port = 0
        self._process: ServerProcess | None = None

    @staticmethod
    def can_run() -> bool:
        """Tell whether pyspark ships what is needed; 3.5 lacks Derby's tools."""
        return bool(list((installed_spark_home() / "jars").glob("derbytools-*.jar")))

    @property
    def uri(self) -> str:
        """Its address."""
        return f"thrift://{HOST}:{self.port}"

    def client(self) -> Connections:
        """Return a way to it past Iceberg: a context manager that opens a connection."""

        def connect(uri: str) -> Any:
            return HiveCatalog._create_hive_client({"uri": uri})

        return Connections([self.uri], connect, takes_locks=True)

    @property
    def properties(self) -> dict[str, Any]:
        """The profile's properties of it: those of the page, with a warehouse in a folder."""
        return as_printed(Kind.HIVE.value, uri=self.uri, warehouse=f"file://{self.work_dir}/warehouse")

    def __enter__(self) -> "HiveMetastore":
        """Start it and wait until it accepts connections."""
        self.port = free_port()
        database = f"jdbc:derby:;databaseName={self.work_dir}/metastore;create=true"
        settings = {
            "javax.jdo.option.ConnectionURL": database,
            "datanucleus.schema.autoCreateAll": "true",
            "hive.async.log.enabled": "false",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": f"file://{self.work_dir}/warehouse",
            **self.further_settings,
        }
        properties = "".join(
            f"<property><name>{name}</name><value>{escape(value)}</value></property>"
            for name, value in settings.items()
        )
        (self.work_dir / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
        (self.work_dir / "locks.sql").write_text(f"connect '{database}';\n{self.lock_tables}exit;\n")
        log = self.work_dir / "metastore.log"
        options = [
            "-Xmx512m",
            f"-Djava.io.tmpdir={self.work_dir}",
            f"-Dderby.system.home={self.work_dir}",
            *(
                f"--add-opens=java.base/{package}=ALL-UNNAMED"
                for package in ("java.lang", "java.net", "java.util", "java.util.concurrent")
            ),
            "-cp",
            os.pathsep.join([str(self.work_dir), *self.class_path()]),
        ]
        with log.open("wb") as output:
            subprocess.run(
                [java(), *options, "org.apache.derby.tools.ij", str(self.work_dir / "locks.sql")],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.work_dir,
                check=True,
                timeout=60,
            )
        command = [java(), *options, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port)]
        self._process = ServerProcess(command, self.port, log)
        return self

    def class_path(self) -> list[str]:
        """Return the jars of the server and of its database."""
        return [f"{installed_spark_home()}/jars/*"]

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.stop()


class Hive4Metastore(HiveMetastore):
    """A metastore of Hive 4, with the Hadoop and the Derby of an installed pyspark."""

    lock_tables = LOCK_TABLES + LOCK_TABLES_OF_HIVE_4
    further_settings: Mapping[str, str] = {
        "datanucleus.connectionPoolingType": "HikariCP",
        "metastore.thrift.bind.host": HOST,
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "metastore.housekeeping.threads.on": "false",
        "metastore.metadata.transformer.class": " ",
        "metastore.event.db.notification.api.auth": "false",
    }

    @staticmethod
    def can_run() -> bool:
        """Tell whether Maven is there, which brings the server."""
        return HiveMetastore.can_run() and shutil.which("mvn") is not None

    def class_path(self) -> list[str]:
        """Return Maven's jars without their old Hadoop and Derby, and pyspark's of those."""
        found = self.work_dir / "class_path.txt"
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(_HIVE_4), "dependency:build-classpath"]
        subprocess.run([*command, f"-Dmdep.outputFile={found}"], check=True, timeout=600)
        jars = installed_spark_home() / "jars"
        names = ("hadoop-client-", "derby", "commons-")
        own = [jar for name in names for jar in sorted(jars.glob(f"{name}*.jar"))]
        return [*found.read_text().strip().split(os.pathsep), *map(str, own)]
