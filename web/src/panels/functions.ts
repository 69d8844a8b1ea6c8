// SPDX-License-Identifier: Apache-2.0
// The function table of the range, as in `krait report`.

import { ask } from '../api';
import { el } from '../dom';
import { Trace, label, place } from '../model';
import { Context, Panel, rangeParams } from '../panel';
import { palette, wallRole } from '../palette';
import { Column, Table } from '../table';
import { count, counted, duration, share } from '../time';
import { isDark } from '../timeline';

/** Whether the recording has calls: a trace of the kernel alone has none. */
export function hasCalls(trace: Trace): boolean {
  return trace.tracks.some((track) => track.kind === 'calls');
}

interface Answer { self: number; states: string[]; rows: number[][]; note: string | null; damage: string | null }
export const [FUNC, CALLS, SELF, TOTAL, MIN, MEAN, P50, P99, MAX, RUNS, CUT, ERROR] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12];
const FIXED = 13;
const WORDS: Record<string, string> = { on_cpu: 'on CPU', runnable: 'ready', gil: 'GIL', page_fault: 'fault' };

/** Whether a row has a run that was recorded from its begin to its end; otherwise nobody knows how long the runs took. */
export function isTimed(row: number[]): boolean {
  return row[RUNS] > row[CUT];
}

let table: Table<number[]>, note: HTMLElement, whole = 1;

/** Self time by state, as a bar, and in words for the tooltip and for screen readers. Sorted by time off-CPU. */
function split(states: string[]): Column<number[]> {
  const cpu = states.indexOf('on_cpu'), colours = (): string[] => states.map((state) => palette(isDark()).state(wallRole(state)));
  const words = (row: number[]): string => states.map((state, i) => [WORDS[state] ?? state, row[FIXED + i]] as [string, number]).filter(([, ns]) => ns)
    .sort((a, b) => b[1] - a[1]).map(([state, ns]) => `${state} ${share(ns, row[SELF])} (${duration(ns)})`).join('\n');
  return {
    title: 'states of self', width: '150px', left: true, text: () => '', hint: words, sort: (row) => row[SELF] - (cpu < 0 ? 0 : row[FIXED + cpu]),
    parts: (row) => colours().map((colour, i): [string, number] => [colour, row[SELF] ? row[FIXED + i] / row[SELF] : 0]),
  };
}

function legend(states: string[]): HTMLElement {
  const colours = palette(isDark());
  return el('ul', { class: 'legend' }, ...states.map((state) => {
    const swatch = el('i');
    swatch.style.background = colours.state(wallRole(state));
    return el('li', {}, swatch, WORDS[state] ?? state);
  }));
}

/** What the times of a row leave out. */
export function cutText(cut: number): string {
  return cut ? `without ${counted(cut, 'run')} whose begin or end was not recorded, or is not in the range` : '';
}

function columns(context: Context, states: string[]): Column<number[]>[] {
  const name = (row: number[]): string => {
    const func = context.api.funcs.get(row[FUNC]);
    return func ? label(func) : '\u2026';
  };
  const isExact = !context.trace.samples;
  const ns = (title: string, at: number): Column<number[]> => ({ title, width: '76px', text: (row) => duration(row[at]), sort: (row) => row[at] });
  const took = (title: string, at: number): Column<number[]> => ({ ...ns(title, at), text: (row) => (isTimed(row) ? duration(row[at]) : '-'), hint: (row) => cutText(row[CUT]) });
  return [
    { title: 'function', width: 'minmax(240px, 1fr)', left: true, text: name, sort: name, hint: (row) => {
      const func = context.api.funcs.get(row[FUNC]);
      return func ? `${label(func)}\n${place(func)}` : '';
    } },
    { title: 'self', width: '84px', text: (row) => duration(row[SELF]), sort: (row) => row[SELF], bar: (row) => row[SELF] / whole },
    ...(isExact ? [] : [{ ...ns('error', ERROR), hint: () => '19 of 20 times self is off by less than this' }]),
    { title: 'self%', width: '56px', text: (row) => share(row[SELF], whole), sort: (row) => row[SELF] },
    ...(states.length ? [split(states)] : []),
    ns('total', TOTAL),
    ...(isExact ? [{ title: 'calls', width: '76px', text: (row: number[]) => count(row[CALLS]), sort: (row: number[]) => row[CALLS] },
      took('mean', MEAN), took('min', MIN), took('p50', P50), took('p99', P99), took('max', MAX)] : []),
  ];
}

export const functions: Panel = {
  id: 'functions', title: 'Functions', key: '1', ofRange: true, offered: hasCalls,
  make(context) {
    table = new Table<number[]>(context.store, 'functions', columns(context, []), 1, (row) => context.store.setFunc(row[FUNC]), 'Functions of the range');
    note = el('div', { class: 'note' });
    return el('div', { class: 'fill' }, note, table.element);
  },
  async update(context, signal) {
    const answer = await ask<Answer>('functions', rangeParams(context), signal);
    whole = answer.self || 1;
    note.textContent = `${counted(answer.rows.length, 'function')}, ${duration(answer.self)} of the threads' time in ${duration(context.store.asked.span)}`
      + (answer.note ? `; ${answer.note}` : '') + (answer.damage ? `; damaged: ${answer.damage}` : '');
    if (answer.states.length) note.append(legend(answer.states));
    table.setColumns(columns(context, answer.states));
    table.set(answer.rows);
  },
};
