// SPDX-License-Identifier: Apache-2.0
// States of threads and CPUs, and system calls, of the range.

import { ask } from '../api';
import { el } from '../dom';
import { stateWords } from '../model';
import { Context, Panel, rangeParams } from '../panel';
import { Table } from '../table';
import { count, duration, share } from '../time';

interface Sums { rows: number[][] }

let statesTable: Table<number[]>, callsTable: Table<number[]>;

function trackName(context: Context, id: number): string {
  const track = context.trace.tracks[id];
  if (!track) return '';
  if (track.of === 'cpu') return `CPU ${track.number}`;
  const thread = track.thread !== null ? context.trace.threads[track.thread] : null;
  return `${thread?.name || track.threadName} ${track.number}`;
}

export const states: Panel = {
  id: 'states', title: 'States', key: '5', ofRange: true,
  make(context) {
    const name = (row: number[]): string => stateWords(context.api.texts.get(row[1]) ?? '\u2026'), who = (row: number[]): string => trackName(context, row[0]);
    const span = (): number => context.store.asked.span;
    statesTable = new Table<number[]>([
      { title: 'time', width: '100px', text: (row) => duration(row[3]), sort: (row) => row[3], bar: (row) => Math.min(row[3] / span(), 1) },
      { title: 'share', width: '70px', text: (row) => share(row[3], span()), sort: (row) => row[3] },
      { title: 'times', width: '80px', text: (row) => count(row[2]), sort: (row) => row[2] },
      { title: 'longest', width: '90px', text: (row) => duration(row[4]), sort: (row) => row[4] },
      { title: 'state', width: 'minmax(140px, 1fr)', left: true, text: name, sort: name },
      { title: 'thread or CPU', width: 'minmax(160px, 1fr)', left: true, text: who, sort: who },
    ], 0, () => undefined, 'States of the range');
    return el('div', { class: 'fill' }, el('div', { class: 'note' }, 'What threads did and who had the CPUs; without --kernel, waits for the GIL alone.'), statesTable.element);
  },
  async update(context, signal) {
    statesTable.set((await ask<Sums>('states', rangeParams(context), signal)).rows);
  },
};

export const syscalls: Panel = {
  id: 'syscalls', title: 'System calls', key: '6', ofRange: true,
  make(context) {
    const name = (row: number[]): string => context.api.texts.get(row[0]) ?? '\u2026';
    callsTable = new Table<number[]>([
      { title: 'time', width: '100px', text: (row) => duration(row[3]), sort: (row) => row[3] },
      { title: 'calls', width: '80px', text: (row) => count(row[1]), sort: (row) => row[1] },
      { title: 'errors', width: '70px', text: (row) => count(row[2]), sort: (row) => row[2] },
      { title: 'mean', width: '90px', text: (row) => duration(row[3] / row[1]), sort: (row) => row[3] / row[1] },
      { title: 'longest', width: '90px', text: (row) => duration(row[4]), sort: (row) => row[4] },
      { title: 'system call', width: 'minmax(160px, 1fr)', left: true, text: name, sort: name },
    ], 0, () => undefined, 'System calls of the range');
    return el('div', { class: 'fill' }, el('div', { class: 'note' }, 'System calls of the recorded threads; they need --kernel.'), callsTable.element);
  },
  async update(context, signal) {
    callsTable.set((await ask<Sums>('syscalls', rangeParams(context), signal)).rows);
  },
};
