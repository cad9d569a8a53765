"""Names: how two are compared, which cannot be used, and how one is written in SQL."""

import pytest

from dbt.adapters.sparkevolve.evolution.names import (
    RESERVED_NAMES,
    collisions,
    constant_literal,
    dotted_levels,
    fold,
    is_readable_by_hive,
    is_reserved,
    quote,
    string_literal,
    unquote,
)
from tests.unit.strategies import RESERVED


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("CustomerID", "customerid"),
        ("É", "é"),
        ("İ", "i̇"),
        ("ẞ", "ß"),
        ("ΟΔΟΣ", "οδος"),
        ("\u212a", "k"),  # the Kelvin sign
    ],
)
def test_names_that_differ_by_case_fold_to_one(name: str, other: str) -> None:
    assert fold(name) == fold(other)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("straße", "STRASSE"),
        ("ß", "ss"),
        ("\u00b5", "\u03bc"),  # micro sign, Greek mu
        ("é", "e\u0301"),
        ("İ", "i"),
        ("a", "a "),
        ("a_b", "ab"),
    ],
)
def test_other_names_stay_apart(name: str, other: str) -> None:
    assert fold(name) != fold(other)


def test_the_reserved_names_are_those_of_iceberg() -> None:
    assert frozenset(RESERVED) == RESERVED_NAMES


@pytest.mark.parametrize("name", [*RESERVED, *(name.upper() for name in RESERVED), "_Pos", "_Partition"])
def test_a_reserved_name_is_reserved_in_any_case(name: str) -> None:
    assert is_reserved(name)


@pytest.mark.parametrize(
    "name", ["file", "pos", "partition", "_files", "__file", " _file", "_file ", "`_file`", ""]
)
def test_a_name_like_a_reserved_one_is_free(name: str) -> None:
    assert not is_reserved(name)


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("id", "`id`"),
        ("CustomerID", "`CustomerID`"),
        ("a.b", "`a.b`"),
        ("a`b", "`a``b`"),
        ("`", "````"),
        ("``", "``````"),
        ("`a`", "```a```"),
        ("back\\slash", "`back\\slash`"),
        ("it's", "`it's`"),
        ("İ", "`İ`"),
        ("new\nline", "`new\nline`"),
    ],
)
def test_a_name_is_quoted_in_backticks_that_are_doubled_inside(name: str, quoted: str) -> None:
    assert quote(name) == quoted
    assert unquote(quoted) == name


@pytest.mark.parametrize(
    "name", ["id", "a b", "a`b", "`ab", "ab`", "`", "``", "`a`, `b`", "`a` and `b`", "`a```b`", "'a'", ""]
)
def test_what_is_not_one_whole_quoted_name_keeps_its_backticks(name: str) -> None:
    assert unquote(name) == name


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("", "''"),
        ("plain", "'plain'"),
        ("it's", "CAST(X'69742773' AS STRING)"),
        ("a\\b", "CAST(X'615c62' AS STRING)"),
        ("\\'", "CAST(X'5c27' AS STRING)"),
        ('say "x"', "'say \"x\"'"),
        ("two\nlines", "'two\nlines'"),
        ("100%_", "'100%_'"),
        ("$x {} $", "'$x {} $'"),
        ("${x}", "CAST(X'247b787d' AS STRING)"),
        ("nul\0", "CAST(X'6e756c00' AS STRING)"),
        ("a\r\n", "CAST(X'610d0a' AS STRING)"),
        ("µ😀", "'µ😀'"),
    ],
)
def test_a_string_literal_means_the_same_under_every_setting(text: str, literal: str) -> None:
    assert string_literal(text) == literal


@pytest.mark.parametrize(
    ("text", "verbatim", "substitutes", "literal"),
    [
        ("it's a\\b", False, False, "'it\\'s a\\\\b'"),
        ("it's ${x}", False, True, "'it\\'s \\u0024{x}'"),
        ("a\\b ${x}", True, False, "'a\\b ${x}'"),
        ("it's", True, False, None),
        ("${x}", True, True, None),
    ],
)
def test_a_constant_is_written_for_the_settings_of_the_session(
    text: str, verbatim: bool, substitutes: bool, literal: str | None
) -> None:
    assert constant_literal(text, verbatim=verbatim, substitutes=substitutes) == literal


def test_collisions_are_grouped_in_order_of_first_appearance() -> None:
    assert collisions(["b", "A", "x", "a", "B", "a"]) == (("b", "B"), ("A", "a", "a"))


@pytest.mark.parametrize("listed", [[], ["a"], ["a", "b", "a.b", "ß", "ss", "SS "]])
def test_names_that_differ_do_not_collide(listed: list[str]) -> None:
    assert collisions(listed) == ()


@pytest.mark.parametrize("name", ["a", "1st", "_", "a.b", "unit price", "$x", "ключ", "名前", "é", "٣"])
def test_a_hive_metastore_can_read_letters_digits_and_a_few_others(name: str) -> None:
    assert is_readable_by_hive(name)


# A combining accent, a superscript, a fraction, a Roman number and a letter outside the first plane are no
# letter or digit for Java's char.
@pytest.mark.parametrize(
    "name", ["", "a,b", "a:b", "a<b", "net-price", "#x", "we`ird", "e\u0301", "²", "½", "Ⅷ", "𝐚"]
)
def test_a_hive_metastore_cannot_read_others(name: str) -> None:
    assert not is_readable_by_hive(name)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("a", [("a", False)]),
        ("a.B c.d", [("a", False), ("B c", False), ("d", False)]),
        ("`a`", [("a", True)]),
        ("a.`b.c`.d", [("a", False), ("b.c", True), ("d", False)]),
        ("`a``b`.c", [("a`b", True), ("c", False)]),
        ("a`b", [("a`b", False)]),
        *((text, None) for text in ("", ".", ".a", "a.", "a..b", "``", "`a", "`a`b", "`a`.", "`a```.`")),
    ],
)
def test_a_dotted_path_has_levels_or_is_none(text: str, levels: list[tuple[str, bool]] | None) -> None:
    assert dotted_levels(text) == (None if levels is None else tuple(levels))
