"""What the names of Java's packages and classes mean, asked once of each Java process."""

from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView


def remember_java_names() -> None:
    """Let py4j ask once what `org` in `jvm.org` is, and `org.apache`, and each class.

    It asks each time that a program says so. Java then looks for a class of that name, in all of Spark's jars
    and for `org` in each package that PySpark imports, before it knows that it is a package.
    """
    for kind in (JVMView, JavaPackage):
        kind.__getattr__ = _remembering(kind.__getattr__)


def _remembering(ask: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def get(place: Any, name: str) -> Any:
        found = ask(place, name)
        # An import may make a class of what is no name of a package.
        if isinstance(found, JavaClass) or (isinstance(found, JavaPackage) and name.islower()):
            # Python asks for what the object itself does not have.
            vars(place)[name] = found
        return found

    return get
