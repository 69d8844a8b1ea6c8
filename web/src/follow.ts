// SPDX-License-Identifier: Apache-2.0
// A recording that goes on: the page keeps its state when the server shows more. Numbers of processes,
// threads and tracks may have changed then, because others have come between.

import { Process, Thread, Trace, Track } from './model';
import { Range } from './store';

export interface Moves {
  same: boolean; // all numbers are as before
  track(id: number): number | undefined;
  /** Of lanes (lanes.ts): p1/t3 may be p2/t5 now. */
  key(key: string): string;
}

/** The place of each item of `before` in `after`, by its identity; if several are the same, the first. */
function places<T>(before: T[], after: T[], name: (item: T, of: 'before' | 'after') => string): (number | undefined)[] {
  const found = new Map<string, number>();
  after.forEach((item, i) => { if (!found.has(name(item, 'after'))) found.set(name(item, 'after'), i); });
  return before.map((item) => found.get(name(item, 'before')));
}

export function movesOf(before: Trace, after: Trace): Moves {
  const of = { before, after };
  const process = (p: Process | undefined): string => (p ? `${p.host}/${p.pid}/${p.begin}` : '');
  const thread = (t: Thread | undefined, at: 'before' | 'after'): string => (t ? `${process(of[at].processes[t.process])}/${t.tid}/${t.begin}` : '');
  const track = (t: Track, at: 'before' | 'after'): string =>
    `${t.kind}/${t.of}/${t.machine}/${t.pid}/${t.number}/${thread(t.thread === null ? undefined : of[at].threads[t.thread], at)}/${t.name}`;
  const processes = places(before.processes, after.processes, process), threads = places(before.threads, after.threads, thread), tracks = places(before.tracks, after.tracks, track);
  const lists: Record<string, (number | undefined)[]> = { p: processes, t: threads, o: tracks };
  const part = (text: string): string => text.replace(/^([pto])(\d+)$/, (all, kind: string, number: string) => (lists[kind][Number(number)] === undefined ? all : kind + lists[kind][Number(number)]));
  return {
    same: [processes, threads, tracks].every((list) => list.every((to, i) => to === i)),
    track: (id) => tracks[id],
    key: (key) => key.split('/').map(part).join('/'),
  };
}

/** The range on the screen after the recording has grown: a view of the whole still shows the whole, a view of the end the end, and any other stays. */
export function followed(range: Range, before: number, after: number): Range {
  const until = Number(range.from) + range.span;
  if (until < before) return range;
  if (range.from <= 0n) return { from: 0n, span: after };
  return { from: range.from + BigInt(Math.round(after - before)), span: range.span };
}
