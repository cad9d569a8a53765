"""Where statements begin and end."""

import pytest

from dbt.adapters.sparkevolve.sql.splitting import first_word, reads_only, split_statements


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
        ("selected", False),
        ("create table t as select 1", False),
        ("", False),
    ],
)
def test_which_statements_change_nothing(sql: str, is_reading: bool) -> None:
    assert reads_only(sql) is is_reading
