"""Build dbt-sparkevolve. All settings of tools are in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_namespace_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(
    r'^version = "(.+)"$',
    (HERE / "dbt/adapters/sparkevolve/__version__.py").read_text(encoding="utf-8"),
    re.MULTILINE,
).group(1)

SESSION = ["pyspark>=3.5,<4.2"]
THRIFT = ["dbt-spark[PyHive]>=1.11,<2"]
POSTGRESQL = ["pyiceberg[sql-postgres]>=0.12,<0.13"]
MYSQL = ["pymysql>=1.1,<3"]
HIVE = ["pyiceberg[hive]>=0.12,<0.13"]

setup(
    name="dbt-sparkevolve",
    version=VERSION,
    description="A dbt adapter for incremental Iceberg models on Spark whose tables never lose a column",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10,<3.14",
    # Stated, since an editable install is then a path, which mypy and pkgutil can follow.
    package_dir={"": "."},
    packages=find_namespace_packages(include=["dbt", "dbt.*"]),
    package_data={
        "dbt.adapters.sparkevolve": ["py.typed"],
        "dbt.include.sparkevolve": [
            "dbt_project.yml",
            "profile_template.yml",
            "macros/**/*.sql",
            "page/page.*",
        ],
    },
    install_requires=[
        "dbt-core>=1.11.2,<2",
        "dbt-adapters>=1.24.1,<2",
        "dbt-common>=1.37.2,<2",
        "dbt-spark>=1.11,<2",
        "jinja2>=3.1.3,<4",
        "pyiceberg[sql-sqlite,pyarrow]>=0.12,<0.13",
    ],
    extras_require={
        "session": SESSION,
        "thrift": THRIFT,
        "postgresql": POSTGRESQL,
        "mysql": MYSQL,
        "hive": HIVE,
        "dev": [
            *SESSION,
            *THRIFT,
            *POSTGRESQL,
            "dbt-tests-adapter>=1.20,<2",
            "pytest>=8.3,<10",
            "pytest-xdist>=3.8,<4",
            "hypothesis>=6.100,<7",
            "ruff>=0.14",
            "mypy>=1.18",
            "codespell>=2.4",
            "import-linter>=2.5,<3",
            "pre-commit>=4",
            "build>=1.3",
            # Another reader of Iceberg tables. The extensions have to be those of its very version.
            "duckdb>=1.5,<2",
            "duckdb-extension-avro>=1.5,<2",
            "duckdb-extension-iceberg>=1.5,<2",
            "types-PyYAML",
        ],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Operating System :: POSIX",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Database",
        "Typing :: Typed",
    ],
)
