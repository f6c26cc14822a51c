"""Writes generated/ for the installed torch, or tells what is stale: ``python tools/regen.py --help``.

The same entry serves people, ninja and bazel. A run with nothing to do ends before the generator is imported.
"""

import gc
import sys
import traceback
from pathlib import Path

if __name__ == "__main__":
    # Run as a script, the first entry is this folder; the packages `tools` and `codegen` start at the
    # checkout.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from codegen.command_line import run_command
from tools.regen_support.actions import run
from tools.regen_support.errors import BadInputError
from tools.regen_support.messages import Progress, print_json, print_text
from tools.regen_support.options import parse_options

BAD_INPUT = 2
OUR_BUG = 3


def main(arguments: list[str]) -> int:
    """Run the command line; the result is the exit code."""
    # A run makes a few hundred thousand objects, drops hardly any and ends: collecting would only cost time.
    gc.disable()
    options = parse_options(arguments)
    progress = Progress()
    try:
        return run(options, progress)
    except BrokenPipeError:
        raise
    except BadInputError as error:
        progress.done()
        if options.as_json:
            print_json({"error": str(error)})
        else:
            print_text(f"regen.py: {error}", file=sys.stderr)
        return BAD_INPUT
    except Exception:
        # Python's own exit code for this is 1, which would read as "stale".
        progress.done()
        traceback.print_exc()
        print("regen.py: this is a defect of the generator, not of its input", file=sys.stderr)
        return OUR_BUG


if __name__ == "__main__":
    sys.exit(run_command(lambda: main(sys.argv[1:])))
