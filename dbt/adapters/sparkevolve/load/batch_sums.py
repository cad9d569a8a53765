"""What all batches of a microbatch model have done together, which dbt itself does not say."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note

from dbt.adapters.sparkevolve.counts import counted
from dbt.adapters.sparkevolve.load.results import Response, together
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation


@dataclass
class _Model:
    """A model of which batches may be running."""

    entered: int = 0
    relation: str = ""
    as_json: bool = False
    batches: list[Response] = field(default_factory=list)


class BatchSums:
    """Sums of the models that are running.

    dbt holds a connection of the model's name for as long as the model runs, and others of the same name for
    each batch meanwhile: the model is done when none is left.
    """

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}
        self._lock = threading.Lock()

    @contextmanager
    def during(self, unique_id: str) -> Generator[None, None, None]:
        """Say at the end what the batches have done, if there were several."""
        with self._lock:
            self._models.setdefault(unique_id, _Model()).entered += 1
        try:
            yield
        finally:
            with self._lock:
                model = self._models[unique_id]
                model.entered -= 1
                if not model.entered:
                    del self._models[unique_id]
            if not model.entered and len(model.batches) > 1:
                _tell(unique_id, model)

    def add(
        self, unique_id: str, relation: SparkEvolveRelation, response: Response, as_json: bool = False
    ) -> None:
        """Take note of a batch that is done.

        Args:
            unique_id: dbt's id of the model.
            relation: its table.
            response: what the batch has done.
            as_json: whether dbt's log is JSON.
        """
        with self._lock:
            model = self._models.setdefault(unique_id, _Model())
            model.relation, model.as_json = str(relation), as_json
            model.batches.append(response)


def _tell(unique_id: str, model: _Model) -> None:
    total = together(model.batches)
    number = len(model.batches)
    text = f"{model.relation}: {counted(number, 'batch', 'batches')}, {str(total).removeprefix('OK ')}"
    data = {"unique_id": unique_id, "batches": number, "adapter_response": total.data()}
    fire_event(Note(msg=json.dumps(data) if model.as_json else text))
