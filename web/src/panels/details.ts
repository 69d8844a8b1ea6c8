// SPDX-License-Identifier: Apache-2.0
// The selected call: its callers, its callees, its time by thread state, and the causes of its waits.

import { ApiError, ask, readCall } from '../api';
import { button, el, shortTable } from '../dom';
import { endCell } from '../ends';
import { Segment, Wakeup, askWakeups } from '../overlay';
import { Call, clip, isBlaming, isLosses, label, place, returned, stateWords, stepWords } from '../model';
import { palette, wallRole } from '../palette';
import { Context, Panel } from '../panel';
import { sourceOf } from './source';
import { stretchFact } from '../samples';
import { spanAt } from '../spans';
import { tiesOf } from '../tasks';
import { count, counted, duration, momentText, share } from '../time';
import { isDark } from '../timeline';

interface Wait { state: string; syscall: string; by: string; tid: number; count: number; ns: number; longest: number }
interface Cut { off: boolean; events: number; begin: bigint; end: bigint; ns: number } // a stretch in which the thread was not recorded
interface Answer extends Call { samples?: number; task?: number; before?: Cut; inside?: Cut; after?: Cut; self?: number; ancestors: Call[]; callees: [number, number, number, number][]; wall?: Record<string, number>; waits?: Wait[] }

const PATH_ROWS = 12, CALLEES = 40, WAITS = 20, FLOWS = 12; // rows of tables until the reader asks for all
const LIVE_BEGIN = 3, CUT_END = 7; // enum krait_op_kind

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

/** A bar of the time by thread state, with a legend. */
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
  const isExact = answer.samples === undefined;
  const rows = [...answer.callees].sort((a, b) => b[3] - a[3]);
  const table = el('table', { class: 'plain callees' }, el('thead', {}, el('tr', {}, el('th', {}, 'total'), el('th', {}, 'share'), ...(isExact ? [el('th', {}, 'calls')] : []), el('th', { class: 'left' }, 'callee'))));
  return shortTable(table, rows, CALLEES, (left) => counted(left, 'more callee'), async ([func, calls, , total]) => el('tr', {}, el('td', {}, duration(total)), el('td', {}, share(total, length)), ...(isExact ? [el('td', {}, count(calls))] : []),
    el('td', { class: 'left' }, button(await name(context, func), 'Find all calls of this function', () => { context.store.setFunc(func); context.store.openPanel('finder'); }, 'link'))));
}

function waits(list: Wait[]): Promise<HTMLElement> {
  const table = el('table', { class: 'plain' }, el('thead', {}, el('tr', {}, el('th', {}, 'time'), el('th', {}, 'waits'), el('th', {}, 'longest'), el('th', { class: 'left' }, 'for'),
    el('th', { class: 'left' }, 'system call'), el('th', { class: 'left' }, 'woken or held up by'))));
  return shortTable(table, list, WAITS, (left) => counted(left, 'more row'), (wait) => el('tr', {}, el('td', {}, duration(wait.ns)), el('td', {}, count(wait.count)), el('td', {}, duration(wait.longest)), el('td', { class: 'left' }, wait.state),
    el('td', { class: 'left' }, wait.syscall || '-'), el('td', { class: 'left' }, wait.by ? `${wait.by} ${wait.tid || ''}` : '-')));
}

/** The members of a JSON object such as {"item": "pen", "return": 2} as rows; other text as one row. Values stay text, because a double cannot hold all of Python's integers. */
export function fieldRows(text: string): [string, string][] {
  const rows: [string, string][] = [];
  let depth = 0, start = 1, quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '"') quoted = !quoted;
    if (quoted) i += c === '\\' ? 1 : 0;
    else depth += c === '{' || c === '[' ? 1 : c === '}' || c === ']' ? -1 : 0;
    if (quoted || !((c === ',' && depth === 1) || (c === '}' && depth === 0)) || !text.slice(start, i).trim()) continue;
    const member = /^\s*"((?:[^"\\]|\\.)*)"\s*:\s*(.*)$/s.exec(text.slice(start, i));
    if (!member) return [['', text]];
    rows.push([member[1], member[2]]);
    start = i + 1;
  }
  return rows.length || !text || text === '{}' ? rows : [['', text]];
}

/** The fields of the slice with the range of a call; if there are several, the one with that name. */
async function fieldsOf(track: number, call: Call, name: string): Promise<[string, string][]> {
  const { list } = await ask<{ list: { name: string; fields: string }[] }>('fields', { track, from: call.begin, until: call.end });
  return fieldRows((list.find((each) => each.name === name) ?? list[0])?.fields ?? '');
}

function fieldsSection(title: string, rows: [string, string][]): HTMLElement {
  return section(title, el('table', { class: 'plain fields' }, el('tbody', {}, ...rows.map(([key, value]) => el('tr', {}, el('th', { class: 'left', scope: 'row' }, key), el('td', { class: 'left' }, clip(value)))))));
}

/** A call's arguments and result, if record --args recorded them. They are fields of a slice with the same range. */
async function argumentsSection(context: Context, call: Call, name: string): Promise<HTMLElement | null> {
  const { tracks } = context.trace, { thread } = tracks[call.track];
  const track = tracks.find((each) => each.kind === 'slices' && each.name === 'arguments' && each.thread === thread);
  const rows = track ? await fieldsOf(track.id, call, name) : [];
  return rows.length ? fieldsSection('Arguments', rows) : null;
}

interface Sum { segment: Segment; ns: number; count: number; longest: number }

/** A path's time by thread and activity, the greatest first; `segment` is the longest one of each. */
export function sumPath(path: Segment[]): Sum[] {
  const sums = new Map<string, Sum>();
  for (const segment of path) {
    const key = `${segment.track ?? segment.tid}/${segment.kind}/${segment.syscall ?? ''}`, ns = Number(segment.end - segment.begin);
    const sum = sums.get(key) ?? { segment, ns: 0, count: 0, longest: -1 };
    sums.set(key, sum);
    sum.ns += ns;
    sum.count++;
    if (ns > sum.longest) [sum.segment, sum.longest] = [segment, ns];
  }
  return [...sums.values()].sort((a, b) => b.ns - a.ns);
}

/** Shows a segment of a path, with as much time on each side. */
function showSegment({ trace, timeline, store }: Context, { track, begin, end }: Segment): void {
  const shift = timeline.lanes.shiftOf(track === null ? undefined : trace.tracks[track]);
  store.show(begin - shift, end - shift, 1);
}

/** The critical path of the selection as a table; null while it is switched off. */
async function pathSection(context: Context): Promise<HTMLElement | null> {
  const { overlay } = context.timeline;
  if (!context.store.view.path) return null;
  await overlay.update();
  if (!overlay.path.length) return section('Critical path', el('p', { class: 'empty' }, overlay.problem || 'Select a call or a range of time.'));
  const whole = overlay.path.reduce((sum, s) => sum + Number(s.end - s.begin), 0), table = el('table', { class: 'plain path' },
    el('thead', {}, el('tr', {}, el('th', {}, 'time'), el('th', {}, 'share'), el('th', {}, 'segments'), el('th', { class: 'left' }, 'what it did'), el('th', { class: 'left' }, 'thread'),
      el('th', { class: 'left' }, 'CPU held by'))));
  const row = ({ segment, ns, count: segments }: Sum): HTMLElement => el('tr', {}, el('td', {}, duration(ns)), el('td', {}, share(ns, whole)), el('td', {}, count(segments)),
    el('td', { class: 'left' }, button(segment.syscall ? `${segment.kind}, in ${segment.syscall}` : segment.kind, 'Go to the longest segment', () => showSegment(context, segment), 'link')),
    el('td', { class: 'left' }, `${segment.name ?? ''} ${segment.tid}`), el('td', { class: 'left' }, segment.byTid === null ? '-' : `${segment.byName ?? ''} ${segment.byTid}`));
  return section(`Critical path of ${duration(whole)}, ${counted(overlay.path.length, 'segment')}`, await shortTable(table, sumPath(overlay.path), PATH_ROWS, (left) => counted(left, 'more row'), row));
}

function pathButton(context: Context): HTMLElement | null {
  if (!context.trace.kernel) return null;
  const isOn = context.store.view.path, made = button(isOn ? 'Hide the critical path' : 'Critical path', 'P', () => context.timeline.overlay.togglePath());
  made.setAttribute('aria-pressed', String(isOn));
  return made;
}

/** Why the begin or the end of a call is not in the recording, with a button that goes to the stretch in which nothing was recorded. */
function cutFact(context: Context, title: string, cut: Cut | undefined): HTMLElement[] {
  if (!cut) return [el('dt', {}, title), el('dd', {}, '-')]; // the recording begins or ends there
  const begin = BigInt(cut.begin), end = BigInt(cut.end); // texts in JSON
  const words = cut.off ? 'the recording was switched off here' : `events were lost here: calls may be missing; ${counted(cut.events, 'event')}`;
  return [el('dt', {}, title), el('dd', {}, button(words, 'Go to that time', () => context.store.show(begin, end, 1), 'link'), `, for ${duration(cut.ns)} ${cut.ns < Number(end - begin) ? 'from' : 'at'} ${momentText(begin)}`)];
}

/** Whether the begin or the end of a call is not in the recording, so that nobody knows how long it took. */
function isCut(call: Call): boolean {
  return call.begins === LIVE_BEGIN || call.ends === CUT_END;
}

/** Whether a call that has no end lasts to where the recording is now. */
function goesOn({ trace }: Context, call: Answer): boolean {
  return trace.growing && !call.after && BigInt(call.end) >= BigInt(trace.duration);
}

function cutFacts(context: Context, call: Answer): HTMLElement[] {
  return [...(call.begins === LIVE_BEGIN ? cutFact(context, 'began before it was recorded', call.before) : []),
    ...(call.inside ? cutFact(context, 'not recorded as a whole', call.inside) : []),
    ...(call.ends === CUT_END ? goesOn(context, call) ? [el('dt', {}, 'end'), el('dd', {}, 'not yet: the call goes on')] : cutFact(context, 'end not recorded', call.after) : [])];
}

/** A time with all its digits, as krait cat prints it. */
function timeFact(context: Context, title: string, track: number, at: bigint): HTMLElement[] {
  const text = el('dd', {}), show = (): void => { text.textContent = momentText(context.timeline.said.when(track, at, show)); };
  show();
  return [el('dt', {}, title), text];
}

/** The flows that pass a call, and the work that it submits, does or reads, with their other ends; null if there are none. */
async function flowsSection(context: Context, call: Call): Promise<HTMLElement | null> {
  const { trace } = context, isFlow = (id: number): boolean => trace.tracks[id].kind !== 'flows'; // of which wakeups are
  if (!trace.tracks.some(({ kind, name }) => kind === 'flows' && name === 'flows')) return null;
  const { list, more } = await askWakeups(call.track, 0n, trace.duration + 1n, { begin: call.begin, end: call.end }), flows = list.filter(({ by }) => isFlow(by)).sort((a, b) => Number(a.at - b.at));
  const isWork = flows.some(({ calls }) => calls !== null);
  const table = el('table', { class: 'plain flows' }, el('thead', {}, el('tr', {}, el('th', {}, 'time'), el('th', { class: 'left' }, 'from'), el('th', { class: 'left' }, 'to'), ...isWork ? [el('th', { class: 'left' }, 'work')] : [])));
  const row = ({ by, at, to, runs, calls }: Wakeup): HTMLElement => el('tr', {}, el('td', {}, duration(Number(runs - at))), endCell(context, by, at), endCell(context, to, runs), ...isWork ? [el('td', { class: 'left' }, calls ?? '-')] : []);
  const isCut = more > 0 && flows.length === list.length; // wakeups come after all flows
  return flows.length ? section(`Work and flows${isCut ? `, the first ${count(flows.length)}` : ''}`, await shortTable(table, flows, FLOWS, (left) => counted(left, 'more row'), row)) : null;
}

async function show(context: Context, answer: Answer, signal: AbortSignal): Promise<void> {
  const func = await context.api.funcs.wait(answer.func), length = Number(answer.end - answer.begin);
  if (!func) return;
  const isExact = answer.samples === undefined;
  const head = el('div', { class: 'call-head' }, el('h2', {}, label(func)), el('div', { class: 'quiet' }, place(func)),
    el('dl', {}, ...(isExact ? [el('dt', {}, 'duration'), el('dd', {}, `${isCut(answer) ? 'more than ' : ''}${duration(length)}`)] : [el('dt', {}, 'a stretch, not a call'), el('dd', {}, stretchFact(answer.samples as number, length))]),
      ...timeFact(context, isExact ? 'begin' : 'from', answer.track, answer.begin), ...(isExact ? [] : timeFact(context, 'to', answer.track, answer.end)),
      el('dt', {}, 'self'), el('dd', {}, answer.self === undefined ? '-' : `${duration(answer.self)} (${share(answer.self, length)})`),
      el('dt', {}, 'depth'), el('dd', {}, String(answer.depth)),
      ...(answer.task === undefined ? [] : [el('dt', {}, 'task'), el('dd', {}, context.trace.tracks[answer.task].threadName)]),
      ...(stepWords(answer) ? [el('dt', {}, 'step of a generator or coroutine'), el('dd', {}, stepWords(answer))] : []),
      ...(isExact ? cutFacts(context, answer) : [])),
    el('div', { class: 'actions' }, button('Zoom to it', 'F', () => context.timeline.showCall(answer)),
      button('Select its time', 'Show only its time in the tables', () => context.store.select(context.timeline.rangeOf(answer))),
      button(isExact ? 'All calls of this function' : 'All stretches of this function', isExact ? 'Show a histogram and a list' : 'Show a list', () => { context.store.setFunc(answer.func); context.store.openPanel('finder'); }), pathButton(context)));
  const parts: HTMLElement[] = [head], path = await pathSection(context);
  const told = await argumentsSection(context, answer, label({ ...func, holds: false })), flows = await flowsSection(context, answer);
  if (told) parts.push(told);
  if (path) parts.push(path);
  if (answer.wall && Object.keys(answer.wall).length) parts.push(section('Where its time went', wallBar(answer.wall, length)));
  if (answer.waits?.length) parts.push(section('What it waited for', await waits(answer.waits)));
  if (flows) parts.push(flows);
  if (answer.callees.length) parts.push(section('What it called', await callees(context, answer, length)));
  if (answer.ancestors.length) parts.push(section('Called from, outermost first', await ancestors(context, answer)));
  const source = sourceOf(context.store, func, signal);
  if (source) parts.push(source);
  box.replaceChildren(...parts);
}

/** The waker and the wake-up latency of a wait; for time on a run queue after a wakeup, the waker. */
async function wakerFacts(context: Context, call: Call, name: string): Promise<[string, string][]> {
  const { trace, api } = context, isWait = name.startsWith('blocked'), moments = isWait ? [call.end, call.end + 1n] : [call.begin, call.begin + 1n];
  if (trace.tracks[call.track].of !== 'thread' || (!isWait && name !== 'woken')) return [];
  const { list } = await askWakeups(call.track, moments[0], moments[1]);
  const wakeup = list.find((w) => trace.tracks[w.to].number === trace.tracks[call.track].number && w.at === moments[0]), waker = wakeup && trace.tracks[wakeup.by];
  const facts: [string, string][] = waker ? [['woken by', `${waker.threadName} ${waker.number}`.trim()]] : [];
  const ready = isWait ? await spanAt(api.fetchTile, call.track, call.end) : call;
  const words = ready && (await api.texts.wait(ready.func));
  if (ready && words === 'woken') facts.push(['wake-up latency', duration(Number(ready.end - ready.begin))]);
  return facts;
}

/** Shows a thread state, a system call, or the time that a thread had a CPU. */
async function showSpan(context: Context, call: Call): Promise<void> {
  const track = context.trace.tracks[call.track], length = Number(call.end - call.begin), value = call.value ?? 0, name = await context.api.texts.wait(call.func) ?? '';
  const thread = track.thread !== null ? context.trace.threads[track.thread] : null;
  const facts: [string, string][] = [];
  if (track.kind === 'slices' && track.name === 'system calls') facts.push(['returned', returned(value)]);
  const where = track.of === 'cpu' ? `CPU ${track.number}` : track.of === 'task' ? track.threadName : `${thread?.name || track.threadName} ${thread?.tid ?? track.number}`;
  const actions = el('div', { class: 'actions' }, button('Zoom to it', 'F', () => context.timeline.showCall(call)),
    button('Select its time', 'X', () => context.store.select(context.timeline.rangeOf(call))));
  const isCpu = track.of === 'cpu' && track.kind === 'states' && value > 0, runs = track.of === 'thread' && track.kind === 'states' && ['user', 'system', 'interrupt'].includes(name);
  if (isCpu || runs) actions.append(button(isCpu ? 'Go to the thread' : 'Go to its CPU', 'K', () => { context.timeline.toOther().catch(() => undefined); }));
  if (isCpu) facts.push(['thread', String(value)]);
  const blamed = isBlaming(track) && value ? context.trace.tracks.find((t) => t.of === 'thread' && t.number === value) : undefined;
  if (isBlaming(track) && value) facts.push(['held up by', `${blamed?.threadName ?? ''} ${value}`.trim()]);
  if (isLosses(track) && value) facts.push(['lost', counted(value, 'event')]);
  if (track.kind === 'states') facts.push(...(await wakerFacts(context, call, name)));
  const ties = await tiesOf(context.api.fetchTile, context.trace, call, name);
  if (ties.waitsFor) facts.push(['waits for', ties.waitsFor.threadName]);
  if (ties.wokenBy) facts.push(['woken by', ties.wokenBy.threadName]);
  if (ties.waitsFor || ties.wokenBy) actions.append(button('Go to that task', '[', () => { context.timeline.toBlamed().catch(() => undefined); }));
  if (blamed || (track.kind === 'states' && name.startsWith('blocked'))) actions.append(button(blamed ? 'Go to that thread' : 'Go to the waker', '[', () => { context.timeline.toBlamed().catch(() => undefined); }));
  const told = track.kind === 'slices' && track.of !== 'cpu' && track.name !== 'system calls' ? await fieldsOf(track.id, call, name) : [];
  const onPath = track.of === 'thread' ? pathButton(context) : null, path = await pathSection(context);
  if (onPath) actions.append(onPath);
  box.replaceChildren(el('div', { class: 'call-head' }, el('h2', {}, track.of === 'thread' ? stateWords(name) : name), el('div', { class: 'quiet' }, `${track.name ? `${track.name}, ` : ''}${where}`),
    el('dl', {}, el('dt', {}, 'duration'), el('dd', {}, duration(length)), ...timeFact(context, 'begin', call.track, call.begin), ...timeFact(context, 'end', call.track, call.end), ...facts.flatMap(([title, text]) => [el('dt', {}, title), el('dd', {}, text)])), actions), ...(told.length ? [fieldsSection(track.name === 'arguments' ? 'Arguments' : 'Fields', told)] : []), ...(path ? [path] : []));
}

async function updateSpan(context: Context, chosen: { track: number; depth: number; at: bigint }): Promise<void> {
  const known = context.store.detail ?? await spanAt(context.api.fetchTile, chosen.track, chosen.at, chosen.depth);
  if (!known) {
    box.replaceChildren(el('p', { class: 'empty' }, 'The track has nothing at that time.'));
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
      const path = await pathSection(context);
      box.replaceChildren(...(path ? [path] : []), el('p', { class: 'empty' }, 'Click a call, a state or a system call in the timeline. The arrow keys then go from one to the next; . and , go to the next and previous call of the same function.'));
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
