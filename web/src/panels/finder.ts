// SPDX-License-Identifier: Apache-2.0
// All calls of one function: a histogram of their durations, in which the reader can choose a part, and a table.

import { ask, readCall } from '../api';
import { button, el } from '../dom';
import { Call, label, place, stepWords } from '../model';
import { Context, Panel, rangeParams } from '../panel';
import { hasCalls } from './functions';
import { Bar, LEFT, drawHistogram, scaleOf } from './histogram';
import { stretchesText } from '../samples';
import { Column, Table } from '../table';
import { count, counted, duration, moment, momentText } from '../time';

type Found = Call & { cut?: boolean }; // cut: it took longer, because its begin or end is not in the range, or was not recorded
interface Answer { matched: number; cut: number; resumed: number; yielded: number; histogram: [number, number, number][]; calls: Found[]; fastest: Call | null }

let title: HTMLElement, canvas: HTMLCanvasElement, table: Table<Found>, note: HTMLElement;
let histogram: Bar[] = [], brush: [number, number] | null = null, current: Context, ends: HTMLElement;

function draw(): void {
  drawHistogram(canvas, histogram, brush);
}

function listenToBrush(): void {
  let from: number | null = null;
  const at = (event: PointerEvent): number => scaleOf(histogram).ns(event.offsetX - LEFT, Math.max(canvas.clientWidth - LEFT, 1));
  canvas.addEventListener('pointerdown', (event) => {
    from = at(event);
    brush = null;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (from === null) return;
    const to = at(event);
    brush = [Math.min(from, to), Math.max(from, to)];
    draw();
  });
  canvas.addEventListener('pointerup', () => {
    from = null;
    current.store.setBrush(brush && [Math.floor(brush[0]), Math.ceil(brush[1])]);
  });
}

/** The range of durations after a key: an arrow key chooses a bar, with Shift it adds the next bar. */
export function brushByKey(bars: [number, number, number][], chosen: [number, number] | null, key: string, adds: boolean): [number, number] | null {
  const step = key === 'ArrowRight' ? 1 : -1, last = chosen ? bars.findIndex((bar) => bar[0] > chosen[1]) : -1, end = last < 0 ? bars.length : last;
  if (!bars.length) return null;
  const at = Math.min(Math.max(chosen ? end - 1 + step : step > 0 ? 0 : bars.length - 1, 0), bars.length - 1);
  return [adds && chosen ? Math.min(chosen[0], bars[at][0]) : bars[at][0], bars[at][1] - 1];
}

function keyDown(event: KeyboardEvent): void {
  if (event.key !== 'ArrowRight' && event.key !== 'ArrowLeft' && event.key !== 'Delete') return;
  event.preventDefault();
  event.stopPropagation();
  brush = event.key === 'Delete' ? null : brushByKey(histogram, brush, event.key, event.shiftKey);
  current.store.setBrush(brush);
}

/** The number of calls; for a generator or coroutine, says that each step counts as one. */
export function foundText(answer: Pick<Answer, 'matched' | 'resumed' | 'cut'> & { calls: unknown[] }, isSteps: boolean, part: [number, number] | null): string {
  const chosen = part ? ` of ${duration(part[0])} to ${duration(part[1])}` : '', listed = answer.calls.length < answer.matched ? `; the ${count(answer.calls.length)} slowest are listed` : '';
  const steps = isSteps ? ` Each is a step of a generator or coroutine, from its call or a resume to the next yield or its end, not its whole life; ${counted(answer.matched - answer.resumed, 'of them is a first step', 'of them are first steps')}.` : '';
  const cut = answer.cut ? ` The begin or the end of ${count(answer.cut)} was not recorded, or is not in the range: how long they took is not known, and the histogram leaves them out.` : '';
  return `${counted(answer.matched, isSteps ? 'step' : 'call')}${chosen} in the range${listed}.${steps}${cut} Drag over the histogram to choose a part.`;
}

function columns(context: Context, isSteps: boolean): Column<Found>[] {
  const took = (call: Found): number => Number(call.end - call.begin), isExact = !context.trace.samples;
  const who = (call: Call): string => {
    const track = context.trace.tracks[call.track], thread = track?.thread != null ? context.trace.threads[track.thread] : null;
    return thread ? `${thread.name} ${thread.tid}` : '';
  };
  const when = (call: Call): bigint => context.timeline.said.when(call.track, call.begin, table.redrawSoon);
  return [
    { title: isExact ? 'duration' : 'length', width: '110px', text: (call) => `${isExact && call.cut ? '> ' : ''}${duration(took(call))}`, sort: took },
    { title: 'begin', width: '160px', text: (call) => moment(when(call)), hint: (call) => momentText(when(call)), sort: (call) => Number(call.begin) },
    { title: 'depth', width: '60px', text: (call) => String(call.depth), sort: (call) => call.depth },
    ...(isSteps ? [{ title: 'step', width: '140px', left: true, text: stepWords, sort: stepWords }] : []),
    { title: 'thread', width: 'minmax(160px, 1fr)', left: true, text: who, sort: who },
  ];
}

async function load(context: Context, signal: AbortSignal | undefined): Promise<void> {
  const func = context.store.view.func;
  if (func === null) return;
  brush = context.store.view.brush;
  const limits = brush ? { min: brush[0], max: brush[1] } : {};
  const answer = await ask<Answer>('calls', { func, ...rangeParams(context), ...limits, limit: 1000 }, signal);
  histogram = answer.histogram;
  const known = await context.api.funcs.wait(func);
  const clear = button('\u2715', 'Clear the function', () => { context.store.setFunc(null); }, 'link');
  title.replaceChildren(el('h2', {}, known ? label(known) : '?'), el('span', { class: 'quiet' }, known ? ` ${place(known)} ` : ''), clear);
  const isSteps = answer.resumed + answer.yielded > 0;
  note.textContent = context.trace.samples ? stretchesText(answer.matched, answer.calls.length) : foundText(answer, isSteps, brush);
  canvas.hidden = context.trace.samples !== null;
  table.setColumns(columns(context, isSteps));
  const calls = answer.calls.map((call): Found => readCall(call, call.track));
  table.set(calls);
  showEnds(context, calls.find((call) => !call.cut), answer.fastest);
  context.store.light(calls, limits.min, limits.max);
  draw();
}

/** Shows buttons for the slowest and the fastest of the chosen calls; the table may not list the fastest. */
function showEnds(context: Context, slowest: Call | undefined, fastest: Call | null): void {
  const last = fastest && readCall(fastest, fastest.track);
  ends.replaceChildren(...(slowest && last ? [
    button(`Slowest: ${duration(Number(slowest.end - slowest.begin))}`, 'Go to the slowest of these calls', () => go(context, slowest)),
    button(`Fastest: ${duration(Number(last.end - last.begin))}`, 'Go to the fastest of these calls', () => go(context, last)),
  ] : []));
}

function go(context: Context, call: Call): void {
  context.store.selectCall(call);
  context.timeline.reveal(call);
}

export const finder: Panel = {
  id: 'finder', title: 'Finder', key: '3', ofRange: true, offered: hasCalls,
  make(context) {
    current = context;
    title = el('div', { class: 'finder-title' });
    note = el('span', {});
    ends = el('span', { class: 'actions' });
    canvas = el('canvas', { class: 'histogram', role: 'img', tabindex: '0', 'aria-label': 'Histogram of durations; the arrow keys choose a bar, with Shift they add bars, Delete chooses all; the table lists the calls' });
    canvas.addEventListener('keydown', keyDown);
    table = new Table<Found>(context.store, 'calls', columns(context, false), 0, (call) => go(context, call), 'Calls of the function');
    listenToBrush();
    new ResizeObserver(() => draw()).observe(canvas);
    return el('div', { class: 'fill' }, title, canvas, el('div', { class: 'note bar-row' }, note, ends), table.element);
  },
  async update(context, signal) {
    if (context.store.view.func === null) {
      histogram = [];
      showEnds(context, undefined, null);
      title.replaceChildren(el('p', { class: 'empty' }, 'Choose a function: click one in the table of functions, or search with /.'));
      note.textContent = '';
      table.set([]);
      draw();
      return;
    }
    await load(context, signal);
  },
};
