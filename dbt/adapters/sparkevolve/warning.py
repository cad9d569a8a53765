"""Warnings: how they look on the console, and whether dbt is to take them for errors."""

from dbt.adapters.events import types
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.contextvars import get_node_info
from dbt_common.events.event_manager_client import get_event_manager
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.exceptions.events import EventCompilationError
from dbt_common.ui import warning_tag

from dbt.adapters.sparkevolve.errors import SparkEvolveError

# The event of `exceptions.warn`, by which `warn_error_options` name it.
_OF_MACROS = "JinjaLogWarning"
_NAME = "SparkEvolve"


class AdapterEventWarning(types.AdapterEventWarning):
    """dbt's event of the same name, which looks like any other line of the adapter, marked as a warning."""

    def message(self) -> str:
        """Return the line of the log."""
        return warning_tag(super().message())


def are_errors() -> bool:
    """Tell whether dbt is to take for errors what a macro warns of (`--warn-error`)."""
    manager = get_event_manager()
    return manager.warn_error or manager.warn_error_options.errors(_OF_MACROS)


def marked(text: str) -> str:
    """Return a warning as dbt's own look on the console; its macro `exceptions.warn` does not mark it."""
    return warning_tag(text)


def warn(text: str) -> None:
    """Warn from outside of a macro, of the profile and of what comes with it.

    Raises:
        EventCompilationError: dbt's flag `require_all_warnings_handled_by_warn_error` is set, and warnings
            are errors.
    """
    fire_event(AdapterEventWarning(name=_NAME, base_msg=text, args=[], node_info=get_node_info()))


def warn_of_rest(text: str) -> None:
    """Warn of something that could not be cleaned up: no error, whatever dbt's flags say.

    It comes when a node has ended, or in the handling of another error.
    """
    try:
        warn(text)
    except EventCompilationError:
        AdapterLogger(_NAME).info(marked(text))


def not_removed(what: str, exc: Exception) -> str:
    """Return what to warn of something that could not be removed.

    Args:
        what: what it is, as the beginning of a sentence.
        exc: why. An error of ours says itself what could not be removed.
    """
    said = exc.msg if isinstance(exc, DbtRuntimeError) else str(exc)
    is_said = isinstance(exc, SparkEvolveError) and exc.names_leftover
    return said if is_said else f"{what} could not be removed: {said}"
