// SPDX-License-Identifier: Apache-2.0
// What differs between two ranges, or between the lanes of two recordings, the largest change first: a row for each function, or
// without calls for each state and system call.

import { ask } from '../api';
import { button, el } from '../dom';
import { label, place } from '../model';
import { Base, Context, Panel, baseParams, showBase, sides, toggleBase } from '../panel';
import { Column, Table } from '../table';
import { count, counted, duration } from '../time';
import { Change, hasEntries, kernelChanges, makeChanges, setChanges } from './compare_kernel';
import { CALLS, FUNC, MEAN, SELF, TOTAL, hasCalls, isTimed } from './functions';

interface Answer { self: number; rows: number[][]; note: string | null }

/** A function on both sides: calls, self, total and mean time (0 if it is not known); a share is that of all self time of its side. */
export interface Side { calls: number; self: number; total: number; mean: number; share: number }
export interface Difference { func: number; now: Side; before: Side }

const NONE: Side = { calls: 0, self: 0, total: 0, mean: 0, share: 0 };

function sideOf(row: number[], whole: number): Side {
  return { calls: row[CALLS], self: row[SELF], total: row[TOTAL], mean: isTimed(row) ? row[MEAN] : 0, share: whole ? row[SELF] / whole : 0 };
}

export function differences(now: Pick<Answer, 'self' | 'rows'>, before: Pick<Answer, 'self' | 'rows'>): Difference[] {
  const found = new Map<number, Difference>(now.rows.map((row) => [row[FUNC], { func: row[FUNC], now: sideOf(row, now.self), before: NONE }]));
  for (const row of before.rows) {
    const known = found.get(row[FUNC]) ?? { func: row[FUNC], now: NONE, before: NONE };
    known.before = sideOf(row, before.self);
    found.set(row[FUNC], known);
  }
  return [...found.values()];
}

/** A function that moved to another file or line is the same one: functions that are missing on one side are matched by name. */
export function joinMoved(rows: Difference[], name: (func: number) => string): Difference[] {
  const gone = new Map<string, Difference[]>(), taken = new Set<Difference>();
  for (const row of rows) if (row.now === NONE) gone.set(name(row.func), [...(gone.get(name(row.func)) ?? []), row]);
  for (const row of rows) {
    const was = row.before === NONE ? gone.get(name(row.func))?.shift() : undefined;
    if (!was) continue;
    row.before = was.before;
    taken.add(was);
  }
  return rows.filter((row) => !taken.has(row));
}

/** "+1.234 ms", "-20.00 us", "0". */
export function signed(value: number, text: (size: number) => string): string {
  return value ? `${value > 0 ? '+' : '\u2212'}${text(Math.abs(value))}` : '0';
}

function percent(by: number): string {
  return `${(100 * by).toFixed(1)} pp`;
}

let table: Table<Difference>, kernel: Table<Change>, note: HTMLElement, empty: HTMLElement, begin: HTMLButtonElement, back: HTMLButtonElement, most = 1;

function columns(context: Context): Column<Difference>[] {
  const name = (row: Difference): string => {
    const func = context.api.funcs.get(row.func);
    return func ? label(func) : '\u2026';
  };
  const hint = (row: Difference): string => {
    const func = context.api.funcs.get(row.func);
    return func ? `${label(func)}\n${place(func)}` : '';
  };
  const ns = (title: string, of: (row: Difference) => number): Column<Difference> => ({ title, width: '80px', text: (row) => duration(of(row)), sort: of });
  const took = (title: string, of: (row: Difference) => number): Column<Difference> => ({ ...ns(title, of), text: (row) => (of(row) ? duration(of(row)) : '-') });
  const n = (title: string, of: (row: Difference) => number): Column<Difference> => ({ title, width: '76px', text: (row) => count(of(row)), sort: of });
  const change = (row: Difference): number => row.now.self - row.before.self;
  return [
    { title: 'function', width: 'minmax(220px, 1fr)', left: true, text: name, sort: name, hint },
    { title: 'self', width: '104px', text: (row) => signed(change(row), duration), sort: (row) => Math.abs(change(row)), bar: (row) => Math.abs(change(row)) / most },
    { title: 'self%', width: '76px', text: (row) => signed(row.now.share - row.before.share, percent), sort: (row) => row.now.share - row.before.share, hint: () => 'The change of its share of all self time, in percentage points' },
    ns('self now', (row) => row.now.self), ns('before', (row) => row.before.self),
    ...(context.trace.samples ? [] : [n('calls now', (row) => row.now.calls), n('before', (row) => row.before.calls), took('mean now', (row) => row.now.mean), took('before', (row) => row.before.mean)]), ns('total now', (row) => row.now.total), ns('before', (row) => row.before.total),
  ];
}

/** "12.00 ms of worker-1 5". */
function sideText(context: Context, side: Base): string {
  const titles = context.timeline.lanes.chosenTitles(side.only);
  return `${duration(side.range.span)}${titles.length ? ` of ${titles.slice(0, 2).join(', ')}${titles.length > 2 ? ' \u2026' : ''}` : ''}`;
}

function drawHead(context: Context): void {
  const { base } = context.store.view, compared = sides(context);
  begin.textContent = base ? 'End comparison' : 'Compare';
  back.hidden = !base;
  empty.hidden = !!compared;
  table.element.hidden = !compared || !hasCalls(context.trace);
  kernel.element.hidden = !compared || hasCalls(context.trace);
  note.textContent = compared ? `now: ${sideText(context, compared.now)}; before: ${sideText(context, compared.before)}` : '';
}

export const compare: Panel = {
  id: 'compare', title: 'Compare', key: 'code:KeyB', ofRange: true, offered: (trace) => hasCalls(trace) || hasEntries(trace),
  make(context) {
    table = new Table<Difference>(context.store, 'compare', columns(context), 1, (row) => context.store.setFunc(row.func), 'Functions of two ranges, and how they differ');
    kernel = makeChanges(context, signed);
    note = el('span', {});
    begin = button('Compare', 'Compare what you choose from now on with this', () => toggleBase(context));
    back = button('Show what was before', 'The range and the lanes that this is compared with', () => showBase(context));
    empty = el('p', { class: 'empty' }, 'Choose a range of time, and lanes by a click on their names if not all are meant: a thread, a process, one of several recordings. Press Compare. What you then choose is compared with it: here function by function, and in the flame graph by colour; without calls by state and system call.');
    return el('div', { class: 'fill' }, el('div', { class: 'note bar-row' }, begin, back, note), empty, table.element, kernel.element);
  },
  async update(context, signal) {
    const compared = sides(context);
    drawHead(context);
    if (!compared) return;
    if (!hasCalls(context.trace)) {
      setChanges(kernel, await kernelChanges(context, compared, signal));
      return;
    }
    const [now, before] = await Promise.all([compared.now, compared.before].map((side) => ask<Answer>('functions', baseParams(context, side), signal)));
    const found = differences(now, before), names = new Map<number, string>();
    for (const { func } of found) {
      const known = await context.api.funcs.wait(func);
      names.set(func, known ? label(known) : String(func));
    }
    const rows = joinMoved(found, (func) => names.get(func) as string);
    most = Math.max(...rows.map((row) => Math.abs(row.now.self - row.before.self)), 1);
    note.append(`; ${counted(rows.length, 'function')}, self ${signed(now.self - before.self, duration)}${now.note ? `; ${now.note}` : ''}`);
    table.set(rows);
  },
};
