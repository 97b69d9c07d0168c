"""`ignore`: the callback for an event that changes nothing."""


def ignore(*_: object) -> None:
    """Do nothing."""
