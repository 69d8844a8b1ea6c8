// SPDX-License-Identifier: Apache-2.0
// Declared intervals, states and signals of the range, with the numbers that `krait intervals` prints. Each has a row; the
// chosen one also has a plot over time, a histogram, and for states a table of transitions.

import { ask } from '../api';
import { el } from '../dom';
import { Row, Rule, number } from '../found';
import { palette } from '../palette';
import { Context, Panel, timeParams } from '../panel';
import { Range } from '../store';
import { Column, Table, leastWidth } from '../table';
import { trackName } from '../threads';
import { count, counted, duration } from '../time';
import { isDark, sized } from '../timeline';
import { Bar, drawHistogram } from './histogram';
import { Cell, CellRow, Scatter, bucketBegin, readCell, roomIn, timeAxis } from './scatter';

type Value = [number, number, number, number, number]; // column, how many, least, greatest, last
interface Shown extends Rule { cells?: CellRow[]; octave?: number; values?: Value[] }
interface Line { rule: number; of: Shown; row: Row }

const BARS = 96, LEFT = 58, FOOT = 20, TOP = 8, SCROLLBAR = 70; // pixels; SCROLLBAR includes room for longer names
let table: Table<Line>, scatter: Scatter, bars: HTMLCanvasElement, curve: HTMLCanvasElement, over: HTMLElement, next: HTMLElement, note: HTMLElement, beside: HTMLElement;
let current: Context, rules: Shown[] = [], chosen = -1, histogram: Bar[] = [], drawn: { values: Value[]; columns: number; range: Range } | null = null;

/** The bars of a histogram: the number of intervals in each bucket of durations, over all cells. */
export function barsOf(cells: Pick<Cell, 'bucket' | 'count'>[], octave: number): Bar[] {
  const sums = new Map<number, number>();
  for (const cell of cells) sums.set(cell.bucket, (sums.get(cell.bucket) ?? 0) + cell.count);
  return [...sums].sort((a, b) => a[0] - b[0]).map(([bucket, n]) => [bucketBegin(bucket, octave), bucketBegin(bucket + 1, octave), n]);
}

/** The range of the y axis: the least and the greatest value, or one more than the least if they are equal. */
export function limitsOf(values: Value[]): [number, number] {
  const low = Math.min(...values.map((value) => value[2])), high = Math.max(...values.map((value) => value[3]));
  return values.length ? [low, high > low ? high : low + 1] : [0, 1];
}

/** Draws a signal as steps. A column with several values gets a bar from the least to the greatest. */
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
  timeAxis(context, range, { left: LEFT, width: wide, top: height - FOOT }, colours);
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
  return cell.count === 1 ? [name, longest, who] : [counted(cell.count, of?.kind === 'state' ? 'stay' : 'interval'), `${duration(cell.ns)} in total; longest: ${name}, ${longest}`, who];
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
  scatter.set(cells, of?.octave ?? 8, columns, range, `Durations over time, ${what}; the arrow keys go from point to point, Enter opens a point`);
  bars.setAttribute('aria-label', `Histogram of durations from ${histogram.length ? duration(histogram[0][0]) : '-'} to ${histogram.length ? duration(histogram[histogram.length - 1][1]) : '-'}`);
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
  note.textContent = lines.length ? 'The same numbers as in krait intervals. Choose a row to see its plot; click a point to go there.' : 'No lanes are declared: press N to make one, or open krait view with -f FILE.';
  const shownColumns = columnsOf(lines);
  table.setColumns(shownColumns);
  beside.style.setProperty('--table', `${leastWidth(shownColumns.map((column) => column.width)) + SCROLLBAR}px`);
  table.set(lines);
  drawPicture({ from: range.from, span: Math.max(Number(range.until - range.from), 1) }, columns);
}

function choose(line: Line): void {
  current.store.pick('declared', line.rule ? line.of.name : '');
  const own = current.trace.tracks.find((track) => track.of === 'lane' && (track.name === line.of.name || track.name.startsWith(`${line.of.name} `)));
  if (own) current.timeline.revealTrack(own.id);
  if (line.rule !== chosen) load(current).catch(() => undefined);
}

function valueOf(title: string, of: (row: Row) => number | undefined | null, least = 1): Column<Line> {
  return {
    title, width: '58px', sort: ({ row }) => of(row) ?? -1,
    text: ({ of: rule, row }) => { const found = of(row); return row.count < least || found === undefined || found === null ? '-' : rule.kind === 'signal' ? number(found) : duration(found); },
  };
}

function countOf(title: string, of: (row: Row) => number | undefined): Column<Line> {
  return { title, width: `${8 * title.length - 6}px`, sort: ({ row }) => of(row) ?? 0, text: ({ row }) => (of(row) ? count(of(row) as number) : '-') };
}

const needed = new Set<string>(); // columns that have had a value: they stay when the range changes

/** The columns of krait intervals, without those that have had no value yet. */
function columnsOf(lines: Line[]): Column<Line>[] {
  const need = (title: string, is: (line: Line) => boolean): boolean => {
    if (lines.some(is)) needed.add(title);
    return needed.has(title);
  };
  const counts: [string, (row: Row) => number | undefined][] = [['no stop', (row) => row.noStop], ['no start', (row) => row.noStart], ['no key', (row) => row.noKey], ['no number', (row) => row.noNumber]];
  return [
    { title: 'name', width: 'minmax(70px, 1fr)', left: true, text: ({ of }) => of.name, sort: ({ of }) => of.name },
    ...(need('key', ({ row }) => !!row.key) ? [{ title: 'key', width: 'minmax(50px, 110px)', left: true, text: ({ row }: Line) => row.key ?? '-', sort: ({ row }: Line) => row.key ?? '' }] : []),
    { title: 'count', width: '50px', text: ({ row }) => count(row.count), sort: ({ row }) => row.count },
    valueOf('total', (row) => row.total), valueOf('mean', (row) => row.mean), valueOf('min', (row) => row.min), valueOf('median', (row) => row.median), valueOf('p90', (row) => row.p90), valueOf('p99', (row) => row.p99),
    valueOf('max', (row) => row.max), valueOf('std dev', (row) => row.deviation, 2), ...counts.filter(([title, of]) => need(title, ({ row }) => !!of(row))).map(([title, of]) => countOf(title, of)),
    ...(need('last', ({ of }) => of.kind === 'signal') ? [
      { title: 'last', width: '50px', text: ({ row }: Line) => (row.count && row.last !== undefined ? number(row.last) : '-'), sort: ({ row }: Line) => row.last ?? -1 },
      { title: 'per second', width: '76px', text: ({ row }: Line) => (row.count > 1 && row.perSecond !== undefined && row.perSecond !== null ? number(row.perSecond) : '-'), sort: ({ row }: Line) => row.perSecond ?? -1 },
    ] : []),
  ];
}

export const intervals: Panel = {
  id: 'intervals', title: 'Intervals', key: 'code:KeyI', ofRange: true,
  offered: (trace) => trace.tracks.some((track) => track.of === 'lane' || track.kind === 'instants'),
  make(context) {
    current = context;
    table = new Table<Line>(context.store, 'intervals', columnsOf([]), -1, choose, 'Declared intervals, states and signals of the range', (line) => line.rule === chosen);
    scatter = new Scatter(cellLines, go);
    bars = el('canvas', { class: 'bars', role: 'img' });
    curve = el('canvas', { class: 'scatter', role: 'img', hidden: '' });
    next = el('div', { class: 'transitions', hidden: '' });
    note = el('span', { class: 'message' });
    new ResizeObserver(draw).observe(bars);
    over = el('div', { class: 'scatter-box over' }, scatter.element, curve);
    new ResizeObserver(draw).observe(over);
    beside = el('div', { class: 'beside declared' }, el('div', { class: 'fill' }, table.element, next), el('div', { class: 'fill' }, over, bars));
    return el('div', { class: 'fill' }, el('div', { class: 'note' }, note), beside);
  },
  async update(context, signal) {
    await load(context, signal);
  },
};
