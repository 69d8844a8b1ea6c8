// SPDX-License-Identifier: Apache-2.0
import { Alignment } from '../src/align';
import { Lanes } from '../src/lanes';
import { Trace, Track } from '../src/model';
import { Store, View } from '../src/store';
import { equal, test } from './harness';

const track = (id: number, kind: Track['kind'], of: Track['of'], number: number, process: number | null, thread: number | null): Track =>
  ({ id, kind, of, process, thread, number, machine: 0, pid: process === null ? 0 : 100 + process, processName: '', threadName: '', name: kind, unit: '', flags: 0, parts: 1 });
const process = (pid: number) => ({ pid, command: `p${pid}`, name: '', recording: pid - 100 });
const thread = (of: number, tid: number) => ({ process: of, tid, name: `t${tid}`, begin: 1000n + BigInt(of) * 10n, until: 1100n + BigInt(of) * 11n });
const trace = {
  folders: ['first', 'second'], machines: [],
  processes: [process(100), process(101)], threads: [thread(0, 1), thread(0, 2), thread(1, 3)],
  tracks: [track(0, 'calls', 'thread', 1, 0, 0), track(1, 'states', 'thread', 1, 0, 0), track(2, 'calls', 'thread', 2, 0, 1), track(3, 'calls', 'thread', 3, 1, 2),
    track(4, 'states', 'cpu', 0, null, null), track(5, 'counter', 'cpu', 0, null, null), track(6, 'states', 'cpu', 1, null, null), track(7, 'states', 'thread', 9, null, null)],
} as unknown as Trace;

/** A store without a page. */
function lanesOf(view: Partial<View> = {}): { lanes: Lanes; view: View } {
  const full = { filter: '', group: 'process', collapsed: [], pinned: [], deep: [], only: [], order: [], ...view } as unknown as View;
  const store = { view: full, arrange: (keys: string[]) => { full.order = [...full.order.filter((key) => !keys.includes(key)), ...keys]; lanes.layout(); } } as unknown as Store;
  const lanes = new Lanes(trace, store, new Alignment(trace));
  return { lanes, view: full };
}

const titles = (lanes: Lanes): string[] => lanes.lanes.map((lane) => (lane.level ? lane.title : lane.title.toUpperCase()));

test('lanes stand under their process, the CPUs behind, the rest of the machine folded', () => {
  equal(titles(lanesOf().lanes), ['P100', 't1', 't2', 'P101', 't3', 'CPUS', 'CPU 0', 'CPU 1', 'REST OF THE MACHINE']);
});

test('lanes are grouped by thread, CPU and kind', () => {
  equal(titles(lanesOf({ group: 'thread' }).lanes), ['THREADS', 't1', 't2', 't3', 'CPUS', 'CPU 0', 'CPU 1', 'REST OF THE MACHINE']);
  equal(titles(lanesOf({ group: 'cpu' }).lanes).slice(0, 5), ['CPU 0', 'states', 'counter', 'CPU 1', 'states']);
  equal(titles(lanesOf({ group: 'kind' }).lanes).filter((title) => title === title.toUpperCase()), ['CALLS', 'STATES', 'CPUS', 'CPU 0', 'CPU 1']);
});

test('a lane is moved among its own, and a group among groups', () => {
  const { lanes } = lanesOf();
  lanes.move('p0/t1', -1);
  equal(titles(lanes).slice(0, 3), ['P100', 't2', 't1']);
  lanes.move('p0/t1', -1);
  equal(titles(lanes).slice(0, 3), ['P100', 't2', 't1']);
  lanes.move('p0/t1', 'p1/t2');
  equal(titles(lanes).slice(0, 3), ['P100', 't2', 't1']);
  lanes.move('p1', -1);
  equal(titles(lanes), ['P101', 't3', 'P100', 't2', 't1', 'CPUS', 'CPU 0', 'CPU 1', 'REST OF THE MACHINE']);
});

const threadsOf = (only: string[] = []): (number | null)[] | undefined => {
  const tracks = lanesOf({ only }).lanes.chosenTracks();
  return tracks && [...new Set(tracks.map((track) => track.thread).filter((id) => id !== null))].sort();
};

test('chosen lanes and groups are threads to ask for', () => {
  equal(threadsOf(), undefined);
  equal(threadsOf(['p0/t1']), [1]);
  equal(threadsOf(['p1', 'p0/t0']), [0, 2]);
  equal(threadsOf(['cpus']), []);
  equal(lanesOf({ only: ['p1', 'p0/t0'] }).lanes.chosenTitles(), ['t1 1', 'p101 101']);
});

test('a line to a lane that is folded ends at the head of its group', () => {
  const { lanes } = lanesOf({ collapsed: ['p0'] }), head = lanes.lanes[0];
  equal(lanes.heightOf(0), head.top + head.height / 2);
  equal(lanes.heightOf(2), lanes.heightOf(0));
  equal(lanes.heightOf(99), undefined);
});

test('recordings side by side have their own times, and tables are of one of them', () => {
  const { lanes, view } = lanesOf({ aligned: true });
  equal(titles(lanes), ['P100', 't1', 't2', 'P101', 't3']);
  equal(lanes.lanes.map((lane) => lane.shift), [1000n, 1000n, 1000n, 1010n, 1010n]);
  equal([lanes.tableShift(), lanes.chosenTracks()?.map((track) => track.id), lanes.chosenTitles()], [1000n, [0, 1, 2], ['first']]);
  view.only = ['p1'];
  equal([lanes.tableShift(), lanes.chosenTracks()?.map((track) => track.id), lanes.groupsOf(1)], [1010n, [3], ['p1']]);
  equal(lanes.alignment.span, 101);
});

test('tasks stand below the threads of their process, by name', () => {
  const task = { ...track(8, 'states', 'task', 1, 1, null), threadName: 'worker Task-7', name: 'task' };
  trace.tracks.push(task);
  const shown = lanesOf(), byKind = lanesOf({ group: 'kind' });
  trace.tracks.pop();
  equal(titles(shown.lanes).slice(3, 6), ['P101', 't3', 'worker Task-7']);
  equal(titles(byKind.lanes).includes('TASKS'), true);
});

test("a task's spans are in its lane, below its states", () => {
  const of = (id: number, kind: Track['kind'], number: number, thread: number | null, process = 1): Track => ({ ...track(id, kind, 'task', number, process, thread), threadName: `worker Task-${number}` });
  const added = [of(8, 'slices', 1, 2), of(9, 'states', 1, null), of(10, 'slices', 2, 2), of(11, 'states', 2, null), of(12, 'states', 1, null, 0)];
  trace.tracks.push(...added);
  const { lanes } = lanesOf();
  trace.tracks.splice(-added.length);
  equal(lanes.lanes.filter((lane) => lane.title.startsWith('worker')).map((lane) => [lane.title, ...lane.parts.map((part) => part.track.id)]),
    [['worker Task-1', 12], ['worker Task-1', 9, 8], ['worker Task-2', 11, 10]]);
});

const onMachine = (machine: number, made: Track): Track => ({ ...made, machine });
const machines = {
  folders: ['/t/monday', '/t/tuesday/'], processes: [], threads: [],
  machines: [{ recording: 0, host: 'web', begin: 100n, until: 300n }, { recording: 1, host: 'web', begin: 9000n, until: 9050n }],
  tracks: [onMachine(0, track(0, 'states', 'thread', 7, null, null)), onMachine(0, { ...track(1, 'states', 'thread', 8, null, null), pid: 8 }), onMachine(0, track(2, 'states', 'cpu', 0, null, null)),
    onMachine(1, track(3, 'states', 'thread', 7, null, null)), onMachine(1, track(4, 'states', 'cpu', 0, null, null))],
} as unknown as Trace;

test('two kernel traces have lanes of their own, and each its begin', () => {
  const view = { filter: '', group: 'process', collapsed: [], pinned: [], deep: [], only: [], order: [], aligned: false } as unknown as View;
  const lanes = new Lanes(machines, { view } as unknown as Store, new Alignment(machines));
  const heads = (): string[] => lanes.lanes.filter((lane) => !lane.level).map((lane) => `${lane.title} ${lane.hint}`);
  equal(heads(), ['CPUs in monday', 'Threads 2 in monday', 'CPUs in tuesday', 'Threads 1 in tuesday']);
  equal(lanes.alignment.offered, true);
  view.aligned = true;
  lanes.layout();
  equal(lanes.lanes.map((lane) => lane.shift), [100n, 100n, 100n, 100n, 100n, 9000n, 9000n, 9000n, 9000n]);
  view.only = [lanes.groupsOf(1)[0]];
  equal([lanes.tableShift(), lanes.chosenTracks()?.map((each) => each.id), lanes.alignment.span], [9000n, [4], 200]);
});

test('a lane knows how many depths it has below those that it shows, and below those that tiles have', () => {
  const { lanes, view } = lanesOf(), depths = (): number[] => {
    const lane = lanes.lanes.find((each) => each.title === 't1');
    return lane ? [lane.parts[1].rows, lane.hidden, lane.undrawn] : [];
  };
  lanes.learn(0, 1000);
  lanes.layout();
  equal(depths(), [20, 108, 872]);
  view.deep = ['p0/t0'];
  lanes.layout();
  equal(depths(), [128, 0, 872]);
  lanes.learn(0, 100);
  equal(lanes.stale, false);
});
