// SPDX-License-Identifier: Apache-2.0
// Every event of the range as `krait cat` has it, in the order of time; what is scrolled to is asked for page by page.

import { ApiError, ask } from '../api';
import { VirtualList, el } from '../dom';
import { Context, Panel, timeParams } from '../panel';
import { threadAt } from '../threads';
import { count, counted, moment } from '../time';

type Value = string | number | boolean | null | Value[] | { [name: string]: Value };
type Fields = Record<string, Value>;
export interface CatEvent { time_ns: string; event: string; vpid?: number; packet_context?: Fields; common_context?: Fields; payload?: Fields }
interface Answer { events: CatEvent[]; next: { from: string; skip: number } | null; damage: string | null }

const PAGE = 500, AHEAD = 100, WAIT = 250;
let list: VirtualList, note: HTMLElement, input: HTMLInputElement, current: Context;
let events: CatEvent[] = [], next: Answer['next'] = null, until = 0n, loading = false, chosen = -1, turn = 0, timer = 0;

/** "fd = 3, name = open": an enumeration by its label; integers of 64 bits come as texts. */
export function valueText(value: Value): string {
  if (value === null || typeof value !== 'object') return typeof value === 'string' && !/^-?\d+$/.test(value) ? JSON.stringify(value) : String(value);
  if (value instanceof Array) return `[${value.map(valueText).join(', ')}]`;
  if ('label' in value && 'value' in value) return value.label === null ? valueText(value.value) : String(value.label);
  return `{ ${fieldsText(value)} }`;
}

export function fieldsText(fields: Fields | undefined): string {
  return Object.entries(fields ?? {}).map(([name, value]) => `${name} = ${valueText(value)}`).join(', ');
}

/** The thread that an event is of, or the CPU. */
function whereOf(event: CatEvent): string {
  const tid = event.packet_context?.vtid ?? event.common_context?.vtid ?? event.common_context?.tid, cpu = event.packet_context?.cpu_id;
  const thread = typeof tid === 'number' ? threadAt(current.trace, tid, timeOf(event), event.vpid) : undefined;
  const name = tid === undefined ? '' : `${thread === undefined ? '' : current.trace.threads[thread].name} ${tid}`.trim();
  return [name, cpu === undefined ? '' : `CPU ${cpu}`].filter((text) => text).join(', ');
}

function timeOf(event: CatEvent): bigint {
  return BigInt(event.time_ns) - current.trace.origin;
}

function makeRow(i: number): HTMLElement {
  const event = events[i];
  const cells: [string, string][] = [['cell', moment(timeOf(event))], ['cell left', event.event], ['cell left', whereOf(event)], ['cell left', fieldsText(event.payload)]];
  const row = el('div', { class: i === chosen ? 'row chosen' : 'row', role: 'row' }, ...cells.map(([name, text]) => el('span', { class: name, role: 'cell', title: text }, text)));
  row.addEventListener('click', () => choose(i));
  return row;
}

/** The timeline goes there. */
function choose(i: number): void {
  const { span } = current.store.view.range, at = timeOf(events[i]);
  chosen = i;
  list.draw();
  if (current.store.view.selected) current.store.setRange(at - BigInt(Math.round(span / 2)), span);
}

function tell(damage: string | null): void {
  note.textContent = `${next ? `the first ${count(events.length)} of the range; scroll for more` : counted(events.length, 'event')}${damage ? `; damaged: ${damage}` : ''}`;
}

async function more(first: { from: bigint | string; skip: number }, signal?: AbortSignal): Promise<void> {
  const mine = ++turn;
  loading = true;
  try {
    const text = current.store.view.events || undefined;
    const answer = await ask<Answer>('events', { from: first.from, skip: first.skip, until, text, limit: PAGE }, signal);
    if (mine !== turn) return;
    events.push(...answer.events);
    next = answer.next;
    list.set(events.length);
    tell(answer.damage);
  } finally {
    if (mine === turn) loading = false;
  }
}

function scrolled(): void {
  const { scrollTop, clientHeight, scrollHeight } = list.element;
  if (next && !loading && scrollTop + clientHeight > scrollHeight - AHEAD * 22) more(next).catch(() => undefined);
}

function key(event: KeyboardEvent): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (!step || !events.length) return;
  event.preventDefault();
  event.stopPropagation();
  const to = Math.min(Math.max(chosen + step, 0), events.length - 1);
  list.reveal(to);
  choose(to);
}

function makeHead(): HTMLElement {
  return el('div', { class: 'table-head', role: 'row' }, ...['time', 'event', 'where', 'fields'].map((title, i) => el('span', { class: i ? 'cell left' : 'cell', role: 'columnheader' }, title)));
}

export const eventTable: Panel = {
  id: 'events', title: 'Events', key: '8', ofRange: true,
  make(context) {
    current = context;
    note = el('span', { class: 'message' });
    input = el('input', { type: 'search', class: 'event-filter', placeholder: 'Filter: name == "sched_switch" && payload.next_tid == 12', 'aria-label': 'Filter of events, as krait cat --filter', spellcheck: 'false' });
    input.addEventListener('input', () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => context.store.setEvents(input.value.trim()), WAIT);
    });
    list = new VirtualList(22, makeRow, 'table-rows');
    list.element.addEventListener('scroll', scrolled);
    list.element.addEventListener('keydown', key);
    const table = el('div', { class: 'table events', role: 'table', 'aria-label': 'Events of the range' }, makeHead(), list.element);
    table.style.setProperty('--columns', '130px minmax(110px, 1fr) minmax(110px, 0.8fr) minmax(160px, 4fr)');
    return el('div', { class: 'fill' }, el('div', { class: 'note bar-row' }, input, note), table);
  },
  async update(context, signal) {
    const { from, until: end } = timeParams(context);
    if (document.activeElement !== input) input.value = context.store.view.events;
    events = [];
    list.set(0);
    next = null;
    chosen = -1;
    until = end >= context.trace.duration ? end + 1n : end; // the last event is at the recording's end
    try {
      await more({ from, skip: 0 }, signal);
      list.element.scrollTop = 0;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      list.set(0);
      note.textContent = error.message;
    }
  },
};
