"""Calls that a client refuses: to handles that have ended, to a closed client, and with wrong arguments."""
