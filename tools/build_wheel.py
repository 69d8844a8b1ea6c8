# SPDX-License-Identifier: Apache-2.0
"""meson-python, with two things more: one wheel is for every CPython from 3.8 on, and none is for a free-threaded one.

meson-python tags a limited-API wheel with the version of the Python that builds it; the agent is compiled for the
stable ABI of 3.8 (Py_LIMITED_API in python/krait/meson.build) whichever Python that is.
"""

import sysconfig

import mesonpy
from mesonpy import *  # noqa: F401,F403 - the other hooks are meson-python's own

PYTHON_TAG = "cp38"


def refuse_free_threaded():
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit(
            "krait does not support free-threaded builds of CPython yet: its agent is made for the stable ABI, which "
            "they have not. Install it with the ordinary build of the same version."
        )


def retag(directory, name):
    """name-version-cp313-abi3-linux_x86_64.whl becomes ...-cp38-abi3-...: in the file's name, WHEEL and RECORD."""
    import base64
    import hashlib
    import os
    import re
    import zipfile

    stem, tag, abi, platform = name[: -len(".whl")].rsplit("-", 3)
    new_name = "-".join([stem, PYTHON_TAG, abi, platform]) + ".whl"
    if abi != "abi3" or new_name == name:
        return name
    old, new = os.path.join(directory, name), os.path.join(directory, new_name)
    with zipfile.ZipFile(old) as source, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as target:
        changed = {}
        for item in sorted(source.infolist(), key=lambda i: i.filename.endswith("/RECORD")):
            data = source.read(item)
            if item.filename.endswith(".dist-info/WHEEL"):
                data = re.sub(rb"(?m)^Tag: %s-" % tag.encode(), b"Tag: %s-" % PYTHON_TAG.encode(), data)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                changed[item.filename] = f"{item.filename},sha256={digest},{len(data)}"
            elif item.filename.endswith(".dist-info/RECORD"):
                lines = data.decode().splitlines()
                data = "".join(changed.get(line.split(",")[0], line) + "\n" for line in lines).encode()
            target.writestr(item, data)
    os.remove(old)
    return new_name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    refuse_free_threaded()
    return retag(wheel_directory, mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    refuse_free_threaded()
    return mesonpy.build_editable(wheel_directory, config_settings, metadata_directory)
