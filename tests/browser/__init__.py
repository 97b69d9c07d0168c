"""Pages in headless Chromium: what a reader sees, after the scripts of the page have run."""
