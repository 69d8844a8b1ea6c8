// SPDX-License-Identifier: Apache-2.0
// Marks on the timeline: a shape and a colour for each level, as in pictures (src/view/timeline_marks.c), and beside them what
// they say, where there is room. Texts are asked for when the timeline rests.

import { ask } from './api';
import { messageOf } from './declared';
import { el } from './dom';
import { Palette, palette } from './palette';
import { CatEvent, Said, saidText } from './said';
import { CHARACTER } from './shorten';

/** From the least to the most serious: src/trace/mark_says.h. */
export const LEVELS = ['debug', 'info', 'mark', 'warning', 'error', 'critical', 'exception'] as const;
/** Around a place, 10 pixels high. */
const SHAPES = [
  'm0 2.5l2.5 2.5-2.5 2.5-2.5-2.5z',
  'm-1.6 1h3.2l2.4 2.4v3.2l-2.4 2.4h-3.2l-2.4-2.4v-3.2z',
  'l4 5-4 5-4-5z',
  'm0 .5l4.5 9h-9z',
  'm-3.8 1.2h7.6v7.6h-7.6z',
  'm-4.5 .5h9l-4.5 9z',
  'm-4 2.5l1.5-1.5 2.5 2.5 2.5-2.5 1.5 1.5-2.5 2.5 2.5 2.5-1.5 1.5-2.5-2.5-2.5 2.5-1.5-1.5 2.5-2.5z',
];
const HALF = 4, GAP = 4, LEAST = 8; // pixels: half a mark, from a mark to its text; characters of a text that is cut
const MOST = 40, KEPT = 2000, WAIT = 200; // texts on the screen; that are kept; ms for which the timeline rests before texts are asked for

let paths: Path2D[] | undefined;

export interface Placed { track: number; x: number; top: number; count: number; level: number; from: bigint; until: bigint } // the time of its bin

export function drawMark(context: CanvasRenderingContext2D, level: number, x: number, top: number, colours: Palette): void {
  paths ??= SHAPES.map((shape) => new Path2D(`M0 0${shape}`));
  context.fillStyle = colours.mark(level);
  context.translate(x, top);
  context.fill(paths[level] ?? paths[2]);
  context.translate(-x, -top);
}

/** What a mark says in a line: "ERROR shop: order 7 failed", the message of any other event, or its name. */
export function shortText(event: CatEvent): string {
  const { payload } = event, lead = payload?.category, message = messageOf(payload);
  if (event.event === 'exception:uncaught') return String(payload?.exception ?? '').split('\n')[0];
  if (message === undefined) return event.event;
  const text = event.event === 'log:record' || event.event === 'lttng_python:event' ? saidText(event)
    : event.event === 'warning:shown' && lead ? `${typeof lead === 'object' && 'label' in lead ? lead.label : lead}: ${message}` : message;
  return text.split('\n')[0];
}

/** The marks that have room for a text behind them, with the characters that fit: a mark alone in its place, and the next one far enough. */
export function roomOf(marks: Placed[], width: number): { mark: Placed; room: number }[] {
  const sorted = [...marks].sort((a, b) => a.x - b.x);
  return sorted.map((mark, i) => ({ mark, room: Math.floor(((sorted[i + 1]?.x ?? width + HALF + GAP) - mark.x - 2 * (HALF + GAP)) / CHARACTER) }))
    .filter(({ mark, room }) => mark.count === 1 && mark.x > 0 && mark.x < width && room >= LEAST);
}

/** What the levels look like. */
export function levelLegend(dark: boolean): HTMLElement {
  return el('ul', { class: 'legend', 'aria-label': 'Levels of marks' }, ...LEVELS.map((name, level) => {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg'), path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    svg.setAttribute('viewBox', '-5 0 10 10');
    svg.setAttribute('class', 'mark-level');
    path.setAttribute('d', `M0 0${SHAPES[level]}`);
    path.setAttribute('fill', palette(dark).mark(level));
    svg.append(path);
    const item = el('li', {}, name);
    item.prepend(svg);
    return item;
  }));
}

/** The texts beside marks. */
export class MarkTexts {
  private texts = new Map<string, string | null>(); // null: asked for
  private wanted: Placed[] = [];
  private timer = 0;

  constructor(private said: Said, private redraw: () => void) {}

  /** Draws the texts that are known, and asks for the others later. */
  draw(context: CanvasRenderingContext2D, rows: Placed[][], width: number, colours: Palette): void {
    const shown = rows.flatMap((row) => roomOf(row, width)).slice(0, MOST);
    this.wanted = [];
    context.fillStyle = colours.ink;
    for (const { mark, room } of shown) {
      const text = this.texts.get(keyOf(mark));
      if (text === undefined) this.wanted.push(mark);
      else if (text) context.fillText(text.length > room ? `${text.slice(0, room - 1)}\u2026` : text, mark.x + HALF + GAP, mark.top + 5.5);
    }
    clearTimeout(this.timer);
    if (this.wanted.length) this.timer = window.setTimeout(() => this.askAll(), WAIT);
  }

  private askAll(): void {
    if (this.texts.size > KEPT) this.texts.clear();
    for (const mark of this.wanted) {
      const key = keyOf(mark);
      this.texts.set(key, null);
      this.find(mark).then((text) => {
        this.texts.set(key, text);
        this.redraw();
      }, () => { this.texts.delete(key); }); // the next drawing asks again
    }
    this.wanted = [];
  }

  /** Whether all texts are known that the last drawing asked for. */
  get settled(): boolean {
    return !this.wanted.length && ![...this.texts.values()].includes(null);
  }

  private async find({ track, from, until }: Placed): Promise<string> {
    const { marks } = await ask<{ marks: { name: number; at: string }[] }>('marks', { from, until, tracks: track, limit: 1, drawn: 1 });
    const told = marks.length ? await this.said.find({ track, name: marks[0].name, at: BigInt(marks[0].at), nth: 0 }) : undefined;
    return told ? shortText(told.event) : '';
  }
}

function keyOf({ track, from, until }: Placed): string {
  return `${track}/${from}/${until}`;
}
