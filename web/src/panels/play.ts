// SPDX-License-Identifier: Apache-2.0
// The range, played: the stacks of its threads as growing cells, a clock on which each call is a ray, and bars that grow
// with the number of calls.

import { ask, tileLength } from '../api';
import { button, el } from '../dom';
import { label } from '../model';
import { levelOf } from '../paint';
import { Palette, palette } from '../palette';
import { Context, Panel, rangeParams } from '../panel';
import { Cell, Played, Row, SPEEDS, raysAt, rowsAt, stepFrom } from '../play';
import { CHARACTER, FONT, shorten } from '../shorten';
import { count, duration, moment } from '../time';
import { isDark, sized } from '../timeline';
import { CALLS, FUNC, SELF, hasCalls } from './functions';

const THREADS_MOST = 4, ROW = 20, HEAD = 18, GAP = 10, CLOCK = 210, BARS = 260, BAR = 17;
const TURN = 2; // seconds of playing for a turn of the clock
const WINDOW = 2 * TURN; // seconds of playing whose calls are loaded on each side
const ASK = 400; // milliseconds between two counts of calls
const WIDTH = 1500; // bins are as of a timeline of so many pixels

interface Lane { track: number; thread: number; name: string; calls: Played[] }

class Player {
  readonly element: HTMLElement;
  private canvas = el('canvas', { class: 'play', role: 'img', tabindex: '0' });
  private clock = el('output', { class: 'play-time' });
  private toggle: HTMLButtonElement;
  private slider = el('input', { type: 'range', min: '0', max: '1000', value: '0', 'aria-label': 'Moment' });
  private speed = el('select', { 'aria-label': 'Speed' });
  private from = 0n;
  private span = 1;
  private at = 0; // nanoseconds from there
  private lanes: Lane[] = [];
  private hidden = 0; // threads that have no room
  private bars: [number, number][] = []; // function, calls; of samples: self time
  private barsMost = 1;
  private playing = false;
  private seeking: { forward: boolean; around: number } | null = null; // the next event from `at`, looked for around there
  private last = 0;
  private asked = 0;
  private asking: AbortController | null = null;
  private key = '';
  private kept = ''; // what the link has of the moment, from here

  constructor(private context: Context) {
    this.toggle = button('\u25b6', 'Play (Space)', () => this.play(!this.playing));
    for (const [i, [words]] of SPEEDS.entries()) this.speed.append(el('option', { value: String(i) }, words));
    this.slider.addEventListener('input', () => { this.go(Number(this.slider.value) / 1000 * this.span); });
    this.speed.addEventListener('change', () => {
      this.context.store.look('speed', this.speed.selectedIndex ? this.speed.value : '');
      this.draw();
    });
    const bar = el('div', { class: 'play-bar' }, button('|\u2039', 'To the begin of the range (Home)', () => this.go(0)),
      button('\u2039', 'One event back (,)', () => this.step(false)), this.toggle, button('\u203a', 'One event on (.)', () => this.step(true)), this.speed, this.slider, this.clock);
    this.element = el('div', { class: 'fill play-box' }, bar, this.canvas);
    this.element.addEventListener('keydown', (event) => this.press(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  focus(): void {
    this.canvas.focus({ preventScroll: true });
  }

  private press(event: KeyboardEvent): void {
    const target = event.target as HTMLElement, steps: Record<string, () => void> = {
      ' ': () => this.play(!this.playing), ',': () => this.step(false), '.': () => this.step(true), Home: () => this.go(0), End: () => this.go(this.span),
    };
    if (target.tagName === 'SELECT' || target.tagName === 'BUTTON' || !steps[event.key]) return;
    steps[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }

  /** The played range and lanes: the selected range, or the one on the screen, of the chosen lanes. */
  show(): void {
    const { store, timeline, trace } = this.context, { from, span } = store.asked;
    const own = timeline.lanes.chosenTracks() ?? trace.tracks, tracks = own.filter((track) => track.kind === 'calls' && track.thread !== null && track.of === 'thread');
    const key = `${from},${span},${tracks.map((track) => track.id).join(' ')}`;
    this.from = from + timeline.lanes.tableShift();
    this.span = span;
    if (key !== this.key) {
      this.at = this.context.trace.growing ? span : 0;
      this.bars = [];
      this.barsMost = 1;
      const until = this.from + BigInt(Math.round(span));
      const alive = tracks.filter((track) => trace.threads[track.thread as number].begin < until && trace.threads[track.thread as number].until >= this.from);
      this.hidden = Math.max(alive.length - THREADS_MOST, 0);
      this.lanes = alive.slice(0, THREADS_MOST).map((track) => {
        const thread = trace.threads[track.thread as number];
        return { track: track.id, thread: track.thread as number, name: `${thread.name || trace.processes[thread.process].name} ${thread.tid}`, calls: [] };
      });
    }
    this.key = key;
    this.open();
    this.draw();
  }

  /** Goes to the moment of a link, at its speed. */
  private open(): void {
    const { moment: wanted = '', speed = '0' } = this.context.store.view.looks;
    if (SPEEDS[Number(speed)]) this.speed.value = speed;
    if (wanted !== this.kept && /^\d{1,18}$/.test(wanted)) this.at = Math.min(Number(wanted), this.span);
    this.kept = wanted;
  }

  /** Keeps the moment in the link, in nanoseconds from the begin of the range; not where a new range, or the newest of a recording that goes on, is shown. */
  private keep(): void {
    const { store, trace } = this.context, rests = trace.growing ? this.at >= this.span : this.at <= 0, words = rests ? '' : String(Math.round(this.at));
    if (words === this.kept || this.playing) return;
    this.kept = words;
    store.look('moment', words);
  }

  get pace(): number { // nanoseconds of the recording in a second
    return SPEEDS[Number(this.speed.value)]?.[1] || this.span / 10;
  }

  private play(on: boolean): void {
    this.playing = on;
    if (on && this.at >= this.span) this.at = 0;
    this.last = performance.now();
    this.toggle.textContent = on ? '\u275a\u275a' : '\u25b6';
    this.toggle.title = on ? 'Pause (Space)' : 'Play (Space)';
    if (on) requestAnimationFrame((now) => this.tick(now));
    else this.keep();
  }

  private tick(now: number): void {
    if (!this.playing) return;
    if (!this.element.isConnected) {
      this.play(false);
      return;
    }
    const whole = this.load();
    if (whole) this.at = Math.min(this.at + this.pace * Math.min(Math.max(now - this.last, 0), 100) / 1000, this.span);
    this.last = now;
    this.draw();
    if (this.at >= this.span) this.play(false);
    else requestAnimationFrame((next) => this.tick(next));
  }

  private go(at: number): void {
    this.seeking = null;
    this.at = Math.min(Math.max(at, 0), this.span);
    this.asked = 0;
    this.draw();
  }

  private step(forward: boolean): void {
    this.play(false);
    this.seeking = { forward, around: this.at };
    this.seek();
  }

  /** Looks for the next event, further and further away; continues when the calls there have arrived. */
  private seek(): void {
    while (this.seeking) {
      const { forward, around } = this.seeking, found = this.callsAround(around);
      if (!found.whole) return;
      const to = stepFrom(found.lanes, this.at, forward), edge = forward ? found.until : found.from;
      const isIn = to !== null && (forward ? to <= edge : to >= edge), isEnd = forward ? edge >= this.span : edge <= 0;
      this.seeking = isIn || isEnd ? null : { forward, around: edge };
      if (isIn || isEnd) this.go(isIn ? to as number : forward ? this.span : 0);
    }
  }

  /** Takes the calls around the moment from the picture's tiles; false while some have not arrived. */
  private load(): boolean {
    const { lanes, whole } = this.callsAround(this.at);
    this.lanes.forEach((lane, i) => { if (lanes[i].length || whole) lane.calls = lanes[i]; });
    return whole;
  }

  /** The calls of each lane, from the timeline's tiles; `whole` when all have arrived. */
  private callsAround(at: number): { lanes: Played[][]; from: number; until: number; whole: boolean } {
    const around = Math.min(this.pace * WINDOW, this.span), level = levelOf(2 * around, WIDTH), length = tileLength(level);
    const from = Math.max(at - around, -Number(this.from)), until = Math.min(at + around / 4, this.span);
    const first = Math.floor((Number(this.from) + from) / length), last = Math.floor((Number(this.from) + until) / length);
    let whole = true;
    const lanes = this.lanes.map((lane) => {
      const calls = new Map<string, Played>();
      for (let i = first; i <= last; i++) {
        const tile = this.context.api.tile(lane.track, level, i), shift = Number(BigInt(i) * BigInt(length) - this.from);
        whole &&= tile !== undefined;
        for (const { begin, end, depth, name, hue, flags } of tile?.slices ?? []) {
          calls.set(`${depth},${shift + begin}`, { func: name, depth, hue, flags, begin: shift + begin, end: shift + end });
        }
      }
      return [...calls.values()].sort((a, b) => a.begin - b.begin);
    });
    return { lanes, from, until, whole };
  }

  /** How often each function was called since the begin of the range: exact numbers from the server. Samples know its self time. */
  private async countCalls(): Promise<void> {
    const now = performance.now();
    if (now - this.asked < ASK) return;
    this.asked = now;
    this.asking?.abort();
    this.asking = new AbortController();
    const until = this.from + BigInt(Math.round(this.at)), params = { ...rangeParams(this.context), from: this.from < 0n ? 0n : this.from, until };
    try {
      const { rows } = await ask<{ rows: number[][] }>('functions', params, this.asking.signal);
      const at = this.context.trace.samples ? SELF : CALLS;
      this.bars = rows.map((row): [number, number] => [row[FUNC], row[at]]).filter(([, amount]) => amount > 0).sort((a, b) => b[1] - a[1]);
      this.barsMost = Math.max(...this.bars.slice(0, 1).map(([, amount]) => amount), 1);
      if (!this.playing) this.paint();
    } catch { /* another is asked for */ }
  }

  redraw(): void {
    if (!this.element.isConnected || this.playing) return;
    this.load();
    this.paint();
    this.seek();
  }

  private draw(): void {
    this.load();
    this.keep();
    void this.countCalls();
    this.paint();
    this.slider.value = String(Math.round(this.at / this.span * 1000));
    this.clock.textContent = moment(this.from + BigInt(Math.round(this.at)));
    if (this.element.isConnected) this.context.store.setCursor(this.from + BigInt(Math.round(this.at)));
  }

  private paint(): void {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!width || !height) return;
    const context = sized(this.canvas, width, height), colours = palette(isDark());
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = 'middle';
    const roomy = width > 900, hasClock = !this.context.trace.samples, right = roomy ? (hasClock ? CLOCK + GAP : 0) + BARS + GAP : 0; // samples see no call end
    this.paintThreads(context, width - right, height, colours);
    if (roomy) {
      if (hasClock) this.paintClock(context, width - right + GAP + CLOCK / 2, Math.min(height / 2, CLOCK / 2), Math.min(CLOCK, height) / 2 - 8, colours);
      this.paintBars(context, width - BARS, height, colours);
    }
    this.canvas.setAttribute('aria-label', this.words());
  }

  private nameOf(func: number): string {
    const known = this.context.api.funcs.get(func);
    return known ? label(known) : '\u2026';
  }

  /** For screen readers: the innermost open call of each thread. */
  private words(): string {
    return this.lanes.map((lane) => {
      const open = rowsAt(lane.calls, this.at).map((row) => row.open).filter((cell): cell is Cell => cell !== null).pop();
      return `${lane.name}: ${open ? this.nameOf(open.call.func) : 'no call'}`;
    }).join('; ') || 'no thread made calls in the range';
  }

  private paintThreads(context: CanvasRenderingContext2D, width: number, height: number, colours: Palette): void {
    const each = width / Math.max(this.lanes.length, 1);
    this.lanes.forEach((lane, i) => {
      const x = i * each, rows = rowsAt(lane.calls, this.at), room = Math.max(Math.floor((height - HEAD) / ROW), 1), first = Math.max(rows.length - room, 0);
      const more = i === this.lanes.length - 1 && this.hidden ? `   (${count(this.hidden)} threads more: choose lanes)` : '';
      context.fillStyle = colours.quiet;
      context.fillText(shorten(`${lane.name}${first ? `, from depth ${first} on` : ''}${more}`, Math.floor((each - GAP) / CHARACTER)), x, HEAD / 2);
      rows.slice(first).forEach((row, line) => this.paintRow(context, row, x, HEAD + line * ROW, each - GAP, colours));
      if (!rows.length) context.fillText('no call', x, HEAD + ROW / 2);
    });
  }

  private paintRow(context: CanvasRenderingContext2D, row: Row, left: number, top: number, width: number, colours: Palette): void {
    for (const cell of row.cells) {
      const x = left + cell.x * width, w = Math.max(cell.width * width - 1, 1), h = ROW - 2;
      context.globalAlpha = cell.life === 'runs' ? 1 : 0.42;
      context.fillStyle = colours.call(cell.call.hue, cell.call.func);
      context.fillRect(x, top, w, h);
      context.globalAlpha = 1;
      if (cell.life === 'suspended') this.hatch(context, x, top, w, h, colours.quiet);
      if (cell.life === 'raised') this.edge(context, x + w - 3, top, h, colours.lost);
      if (cell.resumed) this.edge(context, x, top, h, colours.accent);
      if (cell.life === 'runs') {
        context.strokeStyle = colours.ink;
        context.strokeRect(x + 0.5, top + 0.5, w - 1, h - 1);
      }
      const room = Math.floor((w - 8) / CHARACTER);
      if (room < 3) continue;
      context.fillStyle = cell.life === 'runs' ? colours.textOn : colours.quiet;
      const ns = Math.min(cell.call.end, this.at) - cell.call.begin, name = this.nameOf(cell.call.func), full = `${name}  ${duration(ns)}`;
      context.fillText(full.length <= room ? full : shorten(name, room), x + 4, top + h / 2 + 0.5);
    }
  }

  private edge(context: CanvasRenderingContext2D, x: number, y: number, height: number, colour: string): void {
    context.fillStyle = colour;
    context.fillRect(x, y, 3, height);
  }

  private hatch(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, colour: string): void {
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = colour;
    context.globalAlpha = 0.5;
    context.beginPath();
    for (let at = x - height; at < x + width; at += 6) {
      context.moveTo(at, y + height);
      context.lineTo(at + height, y);
    }
    context.stroke();
    context.restore();
  }

  private paintClock(context: CanvasRenderingContext2D, x: number, y: number, radius: number, colours: Palette): void {
    const turn = Math.max(this.pace * TURN, 1), inner = radius * 0.22;
    context.strokeStyle = colours.rule;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.moveTo(x + inner, y);
    context.arc(x, y, inner, 0, 2 * Math.PI);
    context.stroke();
    for (const ray of raysAt(this.lanes.map((lane) => lane.calls), this.at, turn)) {
      const angle = 2 * Math.PI * ray.angle - Math.PI / 2, end = inner + ray.length * (radius - inner);
      context.globalAlpha = 0.15 + 0.85 * (1 - ray.age);
      context.strokeStyle = colours.call(ray.call.hue, ray.call.func);
      context.lineWidth = 3;
      context.beginPath();
      context.moveTo(x + Math.cos(angle) * inner, y + Math.sin(angle) * inner);
      context.lineTo(x + Math.cos(angle) * end, y + Math.sin(angle) * end);
      context.stroke();
    }
    context.globalAlpha = 1;
    context.lineWidth = 1;
    const hand = 2 * Math.PI * (this.at / turn % 1) - Math.PI / 2;
    context.strokeStyle = colours.accent;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + Math.cos(hand) * radius, y + Math.sin(hand) * radius);
    context.stroke();
    context.fillStyle = colours.quiet;
    context.textAlign = 'center';
    context.fillText(`a turn is ${duration(turn)}`, x, y + radius + 14);
    context.textAlign = 'left';
  }

  private paintBars(context: CanvasRenderingContext2D, left: number, height: number, colours: Palette): void {
    context.fillStyle = colours.quiet;
    const { samples } = this.context.trace;
    context.fillText(samples ? 'self time so far, by samples' : 'calls so far', left, HEAD / 2);
    this.bars.slice(0, Math.max(Math.floor((height - HEAD) / BAR), 0)).forEach(([func, amount], i) => {
      const y = HEAD + i * BAR, known = this.context.api.funcs.get(func), w = Math.max(amount / this.barsMost * BARS, 1);
      context.fillStyle = colours.call(known?.hue ?? 12, func);
      context.fillRect(left, y, w, BAR - 2);
      context.fillStyle = colours.ink;
      const number = `${samples ? duration(amount) : count(amount)}  `, room = Math.floor((BARS - 8) / CHARACTER) - number.length;
      context.fillText(number + shorten(this.nameOf(func), room), left + 4, y + BAR / 2 - 0.5);
    });
  }
}

let player: Player | null = null;

/** Names and calls have arrived. */
export function redrawPlay(): void {
  player?.redraw();
}

export const play: Panel = {
  id: 'play', title: 'Play', key: 'code:KeyY', ofRange: true, offered: hasCalls,
  make(context) {
    player = new Player(context);
    return player.element;
  },
  async update() {
    player?.show();
  },
  focus() {
    player?.focus();
  },
};
