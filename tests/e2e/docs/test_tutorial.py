# SPDX-License-Identifier: Apache-2.0
"""The tutorial's commands work as they stand, in its order; the pages that README names are there."""

import re
import subprocess
import sysconfig

import pytest

from conftest import one_at_a_time
from pages import blocks, page_text, run_page
from recording import ROOT


@pytest.fixture(scope="module")
def tutorial(krait, any_python, tmp_path_factory):
    """The folder that the tutorial's commands leave, and their runs."""
    folder = tmp_path_factory.mktemp("tutorial")
    with one_at_a_time():
        return folder, run_page("tutorial.md", krait, any_python, folder)


def test_every_command_of_the_tutorial_works(tutorial):
    folder, runs = tutorial
    assert len(runs) >= 10
    for name in ("before.svg", "change.svg", "before.pftrace", "before.speedscope.json", "callgrind.out.before"):
        assert (folder / name).stat().st_size > 1000, name


def test_the_tutorial_compares_two_implementations(tutorial):
    folder, runs = tutorial
    runs = {command: run.stdout for command, run in runs.items() if " both " in command + " "}
    record, compare, plot, outermost, why = runs
    assert "--kernel" in record and "--log" in record and "--plot" in plot
    medians = dict(re.findall(r"^ +10(?: +\S+ \S+){3} +(\S+ \S+) .* (\w+)$", runs[compare], re.M)[i][::-1] for i in (0, 1))
    assert set(medians) == {"iterative", "recursive"}
    (ratio,) = re.findall(r"^The ratio of the medians is ([\d.]+)\.$", runs[compare], re.M)
    assert float(ratio) > 3 or float(ratio) < 1 / 3  # it stands out whatever else the machine does
    assert "95 % confidence" in runs[compare]
    assert (folder / "both.svg").read_text().count("iterative") and "recursive" in (folder / "both.svg").read_text()
    assert [line.split()[0] for line in runs[outermost].splitlines()[1:]] == ["10", "10"]  # though recursive() calls itself
    assert re.search(r"^__main__.recursive .* in 10 calls$", runs[why], re.M) and runs[why].count(" after the start, MainThread ") == 3


@pytest.mark.few_pythons
def test_the_tutorials_program_does_what_its_text_says_and_the_change_mends_it(record, report, python, tmp_path):
    """Its calls do not depend on the machine, and nothing waits."""
    text = dict((i[1], b) for i, b in blocks(page_text("tutorial.md")) if i[0] == "python")["shop.py"]
    sed = re.search(r"^\$ (sed .*)$", page_text("tutorial.md"), re.M)[1]
    (tmp_path / "shop.py").write_text(text)
    seen, said = [], []
    for _ in range(2):
        run = record(python, "shop.py")
        said.append(run.check().stdout)
        seen.append({f["name"]: f["calls"] for f in report(run.path, "--limit", "0") if f["module"] in ("__main__", "re")})
        assert {p.pid: len(p.threads) for p in run.processes} == {run.main.pid: 1}
        subprocess.run(sed, shell=True, cwd=tmp_path, check=True)
    before, after = seen
    assert before["discount"] == after["discount"] == 20_000 and before["Pattern.search"] == after["Pattern.search"] == 50_000
    assert 50_000 <= before["compile"] < 50_100 and 50_000 <= before["_compile"] < 50_100
    assert 3 <= after["compile"] < 100 and 3 <= after["_compile"] < 100
    assert said[0] == said[1] != ""


@pytest.mark.pythons(most=(3, 13))  # what is in a folder of its own is no command `python3`
def test_a_recorded_program_may_use_a_profiler_of_its_own(krait, python, tmp_path):
    runs = run_page("record.md", krait, python, tmp_path)
    profiled, info = runs.values()
    assert re.search(r"^ +\d+ .* shop.py:1\(price\)$", profiled.stdout, re.M)
    assert ("displaced" in info.stdout) != python.has_monitoring


def test_the_commands_of_the_page_of_tasks_work(krait, any_python, tmp_path):
    runs = run_page("tasks.md", krait, any_python, tmp_path)
    (table,) = [run.stdout for command, run in runs.items() if command.endswith("--by task")]
    assert re.search(r"^ +6 .* __main__.handle$", table, re.M) and re.search(r"^ +6 .* __main__.client$", table, re.M)
    assert "lock" in table.splitlines()[0] and "socket" in table.splitlines()[0]
    jobs, functions, declared, own = (run.stdout.splitlines() for command, run in runs.items() if command.startswith("krait intervals"))
    assert len(jobs) == 5 and all(re.search(r" queued +__main__.(resize|upload|checksum) ", row) for row in jobs[1:])
    assert sorted(row.split("  ")[-1] for row in functions[1:]) == [f"__main__.{name}" for name in ("checksum processes", "resize threads", "upload threads")]
    assert sorted(row.split()[-1] for row in declared[1:]) == [f"__main__.{name}" for name in ("checksum", "resize", "upload")]
    (slowest,) = [run for command, run in runs.items() if "--within queued:slowest" in command]
    assert "within queued, 1" in slowest.stderr or re.search(r"within queued, \d+ of 12", slowest.stderr)
    assert sorted(re.search(r" queued +(\w+) .* crew$", row)[1] for row in own[1:]) == ["dry", "iron", "wash"]


def test_the_commands_of_the_page_of_arguments_work(krait, any_python, tmp_path):
    runs = run_page("args.md", krait, any_python, tmp_path)
    (calls,) = [run.stdout.splitlines() for command, run in runs.items() if command.startswith("krait cat")]
    assert len(calls) == 4 and all('item' in line and 'self.owner' in line and "secret" not in line for line in calls)
    (items,) = [run.stdout for command, run in runs.items() if "--key item" in command]
    assert re.search(r"^ +2 .* call +__main__.Cart.add +pen$", items, re.M) and re.search(r"^ +2 .* __main__.Cart.add +book$", items, re.M)
    (owners,) = [run.stdout for command, run in runs.items() if "--key self.owner" in command]
    assert re.search(r"^ +2 .* __main__.Cart.add +ann$", owners, re.M) and re.search(r"^ +2 .* __main__\.Cart.add +bob$", owners, re.M)
    assert "__main__.Cart.add" in (tmp_path / "shop.svg").read_text()


def test_the_commands_of_the_page_of_logging_work(krait, any_python, tmp_path):
    runs = run_page("logging.md", krait, any_python, tmp_path)
    (records,) = [run.stdout.splitlines() for command, run in runs.items() if command.startswith("krait cat")]
    assert len(records) == 5 and sum("has no address" in line for line in records) == 2
    assert sum("was not billed" in line and "DivisionByZero" in line for line in records) == 3
    assert "billed" in (tmp_path / "shop.log").read_text() and "checking" not in (tmp_path / "shop.log").read_text()


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


@pytest.mark.parametrize("page", [p.name for p in DECISIONS if p.name != "README.md"])
def test_a_decision_has_its_parts_and_a_line_in_the_list(page):
    text = (ROOT / "docs" / "decisions" / page).read_text()
    parts = ["Context.", "Decision.", "Measured.", "Tried and left.", "Look again when"]
    assert [part for part in re.findall(r"^\*\*(.*?)\*\*", text, re.M) if part in parts] == parts
    title = text.splitlines()[0].removeprefix("# ")
    assert f"- [{title}]({page})" in (ROOT / "docs" / "decisions" / "README.md").read_text()


PAGES = sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_tests_that_contributing_names_exist():
    names = re.findall(r"\bT=(\w+)", (ROOT / "CONTRIBUTING.md").read_text())
    files = list((ROOT / "tests").rglob("test_*"))
    assert names and [name for name in names if not any(name in file.stem for file in files)] == []


@pytest.mark.parametrize("target, words", [("test", "--only 'x'"), ("test-all", "--all --only 'x'")])
def test_make_passes_on_the_name_of_a_test(target, words):
    done = subprocess.run(["make", "-n", "--no-print-directory", target, "T=x"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == f"tools/test {words}"


def test_no_page_holds_both_sides_of_a_merge():
    assert [page for page in PAGES if re.search(r"^(<{7}|>{7}) ", (ROOT / page).read_text(), re.M)] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_between_the_pages_lead_somewhere(page):
    path = ROOT / page
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", path.read_text()):
        to = (path.parent / target).resolve() if target else path
        assert to.exists(), f"{page}: {target}"
        if anchor:
            anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", to.read_text(), re.M)}
            assert anchor in anchors, f"{page}: {target}#{anchor}"


def test_the_commands_of_the_page_of_intervals_work(krait, any_python, tmp_path):
    runs = run_page("intervals.md", krait, any_python, tmp_path)
    by_key, compared, _, drawn = [run.stdout.splitlines() for command, run in runs.items() if "--name run --by key" in command]
    assert [line.split()[0] for line in by_key[1:]] == ["10", "10"]
    assert [line.split()[-1] for line in by_key[1:]] == ["recursive", "iterative"]
    assert re.match(r"recursive takes [\d.]+ times as long as iterative: with 95 % confidence", compared[4])
    (states,) = [run.stdout.splitlines() for command, run in runs.items() if command.endswith("--name connection")]
    assert [(line.split()[0], line.split()[-1]) for line in states[1:]] == [("3", "opening"), ("6", "ready"), ("6", "busy"), ("0", "closed")]
    assert drawn[4].split()[1:3] == ["run", "recursive"] and (tmp_path / "runs.svg").stat().st_size > 5000
    (orders,) = [run.stdout.splitlines()[1].split() for command, run in runs.items() if command.endswith("--name orders")]
    whole = [{line.split()[-1]: int(line.split()[0].replace(",", "")) for line in run.stdout.splitlines()[1:]} for command, run in runs.items() if "--call" in command]
    each, outermost, *handled = whole
    assert each == {"__main__.recursive": 19730} and outermost == {"__main__.recursive": 10, "__main__.iterative": 10}
    assert handled[:2] == [{"done": 3, "late": 1}, {"0": 4, "1": 4, "2": 4}] and handled[2]["__main__.fetch"] > 12
    (second,) = [run.stderr for command, run in runs.items() if "--within recursive:outermost:2" in command]
    assert "within recursive:outermost, 2 of 10: " in second
    (sent,) = [run.stdout.splitlines()[1].split() for command, run in runs.items() if "--start-call" in command]
    assert (sent[0], sent[-1]) == ("5", "until-sent")
    assert (orders[0], orders[-1]) == ("100", "orders") and (tmp_path / "orders.svg").stat().st_size > 5000


def test_the_commands_of_the_page_of_analyses_work(krait, any_python, tmp_path):
    runs = run_page("analyses.md", krait, any_python, tmp_path)
    _, shown, listed, report, _, _ = [run.stdout.splitlines() for run in runs.values()]
    assert all(f">{name}<" in (tmp_path / "bakery.svg").read_text() for name in ("Declared lanes", "order", "baking", "oven", "waiting"))
    rows = {(line.split()[0], *line.split()[-2:]) for line in shown[1:6]}  # in the order of their totals, which the load decides
    assert rows == {("3", "baking", "bread"), ("2", "baking", "tart"), ("5", "order", "-"), ("5", "oven", "hot"), ("4", "oven", "warm")}
    assert shown[8].split()[:2] == ["5", "10"] and len(listed) == 4 and "time.sleep" in report[1]


def test_the_commands_of_the_page_of_marks_work(krait, any_python, tmp_path):
    runs = run_page("annotate.md", krait, any_python, tmp_path, places=[sysconfig.get_path("purelib")])
    by_span, by_mark, serve, waiting, marks, by_status, by_code, events = [run.stdout for command, run in runs.items() if command.split()[1] in ("report", "intervals", "cat")]
    assert all(text in (tmp_path / "bakery.svg").read_text() for text in (">spans<", ">orders waiting<"))
    assert [line.split()[0] + line.split()[-1] for line in by_span.splitlines()[1:]] == ["40serve", "40bake"]
    assert (tmp_path / "bakery.pftrace").stat().st_size > 5000
    assert re.search(r"^ +40 .* user:mark +order$", by_mark, re.M) and re.search(r"^ +40 .* user:counter +orders waiting$", by_mark, re.M)
    assert [waiting.splitlines()[1].split()[i] for i in (0, -1)] == ["40", "waiting"]
    found = [(line.split()[0], line.split()[-1]) for line in by_status.splitlines()[1:]]
    assert sorted(found) == [("1", "ERROR"), ("2", "UNSET"), ("3", "UNSET")] and " GET /orders " in by_status
    assert re.search(r"^ +1 .* 404$", by_code, re.M) and re.search(r"^ +1 .* user:mark +exception$", events, re.M)
    assert marks.count("user:mark") == 40 and re.search(r"^ +40 .* serve$", serve, re.M)
