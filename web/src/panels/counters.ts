// SPDX-License-Identifier: Apache-2.0
// Counters of the range, such as the frequency of a CPU: minimum, mean and maximum.

import { ask } from '../api';
import { el } from '../dom';
import { Panel, trackParams } from '../panel';
import { Table } from '../table';
import { quantity } from '../quantity';
import { trackName } from '../threads';
import { count, counted, share } from '../time';

const [TRACK, CHANGES, MIN, MEAN, MAX, FIRST, LAST, KNOWN] = [0, 1, 2, 3, 4, 5, 6, 7];

let table: Table<number[]>, note: HTMLElement;

export const counters: Panel = {
  id: 'counters', title: 'Counters', key: 'code:KeyC', ofRange: true,
  offered: (trace) => trace.tracks.some((track) => track.kind === 'counter'),
  make(context) {
    const { tracks } = context.trace, of = (row: number[]): string => trackName(context.trace, row[TRACK]), name = (row: number[]): string => tracks[row[TRACK]]?.name ?? '';
    const value = (title: string, at: number): object => ({ title, width: '100px', text: (row: number[]) => (tracks[row[TRACK]] ? quantity(row[at], tracks[row[TRACK]]) : ''), sort: (row: number[]) => row[at] });
    table = new Table<number[]>(context.store, 'counters', [
      { title: 'counter', width: 'minmax(120px, 1fr)', left: true, text: name, sort: name },
      { title: 'of', width: 'minmax(120px, 1fr)', left: true, text: of, sort: of },
      ...[['mean', MEAN], ['least', MIN], ['greatest', MAX], ['first', FIRST], ['last', LAST]].map(([title, at]) => value(title as string, at as number) as never),
      { title: 'changes', width: '80px', text: (row) => count(row[CHANGES]), sort: (row) => row[CHANGES] },
      { title: 'known', width: '70px', text: (row) => share(row[KNOWN], context.store.asked.span), sort: (row) => row[KNOWN], hint: () => 'The share of the range in which the value is known' },
    ], 1, (row) => context.timeline.revealTrack(row[TRACK]), 'Counters of the range');
    note = el('div', { class: 'note' });
    return el('div', { class: 'fill' }, note, table.element);
  },
  async update(context, signal) {
    const { rows } = await ask<{ rows: number[][] }>('counters', trackParams(context), signal);
    note.textContent = `${counted(rows.length, 'counter')} with a value in the range. The mean is over time.`;
    table.set(rows);
  },
};
