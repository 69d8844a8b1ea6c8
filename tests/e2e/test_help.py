# SPDX-License-Identifier: Apache-2.0
"""Help, manual pages, completion and the reference: all from the verbs' table, none behind it."""

import re
import shutil
import subprocess

import pytest

from recording import ROOT


def out(krait, *args):
    run = subprocess.run([krait, *args], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, ""), args
    return run.stdout


@pytest.fixture(scope="session")
def verbs(krait):
    found = re.findall(r"^  ([a-z]+)  ", out(krait, "help"), re.M)
    assert len(found) >= 2
    return found


def options(text):
    return set(re.findall(r"^  (?:-\w, |    )(--[a-z0-9-]+)", text, re.M))


def test_every_verb_helps(krait, verbs):
    for verb in verbs:
        text = out(krait, verb, "--help")
        assert text == out(krait, "help", verb) == out(krait, verb, "-h")
        assert text.startswith(f"Usage: krait {verb} ")
        assert "--help" in options(text)


def test_every_option_of_every_verb_is_in_the_reference(krait, verbs):
    reference = (ROOT / "docs" / "reference.md").read_text()
    sections = {s.split("\n")[0]: s for s in reference.split("\n## krait ")}
    for verb in verbs:
        said = {f"`{o}" for o in options(out(krait, verb, "--help")) - {"--help"}}
        assert verb in sections, f"docs/reference.md has no `krait {verb}`; run: make reference"
        assert all(o in sections[verb] for o in said), f"docs/reference.md is behind `krait {verb} --help`; run: make reference"


def test_the_reference_is_what_the_command_says(krait):
    assert (ROOT / "docs" / "reference.md").read_text() == out(krait, "help", "markdown"), "run: make reference"


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_manual_pages_are_well_formed(krait, verbs):
    for verb in ["", *verbs]:
        page = out(krait, "help", "man", *filter(None, [verb]))
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=page, capture_output=True, text=True)
        assert not lint.stdout, f"krait-{verb}: {lint.stdout}"
        plain = subprocess.run(["mandoc", "-T", "ascii"], input=page, capture_output=True, text=True).stdout
        plain = re.sub(".\b", "", plain)
        assert all(o in plain for o in options(out(krait, verb, "--help"))) if verb else True


def complete(krait, line):
    """What bash offers after `line`."""
    script = f"""{out(krait, "help", "completion")}
COMP_WORDS=({line} {"" if not line.endswith(" ") else "''"}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_krait
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_verbs_options_and_choices(krait, verbs):
    assert set(verbs) <= set(complete(krait, "krait "))
    assert complete(krait, "krait doc") == ["doctor"]
    for verb in verbs:
        assert set(complete(krait, f"krait {verb} --")) == options(out(krait, verb, "--help"))


def test_wrong_usage_is_status_2_with_the_reason(krait, verbs):
    for args in (["nonsense"], *([verb, "--no-such-option"] for verb in verbs)):
        run = subprocess.run([krait, *args], capture_output=True, text=True)
        assert run.returncode == 2 and not run.stdout
        assert args[-1] in run.stderr and "Try: krait" in run.stderr
