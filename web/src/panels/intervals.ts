// SPDX-License-Identifier: Apache-2.0
// Declared intervals, states and signals of the range, with the numbers of `krait intervals`: a row for each, and of the
// chosen one a picture over time, a histogram, or which state followed which.

import { ask } from '../api';
import { el } from '../dom';
import { Row, Rule, number } from '../found';
import { palette } from '../palette';
import { Context, Panel, timeParams } from '../panel';
import { Range } from '../store';
import { Table } from '../table';
import { trackName } from '../threads';
import { count, counted, duration, tickLabel, tickStep } from '../time';
import { isDark, sized } from '../timeline';
import { Bar, drawHistogram } from './histogram';
import { Cell, CellRow, Scatter, bucketBegin, readCell, roomIn } from './scatter';

type Value = [number, number, number, number, number]; // column, how many, least, greatest, last
interface Shown extends Rule { cells?: CellRow[]; octave?: number; values?: Value[] }
interface Line { rule: number; of: Shown; row: Row }

const BARS = 84, LEFT = 58, FOOT = 20, TOP = 8; // pixels
let table: Table<Line>, scatter: Scatter, bars: HTMLCanvasElement, curve: HTMLCanvasElement, over: HTMLElement, next: HTMLElement, note: HTMLElement;
let current: Context, rules: Shown[] = [], chosen = -1, histogram: Bar[] = [], drawn: { values: Value[]; columns: number; range: Range } | null = null;

/** How long all of the cells took: the sums of each bucket. */
export function barsOf(cells: Pick<Cell, 'bucket' | 'count'>[], octave: number): Bar[] {
  const sums = new Map<number, number>();
  for (const cell of cells) sums.set(cell.bucket, (sums.get(cell.bucket) ?? 0) + cell.count);
  return [...sums].sort((a, b) => a[0] - b[0]).map(([bucket, n]) => [bucketBegin(bucket, octave), bucketBegin(bucket + 1, octave), n]);
}

/** The least and the greatest value, apart from each other. */
export function limitsOf(values: Value[]): [number, number] {
  const low = Math.min(...values.map((value) => value[2])), high = Math.max(...values.map((value) => value[3]));
  return values.length ? [low, high > low ? high : low + 1] : [0, 1];
}

/** A signal: from value to value, and where a column of pixels has several, all between the least and the greatest. */
function drawCurve(): void {
  if (!drawn || curve.hidden) return;
  const { values, columns, range } = drawn, width = Math.max(over.clientWidth, LEFT + 20), height = Math.max(over.clientHeight, FOOT + 40);
  const context = sized(curve, width, height), colours = palette(isDark()), [low, high] = limitsOf(values), wide = width - LEFT - 10;
  const x = (column: number): number => LEFT + column / columns * wide, y = (value: number): number => TOP + (1 - (value - low) / (high - low)) * (height - TOP - FOOT);
  context.clearRect(0, 0, width, height);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  for (const value of values.length ? [low, high] : []) {
    context.fillStyle = colours.rule;
    context.fillRect(LEFT, Math.round(y(value)), wide, 1);
    context.fillStyle = colours.quiet;
    context.fillText(number(value), LEFT - 6, y(value));
  }
  context.textAlign = 'left';
  const step = Math.max(tickStep(range.span, wide / 110), 1), size = BigInt(step);
  for (let tick = (range.from / size + (range.from > 0n ? 1n : 0n)) * size; ; tick += size) {
    const at = LEFT + Number(tick - range.from) / range.span * wide;
    if (at > width - 40) break;
    context.fillStyle = colours.quiet;
    context.fillRect(Math.round(at), height - FOOT, 1, 4);
    context.fillText(tickLabel(tick, step), at + 3, height - FOOT / 2 + 1);
  }
  context.fillStyle = colours.accent;
  values.forEach(([column, , least, most, last], i) => {
    const end = i + 1 < values.length ? values[i + 1][0] : columns;
    context.fillRect(x(column), y(most) - 1, Math.max(wide / columns, 1.5), y(least) - y(most) + 2);
    context.fillRect(x(column), y(last) - 1, x(end) - x(column), 2);
  });
}

function go(cell: Cell['longest']): void {
  const own = current.trace.tracks.find((track) => track.of === 'lane' && track.name === rules[chosen]?.name) ?? current.trace.tracks[cell.track];
  current.store.setCursor(cell.begin);
  if (own) current.timeline.reveal({ ...cell, track: own.id });
}

function cellLines(cell: Cell): string[] {
  const of = rules[chosen], key = of?.rows[cell.longest.func]?.key, who = trackName(current.trace, cell.longest.track), longest = duration(Number(cell.longest.end - cell.longest.begin));
  const name = `${of?.name ?? ''}${key ? ` ${key}` : ''}`;
  return cell.count === 1 ? [name, longest, who] : [counted(cell.count, of?.kind === 'state' ? 'stay' : 'interval'), `${duration(cell.ns)} in all; the longest: ${name}, ${longest}`, who];
}

function drawNext(of: Shown): void {
  const leaving = new Map<string, number>();
  for (const each of of.transitions) leaving.set(each.from, (leaving.get(each.from) ?? 0) + each.count);
  const rows = [...of.transitions].sort((a, b) => b.count - a.count).map((each) => el('tr', {}, el('td', {}, count(each.count)),
    el('td', {}, `${(100 * each.count / (leaving.get(each.from) as number)).toFixed(1)}%`), el('td', { class: 'left' }, each.from), el('td', { class: 'left' }, each.to)));
  next.hidden = !rows.length;
  next.replaceChildren(el('table', { class: 'plain', 'aria-label': 'Transitions' }, el('thead', {}, el('tr', {}, ...['transitions', 'share', 'from', 'to'].map((title, i) => el('th', i > 1 ? { class: 'left' } : {}, title)))), el('tbody', {}, ...rows)));
}

function drawPicture(range: Range, columns: number): void {
  const of = rules[chosen], cells = (of?.cells ?? []).map(readCell), isSignal = of?.kind === 'signal';
  scatter.element.hidden = bars.hidden = !of || isSignal;
  curve.hidden = !isSignal;
  drawn = isSignal ? { values: of.values ?? [], columns, range } : null;
  histogram = barsOf(cells, of?.octave ?? 8);
  const what = `${of?.name ?? ''}: ${counted(cells.reduce((n, cell) => n + cell.count, 0), of?.kind === 'state' ? 'stay' : 'interval')}`;
  scatter.set(cells, of?.octave ?? 8, columns, range, `How long each lasted, over time, of ${what}; arrow keys go from point to point, Enter to it`);
  bars.setAttribute('aria-label', `How long they lasted, from ${histogram.length ? duration(histogram[0][0]) : '-'} to ${histogram.length ? duration(histogram[histogram.length - 1][1]) : '-'}`);
  curve.setAttribute('aria-label', `The values of ${of?.name ?? ''} over time; the table has their statistics`);
  drawNext(of ?? { name: '', kind: 'state', rows: [], transitions: [], first: [] });
  draw();
}

function draw(): void {
  if (!bars.hidden) drawHistogram(bars, histogram, null, BARS);
  drawCurve();
}

async function load(context: Context, signal?: AbortSignal): Promise<void> {
  const range = timeParams(context), columns = roomIn(over.clientWidth), before = rules;
  const wanted = (of: Shown[]): number => Math.max(of.findIndex((rule) => rule.name === context.store.view.picks.declared), 0);
  chosen = wanted(before);
  const load = async (): Promise<Shown[]> => (await ask<{ rules: Shown[] }>('intervals', { ...range, rule: chosen, columns }, signal)).rules;
  rules = await load();
  if (wanted(rules) !== chosen) { // other lanes are declared now
    chosen = wanted(rules);
    rules = await load();
  }
  const lines = rules.flatMap((of, rule) => of.rows.map((row): Line => ({ rule, of, row })));
  note.textContent = lines.length ? 'The numbers of krait intervals. Choose a row to see its plot; click a point to go there.' : 'No lanes are declared: press N to make one, or open krait view with -f FILE.';
  table.set(lines);
  drawPicture({ from: range.from, span: Math.max(Number(range.until - range.from), 1) }, columns);
}

function choose(line: Line): void {
  current.store.pick('declared', line.rule ? line.of.name : '');
  const own = current.trace.tracks.find((track) => track.of === 'lane' && (track.name === line.of.name || track.name.startsWith(`${line.of.name} `)));
  if (own) current.timeline.revealTrack(own.id);
  if (line.rule !== chosen) load(current).catch(() => undefined);
}

export const intervals: Panel = {
  id: 'intervals', title: 'Intervals', key: 'code:KeyI', ofRange: true,
  offered: (trace) => trace.tracks.some((track) => track.of === 'lane' || track.kind === 'instants'),
  make(context) {
    current = context;
    const value = (title: string, width: number, of: (row: Row) => number | undefined | null, least = 1): object => ({
      title, width: `${width}px`, sort: ({ row }: Line) => of(row) ?? -1,
      text: ({ of: rule, row }: Line) => { const found = of(row); return row.count < least || found === undefined || found === null ? '-' : rule.kind === 'signal' ? number(found) : duration(found); },
    });
    const left = (title: string, of: (row: Row) => number | undefined): object => ({ title, width: '62px', sort: ({ row }: Line) => of(row) ?? 0, text: ({ row }: Line) => (of(row) ? count(of(row) as number) : '-') });
    table = new Table<Line>(context.store, 'intervals', [
      { title: 'name', width: 'minmax(90px, 1fr)', left: true, text: ({ of }) => of.name, sort: ({ of }) => of.name },
      { title: 'key', width: 'minmax(60px, 110px)', left: true, text: ({ row }) => row.key ?? '-', sort: ({ row }) => row.key ?? '' },
      { title: 'count', width: '54px', text: ({ row }) => count(row.count), sort: ({ row }) => row.count },
      ...([['total', 72, (row) => row.total], ['mean', 72, (row) => row.mean], ['min', 72, (row) => row.min], ['median', 72, (row) => row.median], ['p90', 72, (row) => row.p90], ['p99', 72, (row) => row.p99],
        ['max', 72, (row) => row.max]] as [string, number, (row: Row) => number][]).map(([title, width, of]) => value(title, width, of) as never),
      value('std dev', 72, (row) => row.deviation, 2) as never,
      left('no stop', (row) => row.noStop) as never, left('no start', (row) => row.noStart) as never, left('no key', (row) => row.noKey) as never, left('no number', (row) => row.noNumber) as never,
      { title: 'last', width: '64px', text: ({ row }) => (row.count && row.last !== undefined ? number(row.last) : '-'), sort: ({ row }) => row.last ?? -1 },
      { title: 'per second', width: '78px', text: ({ row }) => (row.count > 1 && row.perSecond !== undefined && row.perSecond !== null ? number(row.perSecond) : '-'), sort: ({ row }) => row.perSecond ?? -1 },
    ], -1, choose, 'Declared intervals, states and signals of the range', (line) => line.rule === chosen);
    scatter = new Scatter(cellLines, go);
    bars = el('canvas', { class: 'bars', role: 'img' });
    curve = el('canvas', { class: 'scatter', role: 'img', hidden: '' });
    next = el('div', { class: 'transitions', hidden: '' });
    note = el('span', { class: 'message' });
    new ResizeObserver(draw).observe(bars);
    over = el('div', { class: 'scatter-box over' }, scatter.element, curve);
    new ResizeObserver(draw).observe(over);
    return el('div', { class: 'fill' }, el('div', { class: 'note' }, note), el('div', { class: 'beside declared' }, el('div', { class: 'fill' }, table.element, next), el('div', { class: 'fill' }, over, bars)));
  },
  async update(context, signal) {
    await load(context, signal);
  },
};
