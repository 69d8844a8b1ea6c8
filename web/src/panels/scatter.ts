// SPDX-License-Identifier: Apache-2.0
// A scatter plot of durations over time. The server sums up all calls in a cell of CELL pixels. A cell with one call
// shows that call exactly.

import { el } from '../dom';
import { Call } from '../model';
import { Palette, palette } from '../palette';
import { Range } from '../store';
import { count, duration, logLabel, logTicks, tickLabel, tickLabels, timeTicks } from '../time';
import { isDark, sized } from '../timeline';

export type CellRow = [number, number, number, number, number, number, number, number, string, string, number];
export interface Cell { column: number; bucket: number; count: number; errors: number; ns: number; longest: Call }

export const CELL = 3; // pixels
const FOOT = 20, LEFT = 58, TOP = 8, RIGHT = 10, DOT = 5;

export function readCell(row: CellRow): Cell {
  const [column, bucket, calls, errors, ns, track, func, depth, begin, end, value] = row;
  return { column, bucket, count: calls, errors, ns, longest: { track, func, depth, begin: BigInt(begin), end: BigInt(end), begins: 0, ends: 0, value } };
}

/** The least duration of a bucket in nanoseconds, as in src/serve/answer_sums.c. */
export function bucketBegin(bucket: number, octave: number): number {
  const high = Math.floor(bucket / octave) - 1;
  return bucket < octave ? bucket : (octave + bucket % octave) * 2 ** high;
}

/** The lines of a cell's tooltip. */
export function cellLines(cell: Cell, name: string, who: string): string[] {
  const longest = duration(Number(cell.longest.end - cell.longest.begin)), failed = cell.errors ? `, ${count(cell.errors)} with an error` : '';
  if (cell.count === 1) return [name, `${longest}${cell.errors ? `, error ${-(cell.longest.value ?? 0)}` : ''}`, who];
  return [`${count(cell.count)} system calls${failed}`, `${duration(cell.ns)} in total; longest: ${name}, ${longest}`, who];
}

/** The number of columns of cells in a plot of a width in pixels. */
export function roomIn(width: number): number {
  return Math.max(Math.floor((width - LEFT - RIGHT) / CELL), 1);
}

/** The cells in the order of the arrow keys: by time, then by duration. */
export function inOrder(cells: Cell[]): Cell[] {
  return [...cells].sort((a, b) => a.column - b.column || a.bucket - b.bucket);
}

/** Draws the time axis below a plot. */
export function timeAxis(context: CanvasRenderingContext2D, range: Range, box: { left: number; width: number; top: number }, colours: Palette): void {
  const { step, at } = timeTicks(range.from, range.span, box.width / 90), x = (tick: bigint): number => box.left + Number(tick - range.from) / range.span * box.width;
  context.textAlign = 'left';
  context.fillStyle = colours.rule;
  for (const tick of at) context.fillRect(Math.round(x(tick)), box.top, 1, 4);
  context.fillStyle = colours.quiet;
  tickLabels(context, at.map((tick) => [x(tick) + 3, tickLabel(tick, step)]), box.top + 11, box.left + box.width + 10);
}

export class Scatter {
  readonly element: HTMLElement;
  private canvas = el('canvas', { class: 'scatter', role: 'img', tabindex: '0' });
  private tip = el('div', { class: 'tip', role: 'status', hidden: '' });
  private cells: Cell[] = [];
  private octave = 8;
  private range: Range = { from: 0n, span: 1 };
  private columns = 1;
  private at = -1; // cell under the pointer, or reached by keys; -1: none

  constructor(private say: (cell: Cell) => string[], private open: (call: Call) => void) {
    this.element = el('div', { class: 'scatter-box relative' }, this.canvas, this.tip);
    this.canvas.addEventListener('pointermove', (event) => this.point(this.near(event.offsetX, event.offsetY)));
    this.canvas.addEventListener('pointerleave', () => this.point(-1));
    this.canvas.addEventListener('blur', () => this.point(-1));
    this.canvas.addEventListener('click', (event) => {
      const cell = this.cells[this.near(event.offsetX, event.offsetY)];
      if (cell) this.open(cell.longest);
    });
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** The number of columns of cells on the screen. */
  get room(): number {
    return roomIn(this.element.clientWidth);
  }

  set(cells: Cell[], octave: number, columns: number, range: Range, label: string): void {
    this.cells = inOrder(cells);
    this.octave = octave;
    this.columns = columns;
    this.range = range;
    this.at = -1;
    this.tip.hidden = true;
    this.canvas.setAttribute('aria-label', label);
    this.draw();
  }

  private scale(): { low: number; high: number } {
    const all = this.cells.map((cell) => bucketBegin(cell.bucket, this.octave));
    const low = Math.log10(Math.max(Math.min(...all, 1e12), 1)), high = Math.log10(Math.max(...this.cells.map((cell) => bucketBegin(cell.bucket + 1, this.octave)), 1));
    return this.cells.length ? { low: Math.min(low, high - 1), high } : { low: 0, high: 1 };
  }

  private width(): number {
    return Math.max(this.element.clientWidth, LEFT + RIGHT + CELL);
  }

  private height(): number {
    return Math.max(this.element.clientHeight, FOOT + TOP + 20);
  }

  /** The pixel position of a cell: its middle, or for a single call its exact begin and duration. */
  private place(cell: Cell, scale: { low: number; high: number }): [number, number] {
    const wide = this.width() - LEFT - RIGHT, high = this.height() - FOOT - TOP;
    const ns = cell.count === 1 ? Number(cell.longest.end - cell.longest.begin) : (bucketBegin(cell.bucket, this.octave) + bucketBegin(cell.bucket + 1, this.octave)) / 2;
    const time = cell.count === 1 ? Number(cell.longest.begin - this.range.from) / this.range.span : (cell.column + 0.5) / this.columns;
    const up = (Math.log10(Math.max(ns, 1)) - scale.low) / (scale.high - scale.low);
    return [LEFT + Math.max(time, 0) * wide, TOP + (1 - up) * high];
  }

  draw(): void {
    const width = this.width(), height = this.height(), context = sized(this.canvas, width, height), colours = palette(isDark()), scale = this.scale();
    context.clearRect(0, 0, width, height);
    this.axes(context, width, height, scale);
    const most = Math.max(...this.cells.map((cell) => cell.count), 2), more = Math.min(Math.floor(width * height / Math.max(this.cells.length, 1) / 500), 4); // few points are drawn larger
    this.cells.forEach((cell, i) => {
      const [x, y] = this.place(cell, scale), size = (cell.count === 1 ? DOT - 1 : DOT) + more;
      context.globalAlpha = cell.count === 1 ? 0.7 : 0.55 + 0.45 * Math.log2(cell.count) / Math.log2(most);
      context.fillStyle = colours.accent;
      if (cell.errors) this.cross(context, x, y, colours.lost);
      else context.fillRect(x - size / 2, y - size / 2, size, size);
      context.globalAlpha = 1;
      if (i !== this.at) return;
      context.strokeStyle = colours.ink;
      context.lineWidth = 1.5;
      context.strokeRect(x - 6, y - 6, 12, 12);
    });
  }

  /** Draws an error as a cross: not all readers can tell colours apart. */
  private cross(context: CanvasRenderingContext2D, x: number, y: number, colour: string): void {
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x - 3, y - 3);
    context.lineTo(x + 3, y + 3);
    context.moveTo(x - 3, y + 3);
    context.lineTo(x + 3, y - 3);
    context.stroke();
  }

  private axes(context: CanvasRenderingContext2D, width: number, height: number, scale: { low: number; high: number }): void {
    const colours = palette(isDark()), high = height - FOOT - TOP, wide = width - LEFT - RIGHT;
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    for (const ns of logTicks(10 ** scale.low, 10 ** scale.high)) {
      const y = TOP + (1 - (Math.log10(ns) - scale.low) / (scale.high - scale.low)) * high;
      context.fillStyle = colours.rule;
      context.fillRect(LEFT, Math.round(y), wide, 1);
      context.fillStyle = colours.quiet;
      context.fillText(logLabel(ns), LEFT - 6, y);
    }
    timeAxis(context, this.range, { left: LEFT, width: wide, top: height - FOOT }, colours);
  }

  private near(x: number, y: number): number {
    const scale = this.scale();
    let best = -1, least = 10 * 10;
    this.cells.forEach((cell, i) => {
      const [cx, cy] = this.place(cell, scale), far = (cx - x) ** 2 + (cy - y) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    return best;
  }

  private point(at: number): void {
    if (at === this.at) return;
    this.at = at;
    const cell = this.cells[at];
    this.canvas.style.cursor = cell ? 'pointer' : 'default';
    this.tip.hidden = !cell;
    if (cell) {
      const [x, y] = this.place(cell, this.scale());
      this.tip.replaceChildren(...this.say(cell).map((line, i) => el('div', { class: i ? '' : 'first' }, line)));
      this.tip.style.left = `${Math.max(4, Math.min(x + 12, this.width() - this.tip.offsetWidth - 8))}px`;
      this.tip.style.top = `${Math.max(0, Math.min(y + 12, this.height() - this.tip.offsetHeight - 4))}px`;
    }
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowRight: this.at + 1, ArrowLeft: this.at - 1, Home: 0, End: this.cells.length - 1 };
    if (event.key === 'Enter' && this.cells[this.at]) this.open(this.cells[this.at].longest);
    else if (event.key in steps && this.cells.length) this.point(Math.min(Math.max(steps[event.key], 0), this.cells.length - 1));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
