"""`python -m pulsar_trio` is the `pulsar-trio` command."""

from pulsar_trio_command import main

raise SystemExit(main())
