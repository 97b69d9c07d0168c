"""Values and encrypted payloads beside bytes as they are, out of the rows of one run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.rows import Row

if TYPE_CHECKING:
    from bench.__main__ import Line


def forms_table(lines: Mapping[Row, "Line"]) -> str:
    """Return what each form costs beside bytes, by processor time; "" where no row has both."""
    body = []
    for row, line in lines.items():
        plain = lines.get(replace(row, form=""))
        if row.form and plain is not None:
            body.append(
                f"{row.name:<30}{row.size:>6}{line.ours_cpu_us / plain.ours_cpu_us:>8.1f}×"
                f"{line.official_cpu_us / plain.official_cpu_us:>10.1f}×"
            )
    if not body:
        return ""
    head = f"{'beside bytes':<30}{'size':>6}{'ours':>9}{'official':>11}"
    return "\n".join([head, "-" * len(head), *body, "", "processor time of the form / of bytes as they are"])
