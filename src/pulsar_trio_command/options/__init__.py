"""The options by which the commands connect, and the `client.conf` of the official tools."""
