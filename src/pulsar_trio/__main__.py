"""`python -m pulsar_trio` is the `pulsar-trio` command."""

from .cli import main

raise SystemExit(main())
