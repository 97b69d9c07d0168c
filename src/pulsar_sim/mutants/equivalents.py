"""Mutants that change nothing that an application or a peer could notice, by name, each with its reason.

The file has the name of a mutant on one line and the reason below it, indented. Lines that begin with `#` and
empty lines are passed over.
"""


def parse_equivalents(text: str) -> dict[str, str]:
    """Name -> reason. Raises `ValueError` for a mutant without a reason, a reason without a mutant, and a
    mutant that is named twice."""
    found: dict[str, str] = {}
    name = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            if not name:
                raise ValueError(f"line {number} is a reason without a mutant: {line.strip()!r}")
            found[name] = f"{found[name]} {line.strip()}".strip()
            continue
        name = line.strip()
        if name in found:
            raise ValueError(f"line {number} names a mutant again: {name!r}")
        found[name] = ""
    for each, reason in found.items():
        if not reason:
            raise ValueError(f"no reason is given for {each!r}")
    return found
