// SPDX-License-Identifier: Apache-2.0
// The call that is selected: where it was called from, what it called, what its time went to and who was to blame.

import { ApiError, ask, readCall } from '../api';
import { button, el } from '../dom';
import { Call, label, place, stateWords } from '../model';
import { palette, wallRole } from '../palette';
import { Context, Panel } from '../panel';
import { sourceOf } from './source';
import { spanAt } from '../spans';
import { count, duration, moment, share } from '../time';
import { isDark } from '../timeline';

interface Wait { state: string; syscall: string; by: string; tid: number; count: number; ns: number; longest: number }
interface Answer extends Call { self?: number; ancestors: Call[]; callees: [number, number, number, number][]; wall?: Record<string, number>; waits?: Wait[] }

let box: HTMLElement;

async function name(context: Context, func: number): Promise<string> {
  const known = await context.api.funcs.wait(func);
  return known ? label(known) : '?';
}

function go(context: Context, call: Call): void {
  context.store.selectCall(call);
  context.timeline.reveal(call);
}

function section(title: string, ...children: HTMLElement[]): HTMLElement {
  return el('section', {}, el('h3', {}, title), ...children);
}

/** What the time went to, as one bar and its parts in words. */
function wallBar(wall: Record<string, number>, length: number): HTMLElement {
  const bar = el('div', { class: 'split', role: 'img' }), list = el('ul', { class: 'legend' }), colours = palette(isDark());
  for (const [state, ns] of Object.entries(wall).sort((a, b) => b[1] - a[1])) {
    const part = el('span'), key = wallRole(state), swatch = el('i');
    part.style.width = `${100 * ns / length}%`;
    part.style.background = swatch.style.background = colours.state(key);
    bar.append(part);
    list.append(el('li', {}, swatch, `${state.replace('_', ' ')} ${duration(ns)} (${share(ns, length)})`));
  }
  bar.setAttribute('aria-label', list.textContent ?? '');
  return el('div', {}, bar, list);
}

async function ancestors(context: Context, answer: Answer): Promise<HTMLElement> {
  const list = el('ol', { class: 'stack' });
  for (const call of answer.ancestors) {
    const read = readCall(call, answer.track);
    list.append(el('li', {}, button(await name(context, call.func), 'Go to this call', () => go(context, read), 'link'), ` ${duration(Number(read.end - read.begin))}`));
  }
  return list;
}

async function callees(context: Context, answer: Answer, length: number): Promise<HTMLElement> {
  const rows = [...answer.callees].sort((a, b) => b[3] - a[3]).slice(0, 40), body = el('tbody');
  for (const [func, calls, , total] of rows) {
    body.append(el('tr', {}, el('td', {}, duration(total)), el('td', {}, share(total, length)), el('td', {}, count(calls)),
      el('td', { class: 'left' }, button(await name(context, func), 'Find all calls of it', () => { context.store.setFunc(func); context.store.openPanel('finder'); }, 'link'))));
  }
  return el('table', { class: 'plain' }, el('thead', {}, el('tr', {}, el('th', {}, 'total'), el('th', {}, 'share'), el('th', {}, 'calls'), el('th', { class: 'left' }, 'callee'))), body);
}

function waits(list: Wait[]): HTMLElement {
  const body = el('tbody');
  for (const wait of list) {
    const who = wait.by ? `${wait.by} ${wait.tid || ''}` : '-';
    body.append(el('tr', {}, el('td', {}, duration(wait.ns)), el('td', {}, count(wait.count)), el('td', {}, duration(wait.longest)), el('td', { class: 'left' }, wait.state),
      el('td', { class: 'left' }, wait.syscall || '-'), el('td', { class: 'left' }, who)));
  }
  return el('table', { class: 'plain' }, el('thead', {}, el('tr', {}, el('th', {}, 'time'), el('th', {}, 'waits'), el('th', {}, 'longest'), el('th', { class: 'left' }, 'for'),
    el('th', { class: 'left' }, 'system call'), el('th', { class: 'left' }, 'woken or held up by'))), body);
}

async function show(context: Context, answer: Answer, signal: AbortSignal): Promise<void> {
  const func = await context.api.funcs.wait(answer.func), length = Number(answer.end - answer.begin);
  if (!func) return;
  const head = el('div', { class: 'call-head' }, el('h2', {}, label(func)), el('div', { class: 'quiet' }, place(func)),
    el('dl', {}, el('dt', {}, 'duration'), el('dd', {}, duration(length)), el('dt', {}, 'begin'), el('dd', {}, moment(answer.begin)),
      el('dt', {}, 'self'), el('dd', {}, answer.self === undefined ? '-' : `${duration(answer.self)} (${share(answer.self, length)})`),
      el('dt', {}, 'depth'), el('dd', {}, String(answer.depth))),
    el('div', { class: 'actions' }, button('Zoom to it', 'F', () => context.store.show(answer.begin, answer.end)),
      button('Select its time', 'Tables then show it alone', () => context.store.select({ from: answer.begin, span: Math.max(length, 1) })),
      button('All calls of it', 'Histogram and list', () => { context.store.setFunc(answer.func); context.store.openPanel('finder'); })));
  const parts: HTMLElement[] = [head];
  if (answer.wall && Object.keys(answer.wall).length) parts.push(section('Where its time went', wallBar(answer.wall, length)));
  if (answer.waits?.length) parts.push(section('What it waited for', waits(answer.waits)));
  if (answer.callees.length) parts.push(section('What it called', await callees(context, answer, length)));
  if (answer.ancestors.length) parts.push(section('Called from, outermost first', await ancestors(context, answer)));
  const source = sourceOf(func, signal);
  if (source) parts.push(source);
  box.replaceChildren(...parts);
}

/** The kernel returns errors as -4095 to -1 (include/linux/err.h). */
function returned(value: number): string {
  return value < 0 && value >= -4095 ? `error ${-value}` : String(value);
}

/** A state, a system call, or who had a CPU. */
async function showSpan(context: Context, call: Call): Promise<void> {
  const track = context.trace.tracks[call.track], length = Number(call.end - call.begin), value = call.value ?? 0, name = await context.api.texts.wait(call.func) ?? '';
  const thread = track.thread !== null ? context.trace.threads[track.thread] : null;
  const facts: [string, string][] = [['duration', duration(length)], ['begin', moment(call.begin)], ['end', moment(call.end)]];
  if (track.kind === 'slices' && track.name === 'system calls') facts.push(['returned', returned(value)]);
  const where = track.of === 'cpu' ? `CPU ${track.number}` : `${thread?.name || track.threadName} ${thread?.tid ?? track.number}`;
  const actions = el('div', { class: 'actions' }, button('Zoom to it', 'F', () => context.store.show(call.begin, call.end)),
    button('Select its time', 'M', () => context.store.select({ from: call.begin, span: Math.max(length, 1) })));
  const blamed = track.kind === 'states' && track.of === 'thread' && value ? context.trace.tracks.find((t) => t.of === 'thread' && t.number === value) : undefined;
  if (track.kind === 'states' && track.of === 'thread' && value) {
    facts.push(['held up by', `${blamed?.threadName ?? ''} ${value}`.trim()]);
  }
  if (blamed || (track.kind === 'states' && name.startsWith('blocked'))) actions.append(button(blamed ? 'Go to that thread' : 'Go to the waker', '[', () => { context.timeline.toBlamed().catch(() => undefined); }));
  box.replaceChildren(el('div', { class: 'call-head' }, el('h2', {}, track.of === 'thread' ? stateWords(name) : name), el('div', { class: 'quiet' }, `${track.name ? `${track.name}, ` : ''}${where}`),
    el('dl', {}, ...facts.flatMap(([title, text]) => [el('dt', {}, title), el('dd', {}, text)])), actions));
}

async function updateSpan(context: Context, chosen: { track: number; depth: number; at: bigint }): Promise<void> {
  const known = context.store.detail ?? await spanAt((track, level, index) => context.api.fetchTile(track, level, index), chosen.track, chosen.at, chosen.depth);
  if (!known) {
    box.replaceChildren(el('p', { class: 'empty' }, 'Nothing is there at that time.'));
    return;
  }
  context.store.detail = known;
  await showSpan(context, known);
}

export const details: Panel = {
  id: 'details', title: 'Details', key: '2', ofRange: false,
  make() {
    box = el('div', { class: 'details fill' });
    return box;
  },
  async update(context, signal) {
    const chosen = context.store.view.call;
    if (!chosen) {
      box.replaceChildren(el('p', { class: 'empty' }, 'Click a call, a state or a system call in the timeline. The arrow keys then go from one to the next, . and , to the next and previous of the same function.'));
      return;
    }
    if (context.trace.tracks[chosen.track]?.kind !== 'calls') {
      if (context.trace.tracks[chosen.track]) await updateSpan(context, chosen);
      return;
    }
    try {
      const answer = await ask<Answer>('call', { track: chosen.track, at: chosen.at, depth: chosen.depth }, signal);
      Object.assign(answer, readCall(answer, chosen.track));
      context.store.detail ??= answer;
      await show(context, answer, signal);
    } catch (error) {
      if (error instanceof ApiError) box.replaceChildren(el('p', { class: 'empty' }, error.message));
      else throw error;
    }
  },
};
