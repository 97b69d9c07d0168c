"""The pytest plugin `pulsar_trio_pytest`, as projects use it."""
