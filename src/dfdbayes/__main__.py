"""`python -m dfdbayes` is the command line."""

from .cli import main

main()
