# SPDX-License-Identifier: Apache-2.0
"""Programs in C that run Python: linked with libpython, or loading it while they run, as PyInstaller's do."""

import json
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")

PROGRAM = """
#include <dlfcn.h>
#include <stdlib.h>
#ifdef MODE
#define CALL(name) dlsym(python, #name)
#else
void Py_Initialize(void);
int Py_FinalizeEx(void), PyRun_SimpleString(const char *);
#define CALL(name) name
#endif
int main(int argc, char **argv)
{
#ifdef MODE
    void *python = dlopen(argv[2], RTLD_NOW | MODE);
#endif
    void (*begin)(void) = CALL(Py_Initialize);
    int (*run)(const char *) = CALL(PyRun_SimpleString), (*end)(void) = CALL(Py_FinalizeEx);
    for (int i = 0; i < atoi(argv[1]); i++) {
        begin();
        run("def f(): pass\\nfor _ in range(100): f()\\n");
        end();
    }
    return 0;
}
"""


@pytest.fixture
def embed(record, tmp_path):
    """embed(python, mode, times) records a program that runs Python so often; mode: how it loads libpython, or None."""

    def run(python, mode, times):
        if python.kind != "shared" or python.prefix:
            pytest.skip(f"{python} has no libpython")
        ask = "import json, sys, sysconfig; print(json.dumps([sys.prefix, *map(sysconfig.get_config_var, ('LIBDIR', 'INSTSONAME'))]))"
        home, folder, name = json.loads(python.run("-c", ask).stdout)
        (tmp_path / "app.c").write_text(PROGRAM)
        how = [f"-DMODE={mode}", "-ldl"] if mode else [f"{folder}/{name}", f"-Wl,-rpath,{folder}"]
        subprocess.run(["cc", "-o", tmp_path / "app", tmp_path / "app.c", *how], check=True)
        return record.words(python, tmp_path / "app", times, f"{folder}/{name}", env={"PYTHONHOME": home})

    return run


def test_each_of_several_initialisations_is_recorded(embed, python):
    run = embed(python, None, 3)
    assert run.check().calls()["f"] == 300
    assert len(run.processes) == 1


def test_a_python_that_is_loaded_later_is_recorded(embed, python):
    run = embed(python, "RTLD_GLOBAL", 2)
    assert run.check().calls()["f"] == 200


def test_a_python_that_is_loaded_out_of_reach_is_told(embed, any_python):
    run = embed(any_python, "RTLD_LOCAL", 1)
    assert run.status == 125
    assert "libpython is loaded with RTLD_LOCAL" in run.stderr


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("form", ["--onedir", "--onefile"])
def test_a_program_that_pyinstaller_made_is_recorded(record, python, venv, tmp_path, form):
    """Of one file, the program starts a second process of itself when it has unpacked what is in it."""
    if python.kind != "shared" or python.prefix:
        pytest.skip(f"{python} has no libpython")
    (tmp_path / "app.py").write_text("def f(): pass\nfor _ in range(100): f()\n")
    folders = [f"--{name}path={tmp_path / name}" for name in ("dist", "work", "spec")]
    made = venv(python, "pyinstaller").run("-m", "PyInstaller", form, *folders, tmp_path / "app.py", timeout=600)
    assert made.returncode == 0, made.stderr[-2000:]
    app = tmp_path / "dist" / "app"
    run = record.words(python, app / "app" if form == "--onedir" else app)
    assert run.status == 0, run.stderr
    assert run.check().calls()["f"] == 100
