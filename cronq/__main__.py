"""`python -m cronq`: the same as the `cronq` command."""

from cronq.cli.main import main

main()
