# SPDX-License-Identifier: Apache-2.0
"""krait cat's JSON, of the corpus's kernel trace too."""

import json

import pytest

from corpus import CORPUS, cat_bytes

KERNEL = CORPUS / "lttng-ref-traces" / "basic-kernel-analysis" / "kernel"
needs_corpus = pytest.mark.skipif(not KERNEL.exists(), reason=f"no corpus of CTF traces at {CORPUS}")


def cat_json(krait, *args, status=0):
    run = cat_bytes(krait, "--json", *args)
    assert run.returncode == status, run.stderr.decode()
    return [json.loads(line) for line in run.stdout.splitlines()]


def events(objects):
    return [o for o in objects if "event" in o]
