// SPDX-License-Identifier: Apache-2.0
// Waits for the GIL in the range, by waiting thread and by the thread that held the GIL.

import { ask } from '../api';
import { el } from '../dom';
import { spanAt } from '../spans';
import { Context, Panel, rangeParams } from '../panel';
import { Table } from '../table';
import { threadName } from '../threads';
import { count, counted, duration, share } from '../time';

const FREE = -1; // the holder if no thread held the GIL

interface Pair { waiter: number; holder: number | null; count: number; ns: number; longest: number; from: bigint }
interface Holder { thread: number | null; ns: number; waiters: number; most: number }
type Row = [number, number | null, number, number, number, string];

let waits: Table<Pair>, holders: Table<Holder>, note: HTMLElement, whole = 1;

/** How long other threads waited while each thread held the GIL, and which of them waited longest. */
export function byHolder(pairs: Pair[]): Holder[] {
  const found = new Map<number | null, Pair[]>();
  for (const pair of pairs) if (pair.holder !== FREE) found.set(pair.holder, [...(found.get(pair.holder) ?? []), pair]);
  return [...found].map(([thread, of]) => ({
    thread, ns: of.reduce((sum, pair) => sum + pair.ns, 0), waiters: of.length, most: of.reduce((a, b) => (b.ns > a.ns ? b : a)).waiter,
  }));
}

/** Shows the longest wait of a pair in the timeline. */
async function go(context: Context, pair: Pair): Promise<void> {
  const track = context.trace.tracks.find((t) => t.name === 'GIL' && t.kind === 'states' && t.thread === pair.waiter);
  const found = track && await spanAt(context.api.fetchTile, track.id, pair.from);
  if (!found) return;
  context.store.selectCall(found);
  context.timeline.reveal(found);
}

export const gil: Panel = {
  id: 'gil', title: 'GIL', key: 'code:KeyU', ofRange: true,
  offered: (trace) => trace.tracks.some((track) => track.name === 'GIL' && track.kind === 'states'),
  make(context) {
    const name = (thread: number | null): string => (thread === null ? 'not known' : thread === FREE ? 'nobody: free' : threadName(context.trace.threads[thread]));
    waits = new Table<Pair>(context.store, 'waits', [
      { title: 'waited', width: '92px', text: (pair) => duration(pair.ns), sort: (pair) => pair.ns, bar: (pair) => pair.ns / whole },
      { title: 'share', width: '58px', text: (pair) => share(pair.ns, whole), sort: (pair) => pair.ns },
      { title: 'waits', width: '60px', text: (pair) => count(pair.count), sort: (pair) => pair.count },
      { title: 'longest', width: '80px', text: (pair) => duration(pair.longest), sort: (pair) => pair.longest, hint: () => 'Full length of the longest wait, even if several threads held the GIL during it' },
      { title: 'waiting thread', width: 'minmax(120px, 1fr)', left: true, text: (pair) => name(pair.waiter), sort: (pair) => name(pair.waiter) },
      { title: 'held the GIL', width: 'minmax(120px, 1fr)', left: true, text: (pair) => name(pair.holder), sort: (pair) => name(pair.holder) },
    ], 0, (pair) => { go(context, pair).catch(() => undefined); }, 'Waits for the GIL, by waiting thread and holder');
    holders = new Table<Holder>(context.store, 'holders', [
      { title: 'others waited', width: '110px', text: (row) => duration(row.ns), sort: (row) => row.ns, bar: (row) => row.ns / whole },
      { title: 'share', width: '58px', text: (row) => share(row.ns, whole), sort: (row) => row.ns },
      { title: 'threads', width: '64px', text: (row) => count(row.waiters), sort: (row) => row.waiters },
      { title: 'held the GIL', width: 'minmax(120px, 1fr)', left: true, text: (row) => name(row.thread), sort: (row) => name(row.thread) },
      { title: 'waited longest', width: 'minmax(120px, 1fr)', left: true, text: (row) => name(row.most), sort: (row) => name(row.most) },
    ], 0, (row) => {
      const track = context.trace.tracks.find((t) => t.kind === 'calls' && t.thread === row.thread);
      if (track) context.timeline.revealTrack(track.id);
    }, 'Threads that held the GIL while others waited');
    note = el('div', { class: 'note' });
    return el('div', { class: 'fill' }, note, el('div', { class: 'beside' }, waits.element, holders.element));
  },
  async update(context, signal) {
    const { rows } = await ask<{ rows: Row[] }>('gil', rangeParams(context), signal);
    const pairs = rows.map(([waiter, holder, n, ns, longest, from]: Row): Pair => ({ waiter, holder, count: n, ns, longest, from: BigInt(from) }));
    const waiting = new Set(pairs.map((pair) => pair.waiter)).size, sum = pairs.reduce((ns, pair) => ns + pair.ns, 0);
    const free = pairs.reduce((ns, pair) => ns + (pair.holder === FREE ? pair.ns : 0), 0);
    whole = sum || 1;
    note.textContent = pairs.length ? `${counted(waiting, 'thread')} waited ${duration(sum)} for the GIL${free ? `; ${duration(free)} of it the GIL was free, but no waiting thread was running yet` : ''}. If several threads held the GIL during a wait, the wait counts once for each, with its part of the time.`
      : 'No thread waited for the GIL in this range.';
    waits.set(pairs);
    holders.set(byHolder(pairs));
  },
};
