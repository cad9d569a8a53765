"""Where statements begin and end."""

import pytest
from dbt_common.exceptions import CompilationError
from hypothesis import event, given
from hypothesis import strategies as st

from dbt.adapters.sparkevolve.errors import SeveralStatementsError
from dbt.adapters.sparkevolve.sql.splitting import first_word, reads_only, split_statements
from tests.unit.package_macros import PURE, PackageMacros
from tests.unit.strategies import rule


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("", []),
        (" ;; -- only a comment\n ; /* and ; another */ ", []),
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("select 1; -- end", ["select 1"]),
        ("select 1 -- end", ["select 1"]),
        ("select 1 -- end;\n", ["select 1"]),
        ("\n-- first\nselect 1\n;\n/* ; */\n-- ;\n;", ["select 1"]),
        ("select 1 /* a ; /* nested ; */ ; */ ;", ["select 1"]),
        ("select ';' as a, \"-- ;\" as b, `;--` as c ; -- x", ["select ';' as a, \"-- ;\" as b, `;--` as c"]),
        (r"select '\\' as a, 'x; --' as b;", [r"select '\\' as a, 'x; --' as b"]),
        (r"select 'it\'s; --' as a;", [r"select 'it\'s; --' as a"]),
        ("select 'it''s; --' as a;", ["select 'it''s; --' as a"]),
        (r"select r'a\' as a, 'b;' as b; -- '", [r"select r'a\' as a, 'b;' as b"]),
        ("select `a``;b` from t;", ["select `a``;b` from t"]),
        ("select 1 -- goes on \\\n; select 2", ["select 1"]),
        ("select 1 -- ends \n; select 2", ["select 1", "select 2"]),
        ("set a=b;\nset c=d -- x\n; select 1", ["set a=b", "set c=d", "select 1"]),
        ("select /*+ broadcast(t) */ 1;", ["select /*+ broadcast(t) */ 1"]),
        ("select 4 - -1; --", ["select 4 - -1"]),
        # Spark has to say that it is not closed: cut off, columns would be missing in silence.
        ("select 1 as a /* not closed ; , 2 as b", ["select 1 as a /* not closed ; , 2 as b"]),
        ("select 1 as a /* /* */ , 2 as b", ["select 1 as a /* /* */ , 2 as b"]),
        ("select 1 as a /*/ , 2 as b", ["select 1 as a /*/ , 2 as b"]),
        # The sign of a hint begins no comment, also inside one, which then ends with the hint.
        ("select 1 as a /* /*+ x(t) */ , 2 as b; -- c", ["select 1 as a /* /*+ x(t) */ , 2 as b"]),
        ("select /*+ x(t) /* ; */ -- */ ; \n */ 1; /* c */", ["select /*+ x(t) /* ; */ -- */ ; \n */ 1"]),
        ("select 1 as a -- no end \\\r\n, 2 as b -- c\r\n", ["select 1 as a -- no end \\\r\n, 2 as b"]),
        ("select 'not closed ; --", ["select 'not closed"]),
    ],
)
def test_statements_end_at_semicolons_that_spark_sees(sql: str, statements: list[str]) -> None:
    assert split_statements(sql) == statements
    assert PURE.split_statements(sql) == statements


PIECES = (
    *(
        "'",
        '"',
        "`",
        ";",
        "--",
        "/*",
        "*/",
        "/*+",
        "\\",
        "\n",
        "\r",
        "\r\n",
        " ",
        "\t",
        "\u00a0",
        "r'",
        'R"',
        "ar'",
    ),
    *("/", "*", "-", "+", "select", "1", "é", "(", ")", "''", "``", "\\\n"),
)


@rule
@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_the_package_sees_the_same_statements(sql: str) -> None:
    found = split_statements(sql)
    event(f"{min(len(found), 3)} statements")
    assert PURE.split_statements(sql) == found


def test_a_long_model_is_one_statement_for_the_package() -> None:
    """Jinja takes no step more than a hundred thousand times, if it is told to count."""
    sql = f"-- {'x' * 101_000}\nselect /* {'y ' * 51_000} */ '{'z;' * 51_000}' as id, {'1 + ' * 30_000} 1"
    assert PURE.split_statements(f"/* {'; ' * 51_000} */ {sql}; -- end") == [sql.partition("\n")[2]]
    assert len(PURE.sql_tokens(f"/* {'x' * 101_000} */ x = 1")) == 3


def test_a_model_of_the_package_is_one_query() -> None:
    def query(sql: str) -> str:
        return str(PackageMacros({"compiled_code": sql}).compiled_query())

    for end in ("", ";", ";;", "; -- the end", ";\n/* end */ ;\n", " -- C:\\", "\n-- C:\\\n"):
        assert query(f"\n-- of what\nselect 1 as id{end}") == "select 1 as id"
    assert query(" -- nothing") == " -- nothing"
    with pytest.raises(CompilationError) as refused:
        query("select 1; select 2; -- end")
    assert SeveralStatementsError(2).msg in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("select 1", "SELECT"),
        (" /* x */ -- y\n ( Select 1)", "SELECT"),
        ("", ""),
        ("'x'", ""),
        ("SET a=b", "SET"),
    ],
)
def test_the_first_word_of_a_statement(sql: str, word: str) -> None:
    assert first_word(sql) == word


@pytest.mark.parametrize(
    ("sql", "is_reading"),
    [
        ("select 1", True),
        ("/* dbt */ (select 1)", True),
        ("-- dbt\ndesc t", True),
        ("use lake", True),
        ("values (1)", True),
        ("with a as (select 1) select 'insert into t' as `delete` from a -- merge", True),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", False),
        ("with a as (select 1) merge into t using a on true when matched then delete", False),
        ("from a insert into t select *", False),
        # Named queries, columns and tables may be called so.
        ("with update as (select 1 as delete) select insert.delete from update as insert", True),
        ("with recursive delete (merge) as (select 1), b (select 2) select delete.merge from delete", True),
        ("with merge (a) max recursion level 5 as (select 1) (select a from merge) order by 1", True),
        ("with update as (select 1) update t set a = 1", False),
        ("with insert (delete) as (select 1), b as (select 2) delete from t", False),
        ("with a as (select 1) from a insert into t select *", False),
        ("with a as (select ')') -- )\ninsert into t select * from a", False),
        ("with update", False),
        ("selected", False),
        ("create table t as select 1", False),
        ("", False),
    ],
)
def test_which_statements_change_nothing(sql: str, is_reading: bool) -> None:
    assert reads_only(sql) is is_reading
