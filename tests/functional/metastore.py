"""Run a real Hive metastore from an installed pyspark.

pyspark's wheel ships the metastore's jars and Derby, for Spark's own use; Hive's server starts from them. It
keeps its tables in a Derby database inside the given directory and listens on 127.0.0.1 only.
"""

import subprocess
from pathlib import Path
from xml.sax.saxutils import escape

from tests.functional.servers import HOST, Server, ServerProcess, free_port, java
from tests.functional.thrift_server import installed_spark_home

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


class HiveMetastore(Server):
    """A metastore as a child process; use it as a context manager, in a thread that outlives it."""

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

    def __enter__(self) -> "HiveMetastore":
        """Start it and wait until it accepts connections."""
        self.port = free_port()
        database = f"jdbc:derby:;databaseName={self.work_dir}/metastore;create=true"
        settings = {
            "javax.jdo.option.ConnectionURL": database,
            "datanucleus.schema.autoCreateAll": "true",
            # The pools that it knows are not among pyspark's jars.
            "datanucleus.connectionPoolingType": "NONE",
            "hive.async.log.enabled": "false",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": f"file://{self.work_dir}/warehouse",
        }
        properties = "".join(
            f"<property><name>{name}</name><value>{escape(value)}</value></property>"
            for name, value in settings.items()
        )
        (self.work_dir / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
        (self.work_dir / "locks.sql").write_text(f"connect '{database}';\n{LOCK_TABLES}exit;\n")
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
            f"{self.work_dir}:{installed_spark_home()}/jars/*",
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

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.stop()
