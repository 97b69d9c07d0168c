"""The client machines. `Client` in `client.py` is the root; people import it from `pulsar_sansio`."""
