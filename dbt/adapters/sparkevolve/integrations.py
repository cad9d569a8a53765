"""dbt's ``catalogs.yml``: names of catalogs that the profile states, for ``catalog_name`` of a model.

What a catalog is stands in the profile, which alone reaches both Spark and PyIceberg. The file may repeat it,
and may not say anything else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.catalogs import (  # type: ignore[attr-defined]
    CatalogIntegration,
    CatalogIntegrationConfig,
    CatalogRelation,
)
from dbt.adapters.contracts.relation import RelationConfig

from dbt.adapters.sparkevolve.errors import CatalogNameError, CatalogsFileError
from dbt.adapters.sparkevolve.evolution.table_properties import property_text
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.settings import ICEBERG

# dbt's own name of the type, for which PyIceberg has another.
_OTHER_NAMES = {"iceberg_rest": "rest"}
_PARQUET = "parquet"


@dataclass
class RelationInCatalog:
    """What dbt hands to macros that ask for ``adapter.build_catalog_relation(model)``."""

    catalog_name: str | None
    table_format: str | None = ICEBERG
    external_volume: str | None = None
    file_format: str | None = None


class _Stated(CatalogIntegration):
    """A catalog that the profile states."""

    table_format = ICEBERG
    allows_writes = True

    def build_relation(self, config: RelationConfig) -> CatalogRelation:
        """Return where a model's table is."""
        return RelationInCatalog(self.name, self.table_format, self.external_volume, self.file_format)


class SqlCatalog(_Stated):
    """A SQL catalog."""

    catalog_type = "sql"


class HiveCatalog(_Stated):
    """A Hive metastore."""

    catalog_type = "hive"


class GlueCatalog(_Stated):
    """AWS Glue."""

    catalog_type = "glue"


class RestCatalog(_Stated):
    """A REST catalog, by PyIceberg's name of the type."""

    catalog_type = "rest"


class IcebergRestCatalog(_Stated):
    """A REST catalog, by dbt's name of the type."""

    catalog_type = "iceberg_rest"


INTEGRATIONS = (SqlCatalog, HiveCatalog, GlueCatalog, RestCatalog, IcebergRestCatalog)


def check(config: CatalogIntegrationConfig, stated: Sequence[CatalogSettings]) -> None:
    """See whether an entry of ``catalogs.yml`` says what the profile says.

    Args:
        config: the active write integration of a catalog, under the catalog's name.
        stated: the catalogs of the profile.

    Raises:
        CatalogsFileError: it does not.
    """
    integration = str(config.catalog_name or config.name)
    found = [settings for settings in stated if settings.name == config.name]
    if not found:
        names = ", ".join(f"`{settings.name}`" for settings in stated)
        raise CatalogsFileError(
            config.name, integration, f"the profile states {names} only: state it under `catalogs:` there"
        )
    for problem in _contradictions(config, found[0]):
        raise CatalogsFileError(config.name, integration, problem)


def _contradictions(config: CatalogIntegrationConfig, settings: CatalogSettings) -> Iterator[str]:
    place = f"`{settings.place.setting}` of the profile"
    said = str(config.catalog_type).lower()
    kind = _OTHER_NAMES.get(said, said)
    if kind != settings.kind:
        yield f"its `catalog_type` is {config.catalog_type!r}, and the type in {place} is {settings.kind!r}"
    table_format = config.table_format
    if table_format is not None and str(table_format).lower() != ICEBERG:
        yield f"its `table_format` is {table_format!r}, and all tables of an Iceberg catalog are {ICEBERG!r}"
    file_format = getattr(config, "file_format", None)
    if file_format is not None and str(file_format).lower() not in (_PARQUET, ICEBERG):
        yield (
            f"its `file_format` is {file_format!r}, and new tables have Parquet files; a model sets another "
            "one as `write.format.default` in `tblproperties`"
        )
    warehouse = settings.pyiceberg.get("warehouse")
    if config.external_volume is not None and config.external_volume != warehouse:
        yield f"its `external_volume` is not the `warehouse` in {place}"
    # PyIceberg may get a property under another name, or with more in it.
    known = {**settings.pyiceberg, **settings.stated}
    yield from _different(config.adapter_properties or {}, known, place)


def _different(said: Mapping[str, Any], known: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, value in said.items():
        if name not in known:
            yield f"it has `{name}` in `adapter_properties`, which {place} has not: state it there"
        elif _text(value) != _text(known[name]):
            # Either may be a secret.
            yield f"its `{name}` in `adapter_properties` is another one than in {place}"


def _text(value: Any) -> Any:
    """Return a property as a text, or a mapping of texts, as which the profile has it."""
    if isinstance(value, Mapping):
        return {str(key): _text(part) for key, part in value.items() if part is not None}
    return property_text(value)


def check_name(node: str, catalog_name: Any, database: str | None, stated: Sequence[str]) -> None:
    """See whether the catalog that a node asks for by ``catalog_name`` is one, and where it is built.

    Args:
        node: its id.
        catalog_name: what its configuration has under that name; None if nothing.
        database: where it is built.
        stated: the names of the catalogs that the profile states.

    Raises:
        CatalogNameError: it is none, or it is built elsewhere.
    """
    if catalog_name is None:
        return
    if catalog_name not in stated:
        raise CatalogNameError(
            node,
            str(catalog_name),
            f"the profile states {', '.join(map(repr, stated))} only: state it under `catalogs:` there",
        )
    if database != catalog_name:
        raise CatalogNameError(
            node,
            str(catalog_name),
            f"it would be built in {database!r}, which `database` or the macro `generate_database_name` "
            "says: leave one of the two out",
        )
