# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio and of greenlets: programs that run them, and what recordings, pictures and exports have of them."""

from conftest import verb_json
from tracks_read import tracks


def spans(folder, *span):
    """{(place, number, track): [(begin, end, name)]} of the tracks of slices; times in us."""
    found = {}
    for (kind, place, number, name), entries in tracks(folder, *span).items():
        if kind == "SLICES":
            found[place, number, name] = [(int(a) // 1000, int(b) // 1000, text) for a, b, text, *_ in entries]
    return found


IN_PERFETTO = """
    select t.name, p.name, thread.name, count(*)
    from slice s join thread_track t on s.track_id = t.id left join track p on t.parent_id = p.id join thread using (utid)
    where s.category = 'span' group by t.id order by t.id"""


def runs(thread):
    """(task, reason) of each step, from its run to its leave; checks that they alternate."""
    steps, open_task = [], None
    for e in thread.read():
        if e.name == "task:run":
            assert open_task is None
            open_task = e.fields["task"]
        elif e.name == "task:leave":
            assert open_task == e.fields["task"]
            steps.append((open_task, e.fields["reason"]))
            open_task = None
    assert open_task is None
    return steps


def merged(names):
    """Without repeats: a task may note several steps in one."""
    return [name for i, name in enumerate(names) if not i or names[i - 1] != name]


def last_moment(krait, trace):
    """One nanosecond after the first call that has an end: just after what was restated, for --at."""
    return f"{verb_json(krait, 'intervals', trace, '--call', 'leaf', '--list', '--limit', '1')['list'][0]['begin_ns'] / 1e9:.9f}s"


GEVENT = """
    import gevent, sys
    from gevent import queue, socket, subprocess
    from gevent.event import AsyncResult, Event
    from gevent.lock import Semaphore
    def sleeps():
        gevent.sleep(0.02)
    def yields():
        gevent.sleep(0)
    def receives(it):
        it.recv(1)
    def locks(it):
        it.acquire()
    def takes(it):
        it.get()
    def reads(it):
        it.get()
    def waits(it):
        it.wait()
    def joins(it):
        it.join()
    def child():
        subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(0.3)"]).wait()
    def fails():
        raise KeyError("fails")
    class Own(gevent.Greenlet):
        def _run(self):
            gevent.sleep(0.01)
    def main():
        near, far = socket.socketpair()
        semaphore, line, event, result = Semaphore(0), queue.Queue(), Event(), AsyncResult()
        sleeper = gevent.spawn(sleeps)
        sleeper.name = "the sleeper"
        lets = [sleeper, gevent.spawn(yields), gevent.spawn(receives, near), gevent.spawn(locks, semaphore), gevent.spawn(takes, line),
                gevent.spawn(waits, event), gevent.spawn(reads, result), gevent.spawn(joins, sleeper), gevent.spawn(child), Own(), gevent.spawn(fails)]
        lets[-2].start()
        gevent.spawn_raw(sleeps)
        gevent.sleep(0.03)
        far.send(b"x"), semaphore.release(), line.put(1), event.set(), result.set(1)
        gevent.joinall(lets)
    main()
"""
NAMES = """
    process 100 python3
    code 1 python app main app.py 1
    code 2 name - load - 0
    code 3 name - parse - 0
    code 4 name - queue - 0
    code 5 name - share - 0
    code 6 name - json - 0
    code 7 name - third - 0
    """
# The second task waits for a future, which the first one's step ends; then the first waits for the second, in another thread.
TASKS = (
    NAMES
    + """
    task 1 1 Task-1
    task 2 1 second
    thread 100 MainThread
    1us call 1
    10us run 2
    15us leave 2 1 4096
    20us run 1
    25us wake 4096
    30us leave 1 2 2
    99us return
    thread 101 Other
    2us call 1
    40us run 2
    50us leave 2 3
    60us run 1
    70us leave 1 3
    98us return
    """
)

THREE_GREENLETS = """
process 7 python3
code 1 python m main m.py 1
task 1 1 first
task 2 1 second
task 3 1 gevent.hub
thread 7
0us call 1
"""
# The last ones are run by gevent's hub and by the main greenlet, which is no task.
GREENLETS = THREE_GREENLETS + """
1us run 1
10us leave 1 5 2
10us run 2
20us leave 2 5 1
20us run 1
30us leave 1 5 3
30us run 3
40us leave 3 5 2
40us run 2
50us leave 2 5 0
60us run 2
70us leave 2 3
80us return
"""
