"""Start the program; nothing is imported before Ctrl-C is answered for."""

import gc
import sys

FEW_COLLECTIONS = 50_000, 10, 50
"""Instead of 700, 10, 10: what is loaded would be gone through again and again."""


def main() -> int:
    """Run the command line of this process and return its exit code."""
    # most of a command's time goes into loading what it needs, none of which is ever garbage
    gc.set_threshold(*FEW_COLLECTIONS)
    try:
        from wlctl.cli.app import main as run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return 130
    finally:
        gc.freeze()  # what is left goes with the process: nobody has to look for cycles in it


if __name__ == "__main__":
    sys.exit(main())
