"""What a run has sent to Spark."""

import re

from tests.functional.harness import Run


def statements(run: Run, node: str = "model.case.t") -> list[str]:
    """The statements that a node sent, in order, without dbt's comment; each as one line."""
    sent = re.findall(
        rf"^On {re.escape(node)}: /\*.*?\*/(.*?)^(?=SQL status|Opening|Spark adapter)", run.log, re.S | re.M
    )
    return [" ".join(text.split()) for text in sent]
