"""`python -m playhead` is the command `playhead`."""

from playhead.cli import main

main()
