# SPDX-License-Identifier: Apache-2.0
"""Help, manual pages, completion and the reference: all from the verbs' table, none behind it."""

import re
import shutil
import subprocess

import pytest

from recording import ROOT
from terminal import on_terminal


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


def test_help_is_asked_for_behind_other_options_too(krait):
    text = out(krait, "record", "--help")
    assert text == out(krait, "record", "--log", "shop", "--help") == out(krait, "record", "-q", "-o", "x", "-h")


def test_an_alias_works_but_help_shows_one_name(krait, tmp_path):
    for verb in ("report", "states", "path", "flame", "view"):
        assert "--until" in options(out(krait, verb, "--help"))
        assert "--to" not in options(out(krait, verb, "--help"))
        tried = subprocess.run([krait, verb, str(tmp_path / "none"), "--to", "1s"], capture_output=True, text=True)
        assert "unknown option" not in tried.stderr and tried.returncode == 1


def test_every_option_of_every_verb_is_in_the_reference(krait, verbs):
    reference = (ROOT / "docs" / "reference.md").read_text()
    sections = {s.split("\n")[0]: s for s in reference.split("\n## krait ")}
    for verb in verbs:
        said = {f"`{o}" for o in options(out(krait, verb, "--help")) - {"--help"}}
        assert verb in sections, f"docs/reference.md has no `krait {verb}`; run: make reference"
        assert all(o in sections[verb] for o in said), f"docs/reference.md is behind `krait {verb} --help`; run: make reference"


def test_the_reference_is_what_the_command_says(krait):
    assert (ROOT / "docs" / "reference.md").read_text() == out(krait, "help", "markdown"), "run: make reference"


def test_the_page_of_endpoints_is_what_the_source_says(krait):
    page = (ROOT / "docs" / "view_api.md").read_text()
    assert page == out(krait, "help", "endpoints"), "run: make reference"
    rows = re.findall(r"^KRAIT_ENDPOINT\((\w+), \w+, ([^\"]*), \"", (ROOT / "src" / "serve" / "endpoints.def").read_text(), re.M)
    assert len(rows) >= 19
    for name, params in rows:
        row = re.search(rf"^\| `{name}` \| (.*?) \|", page, re.M)[1]
        assert sorted(re.findall(r"`(\w+)`", row)) == sorted(re.findall(r"P\((\w+)\)", params)), name


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_manual_pages_are_well_formed(krait, verbs):
    for verb in ["", *verbs]:
        page = out(krait, "help", "man", *filter(None, [verb]))
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=page, capture_output=True, text=True)
        assert not lint.stdout, f"krait-{verb}: {lint.stdout}"
        plain = subprocess.run(["mandoc", "-T", "ascii"], input=page, capture_output=True, text=True).stdout
        plain = re.sub(".\b", "", plain)
        assert max(map(len, plain.splitlines())) <= 78, f"krait-{verb}: wider than the page"
        assert plain.startswith(f"KRAIT{'-' * bool(verb)}{verb.upper()}(1) ")
        if verb:
            help_text = out(krait, verb, "--help")
            assert all(o in plain for o in options(help_text))
            assert words_of_examples(plain, "EXAMPLES\n", "\nSEE ALSO") == words_of_examples(help_text, "\nExamples:\n", None), verb


def words_of_examples(text, after, before):
    part = text.partition(after)[2]
    return re.sub(r"^ *# ", "", part.partition(before)[0] if before else part, flags=re.M).split()


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


def test_bash_completes_help_values_behind_a_sign_and_paths(krait, verbs, tmp_path):
    assert set(complete(krait, "krait help ")) == set(verbs)
    assert complete(krait, "krait help exp") == ["export"] and complete(krait, "krait ver") == ["version"]
    for line in ("krait export --to p", "krait export --to = p"):  # bash breaks words at the sign
        assert complete(krait, line) == ["perfetto", "pprof"]
    assert complete(krait, "krait export --to=p") == ["--to=perfetto", "--to=pprof"]
    assert "folded" in complete(krait, "krait export --to =")
    (tmp_path / "app.py").write_text("")
    (tmp_path / "trace").mkdir()
    for words in ("python3 ", ""):
        assert complete(krait, f"krait record -- {words}{tmp_path}/a") == [f"{tmp_path}/app.py"]
    assert "bash" in complete(krait, "krait record -q -- bas") and "bash" not in complete(krait, "krait record -- python3 bas")
    assert complete(krait, "krait record -- python3 --wa") == []  # another program's options


def test_the_version_is_a_verb_too(krait):
    assert out(krait, "version") == out(krait, "--version") == out(krait, "-V")
    assert out(krait, "help", "version") == out(krait, "help", "help") == out(krait, "help")


def test_wrong_usage_is_status_2_with_the_reason(krait, verbs):
    for args in (["nonsense"], ["help", "nonsense"], ["help", "man", "nonsense"], *([verb, "--no-such-option"] for verb in verbs)):
        run = subprocess.run([krait, *args], capture_output=True, text=True)
        assert run.returncode == 2 and not run.stdout
        assert args[-1] in run.stderr and "Try: krait" in run.stderr


NONE_GIVEN = {
    "no recording given; name the folder that `krait record` wrote": ["report", "flame", "view", "export"],
    "no trace given; name the folder of a recording or of another CTF trace": ["info", "cat", "cut", "intervals --span x"],
    "no trace given; name the folder of a recording made with --kernel, or of a kernel trace": ["states", "path"],
}


@pytest.mark.parametrize("words, said", [(words, said) for said, verbs in NONE_GIVEN.items() for words in verbs])
def test_a_verb_that_is_given_nothing_to_read_tells_what_it_reads(krait, words, said):
    run = subprocess.run([krait, *words.split()], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20)
    verb = words.split()[0]
    assert (run.returncode, run.stdout, run.stderr) == (2, "", f"krait {verb}: {said}\nTry: krait {verb} --help\n")


def usages(krait, verb):
    """Command lines of a verb that are wrong whatever lies on the disk, from its own help."""
    text = out(krait, verb, "--help")
    yield [verb, "-\x01"]
    for name, argument in re.findall(r"^  (?:-\w, |    )--([a-z0-9-]+)(?: (\S+))?$", re.sub(r"(?m)^(.{8,}?\S)  +.*$", r"\1", text), re.M):
        if name == "help":
            continue
        yield [verb, f"--{name}"] if argument else [verb, f"--{name}=value", "x"]
        if "|" in argument:
            yield [verb, f"--{name}", "none-of-them", "x"]
    if re.search(r"^Usage: krait \w+ \[options\] (?!\[)\S", text):
        yield [verb]


def test_every_wrong_usage_of_every_verb_is_status_2(krait, verbs):
    seen = 0
    for verb in verbs:
        for args in usages(krait, verb):
            run = subprocess.run([krait, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20)
            assert (run.returncode, run.stdout) == (2, ""), args
            assert run.stderr.startswith(f"krait {verb}: "), args
            seen += 1
    assert seen > 5 * len(verbs)


@pytest.mark.parametrize(
    "verb, option",
    [("flame", "width"), ("flame", "max-frames"), ("record", "max-threads"), ("record", "ring-size"), ("record", "kernel-ring-size")],
)
@pytest.mark.parametrize("none", ["0", "00"])
def test_nothing_at_all_is_no_number_of_pixels_frames_threads_or_bytes(krait, verb, option, none):
    run = subprocess.run([krait, verb, f"--{option}", none, "x"], capture_output=True, text=True)
    assert run.returncode == 2 and not run.stdout
    assert f"krait {verb}: --{option}: '{none}' is not a " in run.stderr


def test_failures_are_status_1(krait, verbs, tmp_path):
    for verb in set(verbs) - {"record", "doctor", "dump", "top"}:  # what is missing there is the command's, the machine's, or a process
        more = {"export": ["--to", "folded", "-o", "-"], "cut": ["--from", "0", "-o", tmp_path / "part"], "intervals": ["--call", "f"], "view": ["--svg", "-"]}.get(verb, [])
        run = subprocess.run([krait, verb, tmp_path / "absent", *more], capture_output=True, text=True)
        assert run.returncode == 1 and "absent" in run.stderr, verb


@pytest.mark.parametrize(
    "args, meant",
    [
        (["repot"], "'report'"),
        (["falme"], "'flame'"),
        (["versoin"], "'version'"),
        (["help", "recrod"], "'record'"),
        (["report", "--limt", "5", "x"], "--limit"),
        (["report", "--fil", "x"], "--filter"),
        (["flame", "--invertd", "x"], "--inverted"),
        (["export", "--ouptut", "x"], "--output"),
    ],
)
def test_what_was_mistyped_is_guessed(krait, args, meant):
    run = subprocess.run([krait, *args], capture_output=True, text=True)
    assert run.returncode == 2 and f"did you mean {meant}?" in run.stderr


@pytest.mark.parametrize("word", ["xyzzy", "x", "--", "r" * 5000])
def test_what_is_like_nothing_is_not_guessed(krait, word):
    run = subprocess.run([krait, word], capture_output=True, text=True)
    assert run.returncode == 2 and "did you mean" not in run.stderr


@pytest.mark.parametrize("columns", [30, 50, 72, 80, 200])
def test_help_wraps_to_the_terminal(krait, verbs, columns):
    for verb in verbs:
        lines = on_terminal([krait, verb, "--help"], columns)[0].splitlines()
        body = lines[1 : lines.index("Examples:") if "Examples:" in lines else None]  # commands cannot be broken
        assert max(map(len, body)) <= max(columns, 44), verb  # an option and its argument stay whole
        assert max(map(len, body)) <= 110
        assert not [line for line in body if line.endswith(" ")]
        hanging = [line for line in body if line.startswith(" " * 30)]
        assert verb != "report" or bool(hanging) == (columns >= 60)


def test_help_without_a_terminal_is_80_columns_with_hanging_indents(krait):
    text = out(krait, "report", "--help")
    assert max(len(line) for line in text.split("\nExamples:")[0].splitlines()) <= 80
    assert (
        "  -n, --limit N               Show N rows, 0 for all (default: 40 in a table, 5\n"
        "                              with --why, all in CSV and JSON)\n"
    ) in text
