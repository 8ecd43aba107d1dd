"""``python -m sawmill``: the command."""

from . import main

main()
