"""Programs of the Java and the Go client, for tests against our broker."""
