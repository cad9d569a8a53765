"""What each kind of catalog can do: one row a fact, with where it is known from. The one place that tells.

The kind follows from the profile's properties alone. A REST catalog says of some facts what it can do when it
is opened (`GET /v1/config`), which goes before the table: no question is asked for that.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Kind(Enum):
    """A kind of catalog, as `dbt debug` calls it."""

    SQL = "SQL"
    HIVE = "Hive metastore"
    GLUE = "Glue"
    REST = "REST"
    S3_TABLES = "Amazon S3 Tables by REST"
    GLUE_REST = "Glue by REST"
    GLUE_REST_S3_TABLES = "Glue by REST, for a bucket of S3 Tables"


class Purge(Enum):
    """Which way of dropping a table a catalog takes."""

    EITHER = "with its files or without"
    ALWAYS = "with its files only"
    NEVER = "without its files only"


class Names(Enum):
    """Which names of tables and schemas a catalog takes."""

    ANY = "any"
    NO_UPPER = "without upper-case letters"
    LOWER = "of lower-case letters, digits and underscores only"
    LOWER_BEGUN = "of lower-case letters, digits and underscores only, which begin with a letter or a digit"


class Origin(Enum):
    """How a fact is known."""

    SAID = "said by the server"
    DOCUMENTED = "documented"
    REPORTED = "reported by users"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Fact:
    """One thing that a catalog can or cannot do.

    Attributes:
        name: the attribute of ``Capabilities`` that has it.
        question: what it answers, for people.
        value: the answer.
        origin: how it is known.
        source: where it is written: a specification or a page of documentation, or empty.
    """

    name: str
    question: str
    value: Any
    origin: Origin
    source: str

    @property
    def answer(self) -> str:
        """The answer in words."""
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        return str(self.value.value) if isinstance(self.value, Enum) else str(self.value)

    @property
    def text(self) -> str:
        """The line that `dbt debug` prints."""
        return f"{self.question}: {self.answer}"

    def __str__(self) -> str:
        """Return the line of dbt's log file, which says how that is known."""
        known = f"{self.origin.value}: {self.source}" if self.source else self.origin.value
        return f"{self.text} ({known})"


_ICEBERG = "Iceberg's catalog of that kind in Spark"
_REST = "Iceberg REST catalog specification"
_S3_TABLES = "Amazon S3 User Guide, Accessing tables using the Amazon S3 Tables Iceberg REST endpoint"
_S3_NAMES = "Amazon S3 User Guide, Amazon S3 table bucket, table, and namespace naming rules"
_S3_DELETE = "Amazon S3 User Guide, Deleting an Amazon S3 table"
_GLUE_APIS = "AWS Glue Developer Guide, AWS Glue REST APIs for Apache Iceberg specifications"
_GLUE_LIMITS = (
    "AWS Glue Developer Guide, Considerations and limitations when using AWS Glue Iceberg REST Catalog APIs"
)
SKIPS_NAMES = "glue.skip-name-validation"
_HIVE_NAMES = "Hive, `MetaStoreUtils` and `ObjectStore`: names are kept in lower case"
_OF_AWS = (Kind.S3_TABLES, Kind.GLUE_REST, Kind.GLUE_REST_S3_TABLES)
_GLUE_NAMES = "AWS Glue Developer Guide, Table API: for Hive compatibility, names are lower-case"
_OF_GLUE = (Kind.GLUE_REST, Kind.GLUE_REST_S3_TABLES)


@dataclass(frozen=True)
class _Row:
    """One fact of all kinds.

    Attributes:
        question: what it answers.
        usual: the answer for the kinds that are not listed.
        source: where that is written; empty where it is assumed.
        others: the answer of other kinds, and where it is written.
        endpoint: the request of a REST catalog that the answer is about, if it is about one.
    """

    question: str
    usual: Any
    source: str
    others: Mapping[Kind, tuple[Any, str]]
    endpoint: str = ""


_TABLE = {
    "stages_creations": _Row(
        "makes a table with its rows in one commit",
        True,
        _ICEBERG,
        {
            Kind.REST: (True, _REST),
            Kind.S3_TABLES: (False, _S3_TABLES),
            **dict.fromkeys(_OF_GLUE, (False, _GLUE_APIS)),
        },
    ),
    "purge": _Row(
        "drops a table",
        Purge.EITHER,
        _ICEBERG,
        {
            Kind.REST: (Purge.EITHER, _REST),
            Kind.S3_TABLES: (Purge.ALWAYS, _S3_DELETE),
            Kind.GLUE_REST: (Purge.NEVER, _GLUE_APIS),
            # Glue keeps no files there, and S3 Tables lets nobody else delete them.
            Kind.GLUE_REST_S3_TABLES: (Purge.EITHER, ""),
        },
    ),
    "has_views": _Row(
        "has views",
        True,
        _ICEBERG,
        {
            Kind.GLUE: (False, _ICEBERG),
            # As Iceberg's own clients take it that are not told.
            Kind.REST: (False, _REST),
            Kind.S3_TABLES: (False, _S3_TABLES),
            **dict.fromkeys(_OF_GLUE, (False, _GLUE_LIMITS)),
        },
        "POST /v1/{prefix}/namespaces/{namespace}/views",
    ),
    "names": _Row(
        "takes names",
        Names.ANY,
        "",
        {
            Kind.HIVE: (Names.NO_UPPER, _HIVE_NAMES),
            # Any other name is not found by Spark, and made by PyIceberg in other letters.
            Kind.GLUE: (Names.LOWER, f"{_ICEBERG}, unless `{SKIPS_NAMES}` is true"),
            Kind.S3_TABLES: (Names.LOWER_BEGUN, _S3_NAMES),
            Kind.GLUE_REST: (Names.LOWER, _GLUE_NAMES),
            Kind.GLUE_REST_S3_TABLES: (Names.LOWER_BEGUN, _S3_NAMES),
        },
    ),
    "has_nested_schemas": _Row(
        "has schemas inside schemas",
        True,
        _ICEBERG,
        {
            Kind.HIVE: (False, _ICEBERG),
            Kind.GLUE: (False, _ICEBERG),
            Kind.REST: (True, _REST),
            Kind.S3_TABLES: (False, _S3_TABLES),
            **dict.fromkeys(_OF_GLUE, (False, "")),
        },
    ),
    "wants_location": _Row(
        "wants to be told where a new table is to be",
        False,
        "",
        {Kind.GLUE_REST: (True, "apache/iceberg issue 11921, duckdb/duckdb-iceberg issue 1128")},
    ),
    "renames": _Row(
        "renames a table",
        True,
        _ICEBERG,
        {
            Kind.REST: (True, _REST),
            Kind.S3_TABLES: (True, ""),
            Kind.GLUE_REST: (False, _GLUE_LIMITS),
            Kind.GLUE_REST_S3_TABLES: (False, _GLUE_LIMITS),
        },
        "POST /v1/{prefix}/tables/rename",
    ),
    "writes_metadata": _Row(
        "writes the metadata of format version 3 itself",
        False,
        _ICEBERG,
        dict.fromkeys((Kind.REST, *_OF_AWS), (True, _REST)),
    ),
    "reads_types": _Row(
        "reads the text of each column's type",
        False,
        _ICEBERG,
        {Kind.HIVE: (True, _ICEBERG)},
    ),
    "keeps_branches": _Row(
        "keeps branches of a table",
        True,
        _ICEBERG,
        dict.fromkeys((Kind.REST, *_OF_AWS), (True, _REST)),
    ),
}
_VIEWS_SUPPORTED = "view-endpoints-supported"
# What Nessie says of itself to those that ask for its configuration.
_IS_NESSIE = "nessie.is-nessie-catalog"
# Of each of AWS's partitions, for IPv4 and, where that is another one, for IPv6: somebody's own server may be
# called `glue`.
_DOMAINS_OF_AWS = (
    "amazonaws.com",
    "api.aws",
    "amazonaws.com.cn",
    "api.amazonwebservices.com.cn",
    "amazonaws.eu",
    "api.amazonwebservices.eu",
    "c2s.ic.gov",
    "api.aws.ic.gov",
    "sc2s.sgov.gov",
    "api.aws.scloud",
    "cloud.adc-e.uk",
    "api.cloud-aws.adc-e.uk",
    "csp.hci.ic.gov",
    "api.aws.hci.ic.gov",
)
_HOST_OF_AWS = re.compile(
    r"(?:[\w-]+\.)*(s3tables|glue)(?:-fips)?\.[\w-]+\.(?:vpce\.)?"
    rf"(?:{'|'.join(map(re.escape, _DOMAINS_OF_AWS))})\.?(?::\d+)?"
)
_FORMS = {
    Names.LOWER: re.compile("[a-z0-9_]+"),
    Names.LOWER_BEGUN: re.compile("[a-z0-9][a-z0-9_]*"),
}


@dataclass(frozen=True)
class Capabilities:
    """What one catalog can do.

    Attributes:
        kind: its kind.
        facts: all that is known of it, in one order.
    """

    kind: Kind
    facts: tuple[Fact, ...]

    def _of(self, name: str) -> Any:
        return next(fact.value for fact in self.facts if fact.name == name)

    @property
    def stages_creations(self) -> bool:
        """Whether a table comes into being with its rows, as CREATE TABLE AS SELECT has it."""
        return bool(self._of("stages_creations"))

    @property
    def purge(self) -> Purge:
        """Which way of dropping a table it takes."""
        found = self._of("purge")
        assert isinstance(found, Purge)
        return found

    @property
    def has_views(self) -> bool:
        """Whether it has views."""
        return bool(self._of("has_views"))

    @property
    def has_nested_schemas(self) -> bool:
        """Whether a schema can lie in another one."""
        return bool(self._of("has_nested_schemas"))

    @property
    def wants_location(self) -> bool:
        """Whether it makes a table only where the client says, and has no place for it of its own."""
        return bool(self._of("wants_location"))

    @property
    def renames(self) -> bool:
        """Whether a table can get another name."""
        return bool(self._of("renames"))

    @property
    def writes_metadata(self) -> bool:
        """Whether it writes the metadata of its tables, and PyIceberg only says what to change."""
        return bool(self._of("writes_metadata"))

    @property
    def reads_types(self) -> bool:
        """Whether it reads the text of each column's type, and refuses what it cannot read."""
        return bool(self._of("reads_types"))

    @property
    def keeps_branches(self) -> bool:
        """Whether a table can have branches beside the one that readers see."""
        return bool(self._of("keeps_branches"))

    @property
    def names(self) -> Names:
        """Which names tables and schemas can have."""
        found = self._of("names")
        assert isinstance(found, Names)
        return found

    @property
    def folds_names(self) -> bool:
        """Whether names that differ in case only are one, where any name is taken at all."""
        return self.names is Names.NO_UPPER

    def takes_name(self, name: str) -> bool:
        """Tell whether a table can have this name, and be found again by dbt, which compares letters."""
        if self.names is Names.NO_UPPER:
            return name == name.lower()
        form = _FORMS.get(self.names)
        return form is None or form.fullmatch(name) is not None

    def takes_schema(self, name: str) -> bool:
        """Tell whether a level of a schema can have this name: one in other letters is found as well."""
        return self.names is Names.NO_UPPER or self.takes_name(name)

    def is_said(self, name: str) -> bool:
        """Tell whether a fact of this name is known from the server itself."""
        return any(fact.name == name and fact.origin is Origin.SAID for fact in self.facts)


def kind_of(properties: Mapping[str, Any]) -> Kind:
    """Return the kind of the catalog that the profile's properties describe.

    AWS's two are told by what their requests are signed for, by their addresses, or by their warehouses.

    Args:
        properties: PyIceberg's properties of it.
    """
    type_ = str(properties.get("type", "")).lower()
    if type_ != "rest":
        return {"sql": Kind.SQL, "hive": Kind.HIVE, "glue": Kind.GLUE}[type_]
    uri, warehouse = (str(properties.get(name, "")).strip().lower() for name in ("uri", "warehouse"))
    signed_for = str(properties.get("rest.signing-name", "")).strip().lower()
    host = re.split("[/?#]", re.sub(r"^\w+://", "", uri), maxsplit=1)[0].rpartition("@")[2]
    found = _HOST_OF_AWS.fullmatch(host)
    service = found[1] if found else ""
    is_bucket = re.match(r"arn:[\w-]+:s3tables:", warehouse) is not None
    if signed_for == "s3tables" or service == "s3tables" or is_bucket:
        return Kind.S3_TABLES
    if signed_for == "glue" or service == "glue":
        return Kind.GLUE_REST_S3_TABLES if "s3tablescatalog" in warehouse else Kind.GLUE_REST
    return Kind.REST


def is_nessie(properties: Mapping[str, Any]) -> bool:
    """Tell whether a REST catalog, with whose answer its properties are complete, is Nessie."""
    return _is_true(properties.get(_IS_NESSIE))


def capabilities_of(properties: Mapping[str, Any], endpoints: Collection[str] | None = None) -> Capabilities:
    """Return what is known of the catalog that properties describe.

    Args:
        properties: PyIceberg's properties of it, with what a REST catalog has added to them.
        endpoints: the requests that a REST catalog says that it takes, such as ``GET /v1/{prefix}/tables``;
            None if it does not say, or was not asked.
    """
    kind = kind_of(properties)
    return Capabilities(kind, tuple(_facts(kind, properties, endpoints)))


def _facts(kind: Kind, properties: Mapping[str, Any], endpoints: Collection[str] | None) -> Iterator[Fact]:
    for name, row in _TABLE.items():
        if endpoints is not None and row.endpoint:
            yield Fact(name, row.question, row.endpoint in endpoints, Origin.SAID, row.endpoint)
        elif name == "has_views" and _is_true(properties.get(_VIEWS_SUPPORTED)):
            yield Fact(name, row.question, True, Origin.SAID, f"`{_VIEWS_SUPPORTED}`")
        elif name == "keeps_branches" and is_nessie(properties):
            # It has branches of its own, of all tables at once.
            source = f"apache/iceberg-python issue 2828; `{_IS_NESSIE}`"
            yield Fact(name, row.question, False, _origin(source), source)
        elif name == "names" and kind is Kind.GLUE and _is_true(properties.get(SKIPS_NAMES)):
            yield Fact(name, row.question, Names.ANY, Origin.SAID, f"`{SKIPS_NAMES}`")
        else:
            value, source = row.others.get(kind, (row.usual, row.source))
            yield Fact(name, row.question, value, _origin(source), source)


def _is_true(value: object) -> bool:
    return str(value).strip().lower() == "true"


def _origin(source: str) -> Origin:
    if not source:
        return Origin.ASSUMED
    return Origin.REPORTED if re.search(r" issue \d", source) else Origin.DOCUMENTED
