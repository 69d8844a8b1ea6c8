// SPDX-License-Identifier: Apache-2.0
import { followed, movesOf } from '../src/follow';
import { jobText } from '../src/jobs';
import { Trace } from '../src/model';
import { equal, test } from './harness';

function traceOf(pids: number[]): Trace {
  return {
    processes: pids.map((pid) => ({ pid, host: 'h', begin: BigInt(pid) })), threads: pids.map((tid, process) => ({ process, tid, begin: 0n })),
    tracks: pids.map((pid, id) => ({ id, kind: 'calls', of: 'thread', pid, number: pid, process: id, thread: id, name: '' })),
  } as unknown as Trace;
}

test('what stood behind a new process is found again', () => {
  const moves = movesOf(traceOf([5, 9]), traceOf([5, 7, 9]));
  equal([moves.same, moves.track(0), moves.track(1)], [false, 0, 2]);
  equal(['p1/t1', 'p1', 'p0/t0', 'threads/t1', 'others/o1', 'cpus', 'kind calls/t1'].map(moves.key), ['p2/t2', 'p2', 'p0/t0', 'threads/t2', 'others/o2', 'cpus', 'kind calls/t2']);
});

test('what comes behind all others moves nothing, and what is gone is not found', () => {
  equal(movesOf(traceOf([5]), traceOf([5, 7])).same, true);
  equal(movesOf(traceOf([5, 7]), traceOf([5])).track(1), undefined);
});

test('the whole stays the whole, and the end stays in sight', () => {
  equal(followed({ from: 0n, span: 100 }, 100, 150), { from: 0n, span: 150 });
  equal(followed({ from: 80n, span: 20 }, 100, 150), { from: 130n, span: 20 });
  equal(followed({ from: 10n, span: 20 }, 100, 150), { from: 10n, span: 20 });
});

test('a long answer says what it is and how far', () => {
  equal(jobText({ name: 'flame', share: 0.429, took: 2.1e9 }), 'flame graph 42%, 2.100 s');
  equal(jobText({ name: 'new one', share: 0, took: 6e8 }), 'new one 600.0 ms');
});
