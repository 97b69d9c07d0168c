"""One call of the application, cancelled at each step of all tasks; then everything is still there."""
