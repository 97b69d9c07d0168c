"""`pulsar-trio broker`: the command, and the settings of its configuration files."""
