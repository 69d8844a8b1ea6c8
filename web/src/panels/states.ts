// SPDX-License-Identifier: Apache-2.0
// How long threads and CPUs of the range were in each state, as `krait states` has it.

import { ask } from '../api';
import { button, el } from '../dom';
import { hasStates, stateWords } from '../model';
import { palette, stateRole } from '../palette';
import { Context, Panel, trackParams } from '../panel';
import { Table } from '../table';
import { trackName } from '../threads';
import { count, duration, share } from '../time';
import { isDark } from '../timeline';

type Of = 'thread' | 'cpu';
const [TRACK, NAME, TIMES, NS, LONGEST] = [0, 1, 2, 3, 4];

let table: Table<number[]>, note: HTMLElement, rows: number[][] = [], of: Of = 'thread', current: Context;
const switches = new Map<Of, HTMLButtonElement>();

/** The state's colour on the timeline. Threads on a CPU have other hues there. */
function colourOf(name: string): string {
  return of === 'cpu' && stateRole(name) === name ? '' : palette(isDark()).state(stateRole(name));
}

function show(): void {
  for (const [key, made] of switches) made.setAttribute('aria-pressed', String(key === of));
  table.set(rows.filter((row) => current.trace.tracks[row[TRACK]]?.of === of));
}

function choose(next: Of): void {
  of = next;
  current.store.pick('states of', next === 'thread' ? '' : next);
  show();
}

export const states: Panel = {
  id: 'states', title: 'States', key: '5', ofRange: true,
  missing: (trace) => (hasStates(trace) ? null
    : 'What threads were doing was not recorded. krait record --kernel records it: on a CPU, ready for one, or what each waited for.'),
  make(context) {
    current = context;
    const text = (row: number[]): string => context.api.texts.get(row[NAME]) ?? '\u2026', name = (row: number[]): string => (of === 'thread' ? stateWords(text(row)) : text(row));
    const who = (row: number[]): string => trackName(context.trace, row[TRACK]), span = (): number => context.store.asked.span;
    table = new Table<number[]>(context.store, 'states', [
      { title: 'time', width: '100px', text: (row) => duration(row[NS]), sort: (row) => row[NS], bar: (row) => Math.min(row[NS] / span(), 1) },
      { title: 'share', width: '70px', text: (row) => share(row[NS], span()), sort: (row) => row[NS] },
      { title: 'times', width: '80px', text: (row) => count(row[TIMES]), sort: (row) => row[TIMES] },
      { title: 'mean', width: '90px', text: (row) => duration(row[NS] / Math.max(row[TIMES], 1)), sort: (row) => row[NS] / Math.max(row[TIMES], 1) },
      { title: 'longest', width: '90px', text: (row) => duration(row[LONGEST]), sort: (row) => row[LONGEST] },
      { title: 'state', width: 'minmax(140px, 1fr)', left: true, text: name, sort: name, swatch: (row) => colourOf(text(row)) },
      { title: 'thread or CPU', width: 'minmax(160px, 1fr)', left: true, text: who, sort: who },
    ], 0, (row) => context.timeline.revealTrack(row[TRACK]), 'States of the range');
    note = el('span', {});
    for (const [key, title] of [['thread', 'Threads'], ['cpu', 'CPUs']] as [Of, string][]) switches.set(key, button(title, `States of ${title}`, () => choose(key)));
    if (!context.trace.tracks.some((track) => track.of === 'cpu' && track.kind === 'states')) for (const made of switches.values()) made.hidden = true;
    return el('div', { class: 'fill' }, el('div', { class: 'note bar-row' }, el('span', { class: 'switch', role: 'group', 'aria-label': 'States of' }, ...switches.values()), note), table.element);
  },
  async update(context, signal) {
    rows = (await ask<{ rows: number[][] }>('states', trackParams(context), signal)).rows;
    of = context.store.view.picks['states of'] === 'cpu' ? 'cpu' : 'thread';
    note.textContent = 'As krait states has them; time and share are of the range.';
    show();
  },
};
