"""The embedded broker behind real sockets, and its administration over HTTP."""
