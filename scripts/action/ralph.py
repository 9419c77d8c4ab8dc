"""`ralph` out of the action's own folder, where nothing is installed: `python -I -S ralph.py ARGUMENTS...`.

With the standard library alone, that is all `ralph due` needs; what needs a package fails.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from ralph_mission.cli.main import main

main()
