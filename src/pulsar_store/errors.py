"""Errors of a store on disk. Each text names the folder and says what to do."""

from pulsar_sansio import PulsarError


class StoreError(PulsarError):
    """The folder of a store cannot be used."""


class NotAStore(StoreError):
    """The folder has no store, or its file belongs to another program."""


class StoreInUse(StoreError):
    """Another process, or another `SqliteStore` of this one, has the store open."""


class StoreTooNew(StoreError):
    """A later version of this library wrote the store."""


class StoreDamaged(StoreError):
    """The file of the store is damaged."""


class StoreFull(StoreError):
    """The disk is full."""


class StoreNotWritable(StoreError):
    """The system does not let this process write to the folder."""
