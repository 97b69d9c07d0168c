"""`common_name`: the role in a certificate that `ssl` has verified."""

from collections.abc import Mapping


def common_name(certificate: Mapping[str, object] | None) -> str | None:
    """Return the common name of the subject; of several the last, which is the most specific one.

    `certificate`: the result of `getpeercert()`, which is empty for a certificate that was not verified.
    """
    found: str | None = None
    subject = (certificate or {}).get("subject", ())
    assert isinstance(subject, tuple)
    for parts in subject:
        for name, value in parts:
            if name == "commonName":
                found = value
    return found or None
