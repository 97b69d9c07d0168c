"""A page as headless Chromium shows it."""

import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome")

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def shown(url: str) -> str:
    """Return the page's document after six seconds of its own time."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    assert program is not None, f"no Chromium: none of {', '.join(NAMES)} is on the path"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                program,
                *QUIET,
                f"--user-data-dir={folder}",
                "--virtual-time-budget=6000",
                "--dump-dom",
                url,
            ],
            capture_output=True,
            check=True,
            timeout=120,
            text=True,
        )
    return done.stdout
