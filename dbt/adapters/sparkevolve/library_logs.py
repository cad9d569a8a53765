"""What libraries below this one log by themselves: it goes to dbt's log file; errors say it in our words."""

import logging
import os
import sys
from pathlib import Path

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.event_handler import DbtEventLoggingHandler

from dbt.adapters.sparkevolve.redaction import clean

logger = AdapterLogger("SparkEvolve")

# Those that reach catalogs and servers. What they warn of would go to stderr: a library that dbt imports lets
# the root of all loggers write there.
_LIBRARIES = ("thrift", "pyhive", "pyiceberg", "sqlalchemy", "botocore", "py4j")
# Those whose records dbt-spark makes errors of dbt's as it is imported, and the variable that says from
# which level on.
_OF_DBT_SPARK = ("thrift.transport", "thrift.protocol", "pyhive.hive")
_LEVEL = "DBT_SPARK_LOG_LEVEL"


class _ToLogFile(logging.Handler):
    """Makes a debug event of dbt's of each record."""

    def emit(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler``."""
        try:
            logger.debug(clean(f"{record.name}: {self.format(record)}"))
        except Exception:
            # As Python ends, py4j says of each object that it cannot tell Java so, and dbt logs no more.
            if not sys.is_finalizing():
                self.handleError(record)


class _OfOthers(logging.Filter):
    """Leaves to the root of all loggers what others log by it than py4j, whose records there have no name."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See ``logging.Filter``."""
        if Path(record.pathname).parent.name != "py4j":
            return True
        _ToLogFile().handle(record)
        return False


def keep_in_log_file() -> None:
    """Let what the libraries log go to dbt's log file, and no longer to the console.

    As dbt does it with those that an adapter names to it, nobody else gets it.

    Of what dbt-spark has been told to show (DBT_SPARK_LOG_LEVEL) nothing is taken away.
    """
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        if not any(isinstance(handler, _ToLogFile) for handler in library.handlers):
            library.addHandler(_ToLogFile())
        library.propagate = False
    root = logging.getLogger()
    if not any(isinstance(each, _OfOthers) for each in root.filters):
        root.addFilter(_OfOthers())
    for name in _OF_DBT_SPARK if _LEVEL not in os.environ else ():
        part = logging.getLogger(name)
        for handler in [one for one in part.handlers if isinstance(one, DbtEventLoggingHandler)]:
            part.removeHandler(handler)
        part.propagate = True
