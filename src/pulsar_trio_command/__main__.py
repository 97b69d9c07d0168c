"""`python -m pulsar_trio_command` is the `pulsar-trio` command."""

from . import main

raise SystemExit(main())
