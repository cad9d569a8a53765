"""Check the contracts of imports in pyproject.toml with import-linter.

dbt-core and dbt-adapters install `dbt` and `dbt.adapters` with an `__init__.py`, and import-linter looks at
packages below namespaces only. Here both are namespaces in this folder, and nothing of dbt is imported.
"""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from importlinter.cli import lint_imports_command

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    for name in ("dbt", "dbt.adapters"):
        namespace = ModuleType(name)
        namespace.__path__ = [str(ROOT.joinpath(*name.split(".")))]
        namespace.__spec__ = ModuleSpec(name, None, is_package=True)
        sys.modules[name] = namespace
    lint_imports_command(["--no-logo", "--no-cache", str(ROOT / "pyproject.toml")])
