# SPDX-License-Identifier: Apache-2.0
"""Where the Python that runs this looks for packages below a prefix, relative to that: lib/python3.11/dist-packages.

    python3 tools/packages_folder.py PREFIX

Debian's Python has a folder of another name below each of /usr and /usr/local. Below a prefix where it does not look by
itself, the folder has the name that other Pythons give it, and virtual environments and `pip install --user` too.
"""

import os
import site
import sys
import sysconfig


def packages_folder(prefix):
    prefixes = {sys.prefix: None, sys.base_prefix: None}  # what is looked for in a virtual environment may be installed outside
    for folder in [*site.getsitepackages(list(prefixes)), site.getusersitepackages()]:
        below = os.path.relpath(folder, prefix)
        if below.startswith("lib"):  # not local/lib/... below /usr, which is /usr/local's
            return below
    return os.path.relpath(sysconfig.get_path("platlib", "posix_prefix", {"base": prefix, "platbase": prefix}), prefix)


if __name__ == "__main__":
    print(packages_folder(sys.argv[1]))
