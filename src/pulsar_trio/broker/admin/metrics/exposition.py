"""`Exposition`: the text that Prometheus reads, version 0.0.4 of its format."""

from collections.abc import Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def label_text(labels: Mapping[str, str]) -> str:
    """Return labels in braces, with their values escaped."""
    pairs = (f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}"


class Exposition:
    """Samples, by metric. Every metric is a gauge, as those of a Java broker's topics are."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, metric: str, labels: str, value: float) -> None:
        """Add a sample. `labels`: the result of `label_text`."""
        self._lines.setdefault(metric, []).append(f"{metric}{labels} {float(value):.17g}")

    def text(self) -> bytes:
        """Return all samples. The samples of a metric follow each other, as the format asks for."""
        lines = []
        for metric, samples in self._lines.items():
            lines.append(f"# TYPE {metric} gauge")
            lines.extend(samples)
        return ("\n".join(lines) + "\n").encode()
