"""Commands of the application to the client, by what they act on."""
