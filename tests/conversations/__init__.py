"""The recorded scenarios once more, with our client and our broker: they speak as the recorded ones do."""
