"""Commits to Nessie, which wants more said of a new schema than PyIceberg says."""

import json
from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from dbt.adapters.sparkevolve.iceberg.capabilities import is_nessie


def complete_commits(catalog: Any) -> None:
    """Have PyIceberg's requests to a REST catalog say what Nessie wants, if it is one.

    Args:
        catalog: PyIceberg's catalog.
    """
    if is_nessie(catalog.properties):
        catalog._session.mount(catalog.uri, _Completed())


class _Completed(HTTPAdapter):
    """Sends with each new schema the highest id that its table has had, as Iceberg's Java library does.

    Without, Nessie 0.99 answers "400 Bad Request", as others before a later version (projectnessie/nessie
    #11397). The specification calls that number optional, and deprecated.
    """

    def send(self, request: PreparedRequest, *args: Any, **how: Any) -> Response:
        """Send a request, see ``requests``."""
        body = request.body
        if request.method == "POST" and isinstance(body, bytes) and b'"add-schema"' in body:
            request.body = completed(body)
            request.headers["Content-Length"] = str(len(request.body))
        return super().send(request, *args, **how)


def completed(body: bytes) -> bytes:
    """Return a request to change a table in which each new schema has the table's highest id of a column."""
    said = json.loads(body)
    known = [
        requirement["last-assigned-field-id"]
        for requirement in said.get("requirements", ())
        if requirement.get("type") == "assert-last-assigned-field-id"
    ]
    for update in said.get("updates", ()):
        if update.get("action") == "add-schema":
            update.setdefault("last-column-id", max([*known, *_ids(update["schema"])], default=0))
    return json.dumps(said).encode()


def _ids(type_: Any) -> list[int]:
    """Return the ids of all columns of a schema, and of what is inside of them."""
    if isinstance(type_, list):
        return [id_ for each in type_ for id_ in _ids(each)]
    if not isinstance(type_, dict):
        return []
    own = [type_[name] for name in ("id", "element-id", "key-id", "value-id") if name in type_]
    inside = (type_.get(name) for name in ("fields", "type", "element", "key", "value"))
    return own + [id_ for each in inside for id_ in _ids(each)]
