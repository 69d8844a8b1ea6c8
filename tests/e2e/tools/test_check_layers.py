# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers, tools/check_names and tools/check_comments: each rule refuses a small tree that breaks it, and nothing else in it."""

import contextlib
import io
import runpy
import shutil
import subprocess

import pytest
from recording import ROOT

LICENSE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
README = "line\n" * 5


@pytest.fixture
def tree(tmp_path):
    """tree({path: text}) writes the files, each folder under src with its README, and returns what each tool found."""

    def write(files, tool="check_layers"):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            readme = path.parent / "README.md"
            if name.startswith("src/") and not readme.exists() and str(readme.relative_to(tmp_path)) not in files:
                readme.write_text(README)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            status = loaded(tool)["report"](tmp_path)
        found = out.getvalue().splitlines()
        assert status == int(bool(found))
        return found

    return write


def loaded(tool):
    """What a tool defines. In this process: another takes ten times as long."""
    return runpy.run_path(str(ROOT / "tools" / tool), run_name=tool)


@pytest.mark.parametrize(
    "tool, text, wrong",
    [
        ("check_layers", "void f(void)\n{\n    exit(1);\n}\n", "4: exit: only src/cmd prints to the user and ends the process"),
        ("check_names", "int krait_hush(void);\n", "2: hush: say suppress"),
        ("check_comments", f"/* {'word ' * 26}word */\n", "2: 140 characters; wrap a comment at 132"),
    ],
    ids=["check_layers", "check_names", "check_comments"],
)
def test_the_exit_status_says_whether_a_rule_is_broken(tree, tmp_path, tool, text, wrong):
    """As meson's tests run each tool, on the project's own tree."""
    for code, status, out in ((text, 1, f"src/base/a.c:{wrong}\n"), ("", 0, "")):
        tree({"src/base/a.c": LICENSE + code}, tool)
        done = subprocess.run([ROOT / "tools" / tool, tmp_path], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (status, out, "")


def test_a_tree_that_keeps_the_rules_is_taken(tree):
    files = {
        "src/base/a.h": LICENSE + "struct krait_a {\n    int n;\n};\n",
        "src/trace/b.c": LICENSE + '#include "base/a.h"\n#include <stdio.h>\n\nstruct krait_a;\n',
        "src/cmd/cmds.def": LICENSE + "KRAIT_CMD(cat)\n",
        "src/cmd/cat.c": LICENSE + '#include "trace/b.h"\n\nint f(void)\n{\n    printf("cat");\n    exit(1);\n}\n',
    }
    assert tree(files) == []


@pytest.mark.parametrize(
    "name, text, wrong",
    [
        ("src/base/a.c", '#include "trace/b.h"\n', "2: base/ must not include trace/: arrows point down only"),
        ("src/base/a.cpp", '#include "trace/b.h"\n', "2: base/ must not include trace/: arrows point down only"),
        ("src/trace/a.c", '#include "cmd/cmd.h"\n', "2: trace/ must not include cmd/: arrows point down only"),
        ("src/base/a.c", '#include "a.h"\n', '2: include "base/a.h" by its folder'),
        ("src/trace/a.c", "#include <Python.h>\n", "2: only src/python includes Python.h"),
        ("src/trace/a.c", 'void f(void)\n{\n    puts("x");\n}\n', "4: puts: only src/cmd prints to the user and ends the process"),
        ("src/trace/a.c", "void f(void)\n{\n    fflush(stdout);\n}\n", "4: stdout: only src/cmd prints to the user and ends the process"),
        ("src/base/a.c", "void f(void)\n{\n    exit(1);\n}\n", "4: exit: only src/cmd prints to the user and ends the process"),
        ("src/python/a.c", "#if PY_VERSION_HEX\n#endif\n", "2: PY_VERSION_HEX: only python/compat knows versions of Python"),
        ("src/record/a.c", "int v = 0x030c0000;\n", "2: 0x030c0000: only python/compat knows versions of Python"),
        ("src/cmd/a.c", "bool b = p->minor >= 12;\n", "2: minor >=: only python/compat knows versions of Python"),
        ("src/remote/a.c", "/* Include/internal/pycore_frame.h */\n", "2: Include/internal/pycore_frame.h: only python/compat knows CPython's headers"),
        ("src/base/a.c", "int n;\n" * 800, "801: 801 lines; over 800 it wants a split"),
    ],
    ids=["include up", "include up in C++", "include of a verb", "without a folder", "Python.h", "puts", "stdout", "exit", "version macro", "version number", "minor version", "internal header", "length"],
)
def test_what_a_source_file_must_not(tree, name, text, wrong):
    assert tree({name: LICENSE + text}) == [f"{name}:{wrong}"]


@pytest.mark.parametrize("name", ["tests/e2e/a.py", "src/view/a.js", "src/view/a.css", "web/src/a.ts", "web/index.html", "bench/a.sh", "bench/a.cpp", "docs/a.c", "tools/script"])
def test_length_counts_in_every_language(tree, name):
    first = "#!/bin/sh\n" + LICENSE
    assert tree({name: first + "x\n" * 799}) == [f"{name}:801: 801 lines; over 800 it wants a split"]
    assert tree({name: first + "x\n" * 798}) == []


def test_other_peoples_packages_may_be_long(tree):
    assert tree({"tests/node_modules/a/a.js": "x\n" * 900}) == []


COMPAT = {
    "src/python/compat/versions.h": LICENSE + '#define KRAIT_PYTHON_KNOWN "PySys_AddAuditHook"\n',
    "src/python/compat/layout.c": LICENSE + '/* Include/abstract.h */\nint number = 0x0309; const char *symbol = "PyObject_CallNoArgs";\n',
    "src/python/compat/running.h": LICENSE + "enum { KRAIT_FRAME_INNER_311 = 24, GETSET = 40 };\n#define A(x) krait_at(x, GETSET)\n",
}


@pytest.mark.parametrize(
    "name, line, wrong",
    [
        ("src/remote/a.c", "bool old = !find(elf, \"PySys_AddAuditHook\");", "PySys_AddAuditHook: only python/compat knows which versions have a symbol"),
        ("src/cmd/a.c", "bool nine = find(elf, \"PyObject_CallNoArgs\");", "PyObject_CallNoArgs: only python/compat knows which versions have a symbol"),
        ("src/python/a.c", "f = dlsym(RTLD_DEFAULT, \"PyCode_AddWatcher\");", "PyCode_AddWatcher: only python/compat knows which versions have a symbol"),
        ("src/python/a.c", "x = krait_at(descr, GETSET_DEF);", "GETSET_DEF: only python/compat knows offsets in CPython's structs"),
        ("src/python/a.c", "n = krait_int_at(krait_at(frame, KRAIT_FRAME_INNER), 104);", "104: only python/compat knows offsets in CPython's structs"),
        ("src/remote/a.c", "if (!read_word(remote, object + LOCK, &found))", "LOCK: only python/compat knows offsets in CPython's structs"),
        ("src/remote/a.c", "rc = krait_memory_read(pid, frame + 24, &back, 8);", "24: only python/compat knows offsets in CPython's structs"),
        ("src/python/a.c", "int n = KRAIT_FRAME_INNER_311;", "KRAIT_FRAME_INNER_311: only python/compat knows versions of Python"),
        ("src/python/a.c", "/* CO_COROUTINE: Include/cpython/code.h */", "Include/cpython/code.h: only python/compat knows CPython's headers"),
        ("src/remote/a.c", "find(elf, KRAIT_PYTHON_KNOWN); /* \"PySys_AddAuditHook\" */", None),
        ("src/native/a.c", "f = dlsym(RTLD_DEFAULT, \"Py_GetVersion\");", None),
        ("src/remote/a.c", "rc = krait_memory_read(pid, frame + layout->at[KRAIT_AT_BACK], &back, 8) || read_word(remote, a + KRAIT_B, &b);", None),
        ("src/python/a.c", "x = krait_at(descr, KRAIT_GETSET_DEF); y = krait_at(object, dict_offset);", None),
    ],
)
def test_only_compat_knows_versions_of_python(tree, name, line, wrong):
    assert tree({**COMPAT, name: LICENSE + line + "\n"}) == ([f"{name}:2: {wrong}"] if wrong else [])


def test_words_in_texts_and_comments_are_no_calls(tree):
    assert tree({"src/trace/a.c": LICENSE + '/* exit(1) and\n * stdout */\nconst char *a = "printf(x)"; // abort()\nint n = _exit(3);\n'}) == []


def test_a_declaration_that_points_up(tree):
    files = {
        "src/view/b.h": LICENSE + "struct krait_table {\n    int n;\n};\n",
        "src/trace/a.h": LICENSE + "struct krait_table;\n",
        "src/cmd/a.h": LICENSE + "struct krait_table;\n",
    }
    assert tree(files) == ["src/trace/a.h:2: trace/ must not name view/'s krait_table: arrows point down only"]


@pytest.mark.parametrize(
    "name, text, wrong",
    [
        ("src/trace/a.h", "struct krait_a {\n    struct krait_table *table; /* its own */\n};\n", "3: trace/ must not name view/'s krait_table: arrows point down only"),
        ("src/trace/a.h", "int f(const struct krait_table *table);\n", "2: trace/ must not name view/'s krait_table: arrows point down only"),
        ("src/trace/a.h", "enum krait_colour colour;\n", "2: trace/ must not name view/'s krait_colour: arrows point down only"),
        ("src/trace/a.c", "static int n_of(const struct krait_table *table);\n", "2: trace/ must not name view/'s krait_table: arrows point down only"),
        ("src/cmd/a.h", "int f(const struct krait_table *table);\n", None),
        ("src/trace/a.h", "/* for struct krait_table */\nstruct krait_tables;\n", None),
    ],
    ids=["a field", "an argument", "an enumeration", "in a source file", "downward", "a comment"],
)
def test_a_file_that_names_what_is_above(tree, name, text, wrong):
    table = {"src/view/b.h": LICENSE + "struct krait_table {\n    int n;\n};\nenum krait_colour { KRAIT_RED };\n"}
    assert tree({**table, name: LICENSE + text}) == ([f"{name}:{wrong}"] if wrong else [])


@pytest.mark.parametrize("kind", ["struct", "union", "enum"])
def test_a_name_has_one_home(tree, kind):
    files = {
        "src/base/a.h": LICENSE + "/* struct krait_b { */\nstruct krait_a {\n    int n;\n};\n",
        "src/trace/b.h": LICENSE + f"struct krait_b {{\n    {kind} krait_a {{\n        KRAIT_N,\n    }} a;\n}};\n",
    }
    assert tree(files) == ["src/trace/b.h:3: krait_a has its home in base/a.h already"]


def whole_project(may_include):
    """Each layer, with a file that includes what it may."""
    files = {f"src/{folder}/a.c": LICENSE + "".join(f'#include "{other}/a.h"\n' for other in may.split()) for folder, may in may_include.items()}
    return {"meson.build": "", "src/cmd/cmds.def": LICENSE, **files}


def test_a_permission_that_is_not_used(tree):
    """In the whole project; a part of a tree does not say."""
    may_include = loaded("check_layers")["MAY_INCLUDE"]
    assert tree(whole_project(may_include)) == []
    files = {"src/base/table.h": LICENSE + "struct krait_table;\nstruct krait_shape {\n    int n;\n};\n", "src/live/a.c": LICENSE + '#include "event/a.h"\n#include "record/a.h"\n'}
    assert tree(files) == [f"tools/check_layers:1: live/ does not use {other}/: take it out of MAY_INCLUDE" for other in ("base", "ctf")]
    assert tree({"src/live/a.h": LICENSE + "struct krait_shape *shape;\n"}) == ["tools/check_layers:1: live/ does not use ctf/: take it out of MAY_INCLUDE"]


@pytest.mark.parametrize("name", ["src/base/a.h", "src/base/a.cpp", "src/event/a.def", "bench/a.cpp", "tests/unit/a.c", "docs/examples/a.c"])
def test_a_file_says_its_license(tree, name):
    assert tree({name: "int n;\n"}) == [f"{name}:1: no SPDX-License-Identifier line"]


def test_a_folder_has_a_page_of_its_own(tree):
    pages = {"src/base/README.md": "one line\n", "src/base/a.h": LICENSE}
    assert tree(pages) == ["src/base/README.md:1: 1 lines; a folder's page has 5 to 15"]
    assert tree({"src/base/README.md": "line\n" * 16}) == ["src/base/README.md:16: 16 lines; a folder's page has 5 to 15"]


def test_a_folder_without_a_page(tree, tmp_path):
    tree({"src/base/a.h": LICENSE})
    (tmp_path / "src/base/README.md").unlink()
    assert tree({}) == ["src/base/README.md:1: each folder says what it is for, what it may use and where to start"]


def test_a_folder_that_is_no_layer(tree):
    assert tree({"src/attic/a.c": LICENSE}) == ["src/attic:1: no such layer in tools/check_layers"]


def test_a_verb_keeps_its_header_to_itself(tree):
    files = {
        "src/cmd/cmds.def": LICENSE + "KRAIT_CMD(report)\nKRAIT_CMD(flame)\n",
        "src/cmd/report_rows.c": LICENSE + '#include "cmd/report.h"\n',
        "src/cmd/flame.c": LICENSE + '#include "cmd/report.h"\n#include "cmd/sheet.h"\n',
        "src/cmd/sheet.c": LICENSE + '#include "cmd/report_rows.h"\n',
    }
    assert tree(files) == [
        "src/cmd/flame.c:2: report.h belongs to `krait report`; move what verbs share into a file of its own",
        "src/cmd/sheet.c:2: report_rows.h belongs to `krait report`; move what verbs share into a file of its own",
    ]


@pytest.mark.parametrize(
    "name, line, wrong",
    [
        ("src/serve/a.c", "rc = krait_ctf_open(&a, paths);", "krait_ctf_open: serve/ reads the model (trace/), which opens what was recorded"),
        ("src/view/a.c", "nftw(path, f, 1, 0);", "nftw: view/ reads the model (trace/), which opens what was recorded"),
        ("src/export/a.c", "krait_trace_open(&a);", "krait_trace_open: export/ reads the model (trace/), which opens what was recorded"),
        ("src/analysis/a.c", "opendir(path);", "opendir: analysis/ reads the model (trace/), which opens what was recorded"),
        ("src/cmd/report_a.c", "krait_ctf_open(&a);", "krait_ctf_open: krait report reads the model (trace/), which opens what was recorded"),
        ("src/serve/a.c", 'opendir("/proc/self/fd");', None),
        ("src/cmd/report.c", "krait_trace_open(&a);", None),
        ("src/cmd/cat.c", "krait_ctf_open(&a);", None),
        ("src/view/a.c", "/* krait_trace_open() */", None),
    ],
)
def test_who_opens_what_was_recorded(tree, name, line, wrong):
    files = {"src/cmd/cmds.def": LICENSE + "KRAIT_CMD(report)\nKRAIT_CMD(cat)\n", name: LICENSE + line + "\n"}
    assert tree(files) == ([f"{name}:2: {wrong}"] if wrong else [])


@pytest.mark.parametrize(
    "name, line, wrong",
    [
        ("include/krait/trace_read.h", "int krait_open(void);", "krait_open: public names begin with krait_reader_"),
        ("src/trace/a.h", "int krait_reader_open(void);", "krait_reader_open: only include/krait and src/api have names that begin with krait_reader_"),
        ("include/krait/annotate.h", "int krait_reader_mark(void);", "krait_reader_mark: public names begin with krait_annotate_"),
        (
            "src/python/annotate.h",
            "int krait_annotate_add(void);",
            "krait_annotate_add: only include/krait and src/native/preload.c and src/python/annotate_native.c have names that begin with krait_annotate_",
        ),
    ],
    ids=["public", "internal", "the other header's", "internal of annotations"],
)
def test_public_and_internal_names_are_apart(tree, tmp_path, name, line, wrong):
    """Of the project only what has public names: the build's own tests check the whole."""
    for folder in ("include", "src/api"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    provides = ["src/native/preload.c", "src/python/annotate_native.c"]
    assert tree({each: (ROOT / each).read_text() for each in provides}, "check_names") == []
    text = (tmp_path / name).read_text() if (tmp_path / name).exists() else LICENSE
    assert tree({name: text + line + "\n"}, "check_names") == [f"{name}:{text.count(chr(10)) + 1}: {wrong}"]


@pytest.mark.parametrize("line", ["int krait_hush(void);", "/* The doers of a wait. */", "    uint32_t kev_count;"], ids=["function", "comment", "field"])
def test_a_private_word_is_refused_with_the_fields_word(tree, line):
    word, instead = {"int": ("hush", "suppress"), "/*": ("doer", "cause"), "uint32_t": ("kev", "kernel_event")}[line.split()[0]]
    assert tree({"src/trace/a.h": LICENSE + line + "\n"}, "check_names") == [f"src/trace/a.h:2: {word}: say {instead}"]


def test_a_word_that_only_contains_a_private_one_is_taken(tree):
    assert tree({"src/trace/a.h": LICENSE + "int shush, crownless, krait_leader;\n"}, "check_names") == []


@pytest.mark.parametrize("line", ["from test_cat import UTC", "import test_cat"], ids=["from", "import"])
def test_a_test_that_imports_another_is_refused(tree, line):
    wrong = "imports test_cat: what tests share is in tests/e2e/helpers"
    assert tree({"tests/e2e/path/test_path.py": f"{line}\n"}) == [f"tests/e2e/path/test_path.py:1: {wrong}"]
    assert tree({"tests/e2e/path/test_path.py": "from corpus import UTC\n"}) == []


FULL = "word " * 20


@pytest.mark.parametrize(
    "text, wrong",
    [
        (f"/* {FULL}word\n * some words that\n * {FULL}word */\n", "3: a short line within a paragraph: 'word' has room in it"),
        (f"/* {'word ' * 26}word */\n", "2: 140 characters; wrap a comment at 132"),
        ("struct krait_a {\n    int a; /* one\n                 * two */\n};\n", "4: the comment of line 3 goes on in another column"),
        ("/* One\n  * two. */\n", "3: the star is not below that of line 2"),
        ("struct krait_a {\n    const char\n        *a[2]; /* one */\n};\n", "3: a type alone: its name stands before a comment that is too long, on the next line"),
        ("struct krait_a {\n    _Atomic uint32_t\n        a; /* one */\n};\n", "3: a type alone: its name stands before a comment that is too long, on the next line"),
        ("struct krait_a {\n    int a,\n        b; /* both */\n};\n", "3: a type alone: its name stands before a comment that is too long, on the next line"),
        ("enum {\n    KRAIT_A =\n        48, /* one */\n};\n", "3: a type alone: its name stands before a comment that is too long, on the next line"),
    ],
    ids=["ragged", "wide", "goes on in another column", "star", "type alone", "atomic type alone", "half a list alone", "value alone"],
)
def test_a_comment_that_was_wrapped_by_a_tool(tree, text, wrong):
    assert tree({"src/base/a.h": LICENSE + text}, "check_comments") == [f"src/base/a.h:{wrong}"]


def test_comments_that_are_laid_out_by_hand(tree):
    text = f"""/* {FULL}word.
 * Returns 0.
 *
 *   int a = 0;
 *   use(a);      {FULL}
 *   ┌───┐
 *   │ a │
 *
 * - one
 * - {FULL}
 */
struct krait_a {{
    int a; /* one
            * two */
}};
const char *text = "/*", /* one
                          * two */
    *more;
"""
    assert tree({"src/base/a.h": LICENSE + text}, "check_comments") == []
