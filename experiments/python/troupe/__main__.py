"""Starts the program `troupe` of an installed package: `troupe train quickstart`, or `python -m troupe train quickstart`."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "bin" / "troupe"
    if not program.exists():
        sys.exit(f"troupe: {program} does not exist; install the wheel, or start the program of the build folder")
    os.execv(program, ["troupe", *sys.argv[1:]])


if __name__ == "__main__":
    main()
