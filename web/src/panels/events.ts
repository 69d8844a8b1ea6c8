// SPDX-License-Identifier: Apache-2.0
// All events of the range in order of time, as `krait cat` prints them. Scrolling requests them page by page.

import { ApiError, ask, askFile } from '../api';
import { VirtualList, button, el } from '../dom';
import { Running, jobText } from '../jobs';
import { Trace, clip } from '../model';
import { Context, Panel, timeParams } from '../panel';
import { CatEvent, fieldsText } from '../said';
import { eventOf } from '../store';
import { threadAt } from '../threads';
import { count, counted, moment, seconds } from '../time';

interface Found { time: string | null; nth: number; damage: string | null }
interface Answer { events: CatEvent[]; next: { from: string; skip: number } | null; damage: string | null; unmet: string | null }

const CELL = 4000; // most characters of fields in a row
const PAGE = 500, AHEAD = 100, WAIT = 250, MOST = 20000, PAGE_MOST = 5000, STEPS = 1000, ROW = 22, SAVE_POLL = 400; // WAIT and SAVE_POLL in ms, ROW in pixels, the others in rows; MOST: most rows in memory
let list: VirtualList, note: HTMLElement, unmet: HTMLElement, input: HTMLInputElement, words: HTMLInputElement, outcome: HTMLElement, place: HTMLInputElement, rest: HTMLElement, current: Context;
let events: CatEvent[] = [], next: Answer['next'] = null, begin = 0n, until = 0n, loading = false, chosen = -1, turn = 0, timer = 0;
let front = 0n; // `events` has all events of the range from this time on, up to `next`

/** The thread and the CPU of an event. */
function whereOf(event: CatEvent): string {
  const id = event.packet_context?.vtid ?? event.common_context?.vtid ?? event.common_context?.tid, tid = typeof id === 'number' && id < 0 ? undefined : id, cpu = event.packet_context?.cpu_id;
  const thread = typeof tid === 'number' ? threadAt(current.trace, tid, timeOf(event), event.vpid) : undefined;
  const name = tid === undefined ? '' : `${thread === undefined ? '' : current.trace.threads[thread].name} ${tid}`.trim();
  return [name, cpu === undefined ? '' : `CPU ${cpu}`].filter((text) => text).join(', ');
}

function timeOf(event: CatEvent): bigint {
  return BigInt(event.time_ns) - current.trace.origin;
}

function makeRow(i: number): HTMLElement {
  const event = events[i];
  const cells: [string, string][] = [['cell', moment(timeOf(event))], ['cell left', event.event], ['cell left', whereOf(event)], ['cell left', clip(fieldsText(event.payload), CELL)]];
  const row = el('div', { class: i === chosen ? 'row chosen' : 'row', role: 'row', ...(i === chosen ? { 'aria-selected': 'true' } : {}) }, ...cells.map(([name, text]) => el('span', { class: name, role: 'cell', title: text }, text)));
  row.addEventListener('click', () => choose(i));
  return row;
}

/** The row of the first event with the same time. */
function firstOf(i: number): number {
  let first = i;
  while (first > 0 && events[first - 1].time_ns === events[i].time_ns) first--;
  return first;
}

/** The row of the nth event of a time; -1 if it is not in memory. */
function rowOf(at: bigint, nth: number): number {
  const row = events.findIndex((event) => timeOf(event) === at) + nth;
  return events[row] && timeOf(events[row]) === at ? row : -1;
}

function mark(i: number): void {
  chosen = i;
  list.draw();
}

/** Chooses a row, and shows its time in the timeline. */
function choose(i: number): void {
  mark(i);
  lookAt(timeOf(events[i]), i - firstOf(i));
}

function lookAt(at: bigint, nth: number): void {
  current.store.setCursor(at);
  current.store.look('event', `${at}.${nth}`);
  const { range } = current.store.view, seen = at - current.timeline.lanes.tableShift(), isOut = seen < range.from || seen >= range.from + BigInt(Math.round(range.span));
  if (isOut) current.store.setRange(seen - BigInt(Math.round(range.span / 2)), range.span);
}

/** Makes an event of another panel the one that this table goes to when it opens, if it passes the filter. */
export async function lookFor(context: Context, event: CatEvent, at: bigint): Promise<void> {
  const { events: same } = await ask<Answer>('events', { from: at, until: at + 1n, text: context.store.view.events || undefined, limit: PAGE }), text = JSON.stringify(event);
  const nth = same.findIndex((each) => JSON.stringify(each) === text);
  context.store.setCursor(at);
  if (nth >= 0) context.store.look('event', `${at}.${nth}`);
}

function tell(damage: string | null): void {
  const whole = front <= begin && !next, from = events.length ? moment(timeOf(events[0])) : '';
  const text = whole ? counted(events.length, 'event') : front <= begin ? `the first ${count(events.length)} of the range; scroll for more` : `${count(events.length)} from ${from} on; scroll for more`;
  note.textContent = `${text}${damage ? `; damaged: ${damage}` : ''}`;
  rest.hidden = !next || events.length * ROW > list.element.clientHeight;
}

async function askEvents(from: bigint | string, skip: number, end: bigint, limit: number, signal?: AbortSignal): Promise<Answer> {
  const answer = await ask<Answer>('events', { from, skip, until: end, text: current.store.view.events || undefined, limit }, signal);
  unmet.textContent = answer.unmet;
  unmet.hidden = !answer.unmet;
  return answer;
}

/**
 * Requests up to `limit` events that pass the filter. One answer covers only part of the range, so this sends requests
 * until it has enough events or reaches the end. `each` gets every answer, and returns whether to go on.
 */
export async function askAll<E>(askPart: (from: bigint | string, skip: number, limit: number) => Promise<{ events: E[]; next: Answer['next']; damage: string | null }>, first: { from: bigint | string; skip: number }, limit: number,
  each: (answer: { events: E[]; next: Answer['next']; damage: string | null }) => boolean): Promise<void> {
  let at: { from: bigint | string; skip: number } | null = first, left = limit;
  while (at && left > 0) {
    const answer: { events: E[]; next: Answer['next']; damage: string | null } = await askPart(at.from, at.skip, left);
    if (!each(answer)) return;
    at = answer.next;
    left -= answer.events.length;
  }
}

/** Shows the progress of a search for events that pass the filter. */
function tellSearch(at: string, from: bigint, end: bigint): void {
  const share = Number(BigInt(at) - from) / Math.max(Number(end - from), 1);
  current.tell(share, `events, ${counted(events.length, 'event')} so far, ${Math.floor(100 * share)}%`);
}

/** Runs a load and marks the table as loading. `isLast` tells the load whether a newer load has replaced it. */
async function alone(run: (isLast: () => boolean) => Promise<void>): Promise<void> {
  const mine = ++turn;
  loading = true;
  try {
    await run(() => mine === turn);
  } finally {
    if (mine === turn) loading = false;
  }
}

function more(first: { from: bigint | string; skip: number }, signal?: AbortSignal, limit = PAGE): Promise<void> {
  return alone(async (isLast) => {
    await askAll((from, skip, left) => askEvents(from, skip, until, left, signal), first, limit, (answer) => {
      if (!isLast()) return false;
      events.push(...answer.events);
      next = answer.next;
      dropFront();
      list.set(events.length);
      tell(answer.damage);
      if (next) tellSearch(next.from, begin, until);
      return true;
    });
  });
}

/** Loads a page before the first row. Pages are requested by time, so the length is estimated from the rows in memory. */
function earlier(signal?: AbortSignal): Promise<void> {
  return alone(async (isLast) => {
    const shown = events.length > 1 ? timeOf(events[events.length - 1]) - timeOf(events[0]) : until - begin;
    let length = shown * BigInt(PAGE) / BigInt(2 * Math.max(events.length, 1)) + 1n;
    for (;;) {
      const from = front - length > begin ? front - length : begin, found: CatEvent[] = [];
      let isMore = false, damage: string | null = null;
      await askAll((at, skip, left) => askEvents(at, skip, front, left, signal), { from, skip: 0 }, PAGE, (answer) => {
        found.push(...answer.events);
        isMore = !!answer.next;
        damage = answer.damage;
        if (answer.next) tellSearch(answer.next.from, from, front);
        return isLast();
      });
      if (!isLast()) return;
      if (isMore && length > 1n) {
        length = length / 4n + 1n;
        if (length === 2n) length = 1n;
        continue;
      }
      putInFront(found, from);
      tell(damage);
      if (found.length || from <= begin) return;
      length *= 8n;
    }
  });
}

function putInFront(found: CatEvent[], from: bigint): void {
  events.unshift(...found);
  front = from;
  if (chosen >= 0) chosen += found.length;
  dropBack();
  list.set(events.length);
  list.element.scrollTop += found.length * ROW;
}

/** The first row from `at` on whose time differs from the row before, so that a cut does not separate events of one time. */
function border(at: number): number {
  let to = at;
  while (to > 0 && to < events.length && events[to].time_ns === events[to - 1].time_ns) to++;
  return to;
}

function dropFront(): void {
  const n = events.length > MOST ? border(events.length - MOST + PAGE) : 0;
  if (!n || n >= events.length) return;
  const { scrollTop } = list.element;
  events.splice(0, n);
  front = timeOf(events[0]);
  chosen = Math.max(chosen - n, -1);
  list.element.scrollTop = Math.max(scrollTop - n * ROW, 0);
}

function dropBack(): void {
  const n = events.length > MOST ? border(MOST - PAGE) : events.length;
  if (n >= events.length) return;
  next = { from: String(timeOf(events[n])), skip: 0 };
  events.length = n;
  if (chosen >= n) chosen = -1;
}

function scrolled(): void {
  const { scrollTop, clientHeight, scrollHeight } = list.element;
  if (loading) return;
  if (next && scrollTop + clientHeight > scrollHeight - AHEAD * ROW) goOn();
  else if (front > begin && scrollTop < AHEAD * ROW) void current.wait((signal) => earlier(signal));
}

function goOn(): void {
  const from = next;
  if (from && !loading) void current.wait((signal) => more(from, signal));
}

/** Replaces all rows by the events from a time on. */
async function jump(from: bigint, signal?: AbortSignal, nth = 0): Promise<void> {
  events = [];
  next = null;
  chosen = -1;
  front = from;
  place.value = String((from - begin) * BigInt(STEPS) / (until > begin ? until - begin : 1n));
  list.set(0);
  await more({ from, skip: 0 }, signal, Math.min(nth + PAGE, PAGE_MOST));
  list.element.scrollTop = 0;
  for (let before = front + 1n; events.length * ROW < list.element.clientHeight && front > begin && front < before;) { // near the end
    before = front;
    await earlier(signal);
  }
}

/** Goes to a position in the range, in 1/STEPS of it. */
function goTo(share: number): void {
  clearTimeout(timer);
  const at = begin + (until - begin) * BigInt(share) / BigInt(STEPS);
  timer = window.setTimeout(() => { void current.wait((signal) => jump(share === STEPS && at > begin ? at - 1n : at, signal)); }, WAIT);
}

// ---- search ----

/** Finds the next or previous match in the selection, or else in the whole recording; wraps around at the end. */
async function find(forward: boolean): Promise<void> {
  const text = words.value.trim(), { store, trace } = current, { selected } = store.view;
  if (!text) {
    words.focus();
    return;
  }
  const all = selected ? { from: begin, until } : { from: 0n, until: trace.duration + 1n }, [at, nth] = eventOf(current.store.view), first = list.element.scrollTop / ROW;
  const here = at ?? (events.length ? timeOf(events[Math.min(Math.floor(first), events.length - 1)]) : begin), skip = at === null ? 0 : nth + Number(forward);
  outcome.textContent = '';
  await current.wait(async (signal) => {
    const query = { ...all, text: store.view.events || undefined, words: text, forward: Number(forward) };
    let found = await ask<Found>('find', { ...query, at: here, skip }, signal), around = '';
    if (found.time === null) {
      found = await ask<Found>('find', query, signal);
      around = forward ? 'continued from the beginning' : 'continued from the end';
    }
    if (found.time === null) outcome.textContent = `no event contains "${clip(text)}"${found.damage ? `; damaged: ${found.damage}` : ''}`;
    else {
      outcome.textContent = around;
      await goToEvent(BigInt(found.time), found.nth, signal);
    }
  });
}

/** Chooses the nth event of a time, in the table and in the timeline. */
async function goToEvent(at: bigint, nth: number, signal: AbortSignal): Promise<void> {
  if (rowOf(at, nth) < 0 && at >= begin && at < until) await jump(at, signal, nth);
  const row = rowOf(at, nth);
  mark(row);
  if (row >= 0) list.reveal(row);
  lookAt(at, nth); // may move the range, which requests the events of the new range
}

// ---- export ----

function quoted(text: string): string {
  return `'${text.replace(/'/g, "'\\''")}'`;
}

/** The commands that write the range to files; one krait cut per folder. */
export function commands(trace: Pick<Trace, 'folders' | 'origin'>, from: bigint, end: bigint, filter: string): string[] {
  const cut = trace.folders.map((folder, i) => `krait cut ${folder} --from ${seconds(from)} --until ${seconds(end)} -o part${i ? i + 1 : ''}`);
  return [...cut, `krait cat --json --begin ${seconds(trace.origin + from)} --end ${seconds(trace.origin + end - 1n)}${filter ? ` --filter ${quoted(filter)}` : ''} ${trace.folders.join(' ')} > events.json`];
}

function commandRow(text: string): HTMLElement {
  const copy = button('Copy', 'Copy this command', () => {
    void navigator.clipboard.writeText(text).then(() => { copy.textContent = 'Copied'; });
  });
  return el('div', { class: 'bar-row' }, copy, el('code', {}, text));
}

let saving: AbortController | null = null;

function download(file: Blob, name: string): void {
  const url = URL.createObjectURL(file), link = el('a', { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

type Save = (status: HTMLElement, signal: AbortSignal) => Promise<string>;

/** Saves all events of the range that pass the filter, one JSON object per line, as krait cat --json prints them. */
async function saveEvents(status: HTMLElement, signal: AbortSignal): Promise<string> {
  const parts: Blob[] = [];
  let at: Answer['next'] = { from: String(begin), skip: 0 }, n = 0;
  while (at) {
    const answer: Answer = await askEvents(at.from, at.skip, until, 5000, signal);
    parts.push(new Blob(answer.events.map((event) => `${JSON.stringify(event)}\n`)));
    n += answer.events.length;
    at = answer.next;
    status.textContent = `${counted(n, 'event')} so far`;
  }
  download(new Blob(parts, { type: 'application/x-ndjson' }), 'events.json');
  return `saved ${counted(n, 'event')} as events.json`;
}

/** Saves the range as a separate trace, in a tar archive from the server. */
async function saveTrace(status: HTMLElement, signal: AbortSignal): Promise<string> {
  const look = window.setInterval(() => {
    ask<Running[]>('progress').then((running) => {
      const job = running.find(({ name }) => name === 'cut');
      if (job && !signal.aborted) status.textContent = jobText(job);
    }).catch(() => undefined);
  }, SAVE_POLL);
  try {
    const file = await askFile('cut', { from: begin, until }, signal);
    download(new Blob([file], { type: 'application/x-tar' }), 'part.tar');
    return `saved ${count(Math.ceil(file.size / 1024))} KiB as part.tar`;
  } finally {
    clearInterval(look);
  }
}

/** A button that saves, a button that cancels, and the progress. */
function saveRow(text: string, what: string, save: Save): HTMLElement {
  const status = el('span', { role: 'status' }), cancel = button('Cancel', 'Cancel saving', () => saving?.abort());
  const start = button(text, what, () => {
    saving?.abort();
    const { signal } = saving = new AbortController(), end = (said: string): void => {
      status.textContent = said;
      cancel.hidden = true;
      start.disabled = false;
    };
    start.disabled = true;
    cancel.hidden = false;
    status.textContent = 'saving';
    save(status, signal).then(end, (error) => end(signal.aborted ? 'cancelled' : error instanceof Error ? error.message : String(error)));
  });
  cancel.hidden = true;
  return el('div', { class: 'bar-row' }, start, cancel, status);
}

function showExport(dialog: HTMLDialogElement): void {
  const range = `${moment(begin)} to ${moment(until)}`;
  dialog.replaceChildren(el('div', { class: 'help-body' }, el('h2', {}, 'Export'),
    el('p', {}, `The range ${range} as a separate trace, which krait and babeltrace2 can read:`),
    saveRow('Save the trace', 'Save a tar archive; unpack it with tar xf part.tar', saveTrace),
    el('p', {}, 'The events that pass the filter, one JSON object per line:'),
    saveRow('Save the events', 'As krait cat --json prints them', saveEvents),
    el('p', {}, 'The same on the command line:'),
    ...commands(current.trace, begin, until, current.store.view.events).map(commandRow)), button('Close', 'Esc', () => dialog.close()));
  dialog.showModal();
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
    unmet = el('div', { class: 'note unmet', role: 'status' });
    unmet.hidden = true;
    rest = button('Go on', 'Search the rest of the range for events that pass the filter', goOn);
    rest.hidden = true;
    input = el('input', { type: 'search', class: 'event-filter', placeholder: 'Filter: name == "sched_switch" && payload.next_tid == 12', 'aria-label': 'Filter of events, as for krait cat --filter', spellcheck: 'false' });
    input.addEventListener('input', () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => context.store.setEvents(input.value.trim()), WAIT);
    });
    place = el('input', { type: 'range', class: 'place', min: '0', max: String(STEPS), value: '0', 'aria-label': 'Position in the range', title: 'Position in the range: drag to go to another time' });
    place.addEventListener('input', () => goTo(Number(place.value)));
    const dialog = el('dialog', { class: 'help export' }), out = button('Export', 'Save the range as a trace, or its events as JSON', () => showExport(dialog));
    dialog.addEventListener('close', () => saving?.abort());
    words = el('input', { type: 'search', class: 'event-words', placeholder: 'Search', 'aria-label': 'Search events for a text', title: 'Text in the line of an event, as krait cat prints it; Enter finds the next match, Shift+Enter the previous one', spellcheck: 'false' });
    words.addEventListener('input', () => {
      outcome.textContent = '';
      context.store.look('words', words.value);
    });
    words.addEventListener('keydown', (event) => { if (event.key === 'Enter') void find(!event.shiftKey); });
    outcome = el('span', { role: 'status', class: 'outcome' });
    const steps = [button('\u2191', 'Previous match (Shift+Enter)', () => void find(false), 'icon'), button('\u2193', 'Next match (Enter)', () => void find(true), 'icon')];
    list = new VirtualList(ROW, makeRow, 'table-rows');
    list.element.addEventListener('scroll', scrolled);
    list.element.addEventListener('keydown', key);
    const table = el('div', { class: 'table events', role: 'table', 'aria-rowcount': '-1', 'aria-label': 'Events of the range' }, makeHead(), list.element);
    table.style.setProperty('--columns', '130px minmax(110px, 1fr) minmax(110px, 0.8fr) minmax(160px, 4fr)');
    return el('div', { class: 'fill' }, el('div', { class: 'note bar-row' }, input, el('span', { class: 'bar-row search' }, words, ...steps), place, out, outcome, note, rest), unmet, table, dialog);
  },
  async update(context, signal) {
    const { from, until: end } = timeParams(context);
    if (document.activeElement !== input) input.value = context.store.view.events;
    if (document.activeElement !== words) words.value = context.store.view.looks.words ?? '';
    clearTimeout(timer);
    begin = from;
    until = end >= context.trace.duration ? end + 1n : end; // the last event is at the recording's end
    const [at, nth] = eventOf(context.store.view), isThere = at !== null && at > from && at < until;
    context.store.setCursor(at);
    try {
      await jump(isThere ? at : from, signal, isThere ? nth : 0);
      if (at !== null) mark(rowOf(at, nth));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      list.set(0);
      note.textContent = error.message;
      unmet.hidden = true;
    }
  },
};
