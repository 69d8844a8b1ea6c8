// SPDX-License-Identifier: Apache-2.0
// System calls of the range: by name, as in `krait states`, and their durations over time.

import { ask } from '../api';
import { button, el } from '../dom';
import { Call } from '../model';
import { Context, Panel, trackParams } from '../panel';
import { Table } from '../table';
import { trackName } from '../threads';
import { count, counted, duration } from '../time';
import { CellRow, Scatter, cellLines, readCell } from './scatter';

const [NAME, CALLS, ERRORS, NS, LONGEST, MIN, P50, , P99] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
interface Points { total: number; octave: number; cells: CellRow[] }

let table: Table<number[]>, scatter: Scatter, note: HTMLElement, all: HTMLButtonElement, current: Context, chosen: number | null = null;

function nameOf(id: number): string {
  return current.api.texts.get(id) ?? '\u2026';
}

function go(call: Call): void {
  current.store.selectCall(call);
  current.timeline.reveal(call);
}

async function showPoints(context: Context, signal?: AbortSignal): Promise<void> {
  const range = trackParams(context), columns = scatter.room;
  const answer = await ask<Points>('scatter', { ...range, columns, name: chosen ?? undefined }, signal);
  const cells = answer.cells.map(readCell), folded = cells.some((cell) => cell.count > 1), span = Number(range.until - range.from);
  const what = `${counted(answer.total, 'system call')}${chosen === null ? '' : ` ${nameOf(chosen)}`}`;
  note.textContent = `${what}${folded ? `; near ones are folded into ${count(cells.length)} points, exact sums` : ''}. A cross is an error.`;
  all.hidden = chosen === null;
  scatter.set(cells, answer.octave, columns, { from: range.from, span: Math.max(span, 1) }, `How long ${what} took, over time; arrow keys go from point to point, Enter to its call`);
}

function choose(name: number | null): void {
  chosen = name;
  current.store.pick('syscall', name === null ? '' : String(name));
  table.redraw();
  showPoints(current).catch(() => undefined);
}

export const syscalls: Panel = {
  id: 'syscalls', title: 'System calls', key: '6', ofRange: true,
  missing: (trace) => (trace.tracks.some((track) => track.name === 'system calls') ? null
    : trace.kernel ? 'The trace has no events of system calls.' : 'System calls were not recorded: krait record --kernel records them.'),
  make(context) {
    current = context;
    const name = (row: number[]): string => nameOf(row[NAME]), ns = (title: string, of: (row: number[]) => number): object => ({ title, width: '70px', text: (row: number[]) => duration(of(row)), sort: of });
    table = new Table<number[]>(context.store, 'syscalls', [
      { title: 'system call', width: 'minmax(110px, 1fr)', left: true, text: name, sort: name },
      { title: 'time', width: '76px', text: (row) => duration(row[NS]), sort: (row) => row[NS] },
      { title: 'calls', width: '54px', text: (row) => count(row[CALLS]), sort: (row) => row[CALLS] },
      { title: 'errors', width: '50px', text: (row) => count(row[ERRORS]), sort: (row) => row[ERRORS] },
      ...([['mean', (row: number[]) => row[NS] / row[CALLS]], ['min', (row: number[]) => row[MIN]], ['p50', (row: number[]) => row[P50]], ['p99', (row: number[]) => row[P99]],
        ['longest', (row: number[]) => row[LONGEST]]] as [string, (row: number[]) => number][]).map(([title, of]) => ns(title, of) as never),
    ], 1, (row) => choose(row[NAME]), 'System calls of the range', (row) => row[NAME] === chosen);
    scatter = new Scatter((cell) => cellLines(cell, nameOf(cell.longest.func), trackName(context.trace, cell.longest.track)), go);
    note = el('span', { class: 'message' });
    all = button('All system calls', 'Show all of them in the picture', () => choose(null));
    return el('div', { class: 'fill' }, el('div', { class: 'note bar-row' }, note, all), el('div', { class: 'beside uneven' }, table.element, scatter.element));
  },
  async update(context, signal) {
    const answer = await ask<{ rows: number[][] }>('syscalls', trackParams(context), signal);
    const { syscall } = context.store.view.picks;
    chosen = syscall ? Number(syscall) : null;
    if (chosen !== null && !answer.rows.some((row) => row[NAME] === chosen)) chosen = null;
    table.set(answer.rows);
    await showPoints(context, signal);
  },
};
