"""Start the program; nothing is imported before Ctrl-C is answered for."""

import sys


def main() -> int:
    """Run the command line of this process and return its exit code."""
    try:
        from wlctl.cli.app import main as run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
