"""`python -m scalor` is the command line."""

import sys

from scalor.cli.main import main

sys.exit(main())
