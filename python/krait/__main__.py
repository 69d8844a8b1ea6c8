"""`python -m krait ...` is `krait ...`."""
import os
import sys

from krait import command

if __name__ == "__main__":
    path = command()
    os.execv(path, [path] + sys.argv[1:])
