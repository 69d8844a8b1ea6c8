// SPDX-License-Identifier: Apache-2.0
// The whole recording in a strip: how busy it was, and which part the timeline shows.

import { Alignment } from './align';
import { Api, tileLength } from './api';
import { el } from './dom';
import { Trace, Track } from './model';
import { levelOf } from './paint';
import { palette } from './palette';
import { Store } from './store';
import { Sum, allBusy, spread } from './summary';
import { isDark, sized } from './timeline';

const HEIGHT = 40;

export class Minimap {
  readonly element: HTMLElement;
  private canvas = el('canvas', { class: 'minimap', 'aria-hidden': 'true' });
  private known: Track[] | null = null;
  private shown: Track[] = [];
  private drag: { x: number; edge: 'move' | 'new'; from: bigint } | null = null;

  constructor(private trace: Trace, private store: Store, private api: Api, private alignment: Alignment) {
    this.element = el('div', { class: 'minimap-box', title: 'The whole recording. Drag the window to move it, or drag outside of it to choose another range' }, this.canvas);
    this.canvas.addEventListener('pointerdown', (event) => this.press(event));
    this.canvas.addEventListener('pointermove', (event) => this.move(event));
    this.canvas.addEventListener('pointerup', () => { this.drag = null; });
    store.listen(() => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  private begun = false;

  /** Its sums are requested after the picture, because the tiles need the CPUs first. */
  begin(): void {
    this.begun = true;
    this.draw();
  }

  /** How busy each pixel is: all threads together, by their outermost calls. */
  private density(width: number): Float64Array {
    const { span } = this.store.whole, level = levelOf(span, width), out = new Float64Array(width);
    for (const [begin, tracks] of this.parts()) {
      const sums = new Map<number, Sum>();
      for (let i = Math.floor(begin / tileLength(level)); i * tileLength(level) < begin + span; i++) {
        const sum = this.api.summaries.get(tracks, level, i);
        if (sum) sums.set(i, sum);
      }
      spread(sums, level, begin, span, width).forEach((busy, x) => { out[x] += busy; });
    }
    return out;
  }

  /** Groups of tracks with the same begin: all tracks, or those of each recording. */
  private parts(): Map<number, Track[]> {
    if (!this.store.view.aligned) return new Map([[0, this.tracks]]);
    const parts = new Map<number, Track[]>();
    for (const track of this.tracks) {
      const begin = Number(this.alignment.beginOf(track));
      if (this.alignment.recordingOf(track) !== undefined) parts.set(begin, [...(parts.get(begin) ?? []), track]);
    }
    return parts;
  }

  private get tracks(): Track[] {
    if (this.known !== this.trace.tracks) [this.known, this.shown] = [this.trace.tracks, allBusy(this.trace)];
    return this.shown;
  }

  draw(): void {
    const width = Math.max(this.canvas.clientWidth, 1), colours = palette(isDark()), context = sized(this.canvas, width, HEIGHT);
    const sums = this.begun ? this.density(width) : new Float64Array(width), most = Math.max(...sums, 1e-9), { from, span } = this.store.view.range;
    context.clearRect(0, 0, width, HEIGHT);
    context.fillStyle = colours.state('run');
    for (let x = 0; x < width; x++) {
      const height = Math.min(sums[x] / most, 1) * (HEIGHT - 6);
      if (sums[x] > 0) context.fillRect(x, HEIGHT - 2 - Math.max(height, 1), 1, Math.max(height, 1));
    }
    const left = Number(from) / this.store.whole.span * width, shown = Math.max(span / this.store.whole.span * width, 2);
    context.fillStyle = colours.dark ? 'rgba(21,23,27,.62)' : 'rgba(252,251,249,.68)';
    context.fillRect(0, 0, Math.max(left, 0), HEIGHT);
    context.fillRect(left + shown, 0, width, HEIGHT);
    context.strokeStyle = colours.accent;
    context.lineWidth = 1;
    context.strokeRect(Math.max(left, 0) + 0.5, 0.5, Math.min(shown, width) - 1, HEIGHT - 1);
  }

  private timeAt(x: number): bigint {
    return BigInt(Math.round(x / Math.max(this.canvas.clientWidth, 1) * this.store.whole.span));
  }

  private press(event: PointerEvent): void {
    const { from, span } = this.store.view.range, at = this.timeAt(event.offsetX);
    const inside = at >= from && at <= from + BigInt(Math.round(span)) && span < this.store.whole.span * 0.98;
    this.drag = { x: event.offsetX, edge: inside ? 'move' : 'new', from };
    this.canvas.setPointerCapture(event.pointerId);
    if (!inside && span < this.store.whole.span * 0.98) this.store.setRange(at - BigInt(Math.round(span / 2)), span);
  }

  private move(event: PointerEvent): void {
    if (!this.drag || Math.abs(event.offsetX - this.drag.x) < 3) return;
    if (this.drag.edge === 'move') {
      this.store.setRange(this.drag.from + this.timeAt(event.offsetX - this.drag.x), this.store.view.range.span);
      return;
    }
    const [low, high] = [Math.min(event.offsetX, this.drag.x), Math.max(event.offsetX, this.drag.x)];
    this.store.setRange(this.timeAt(low), Number(this.timeAt(high) - this.timeAt(low)));
  }
}
