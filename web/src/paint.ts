// SPDX-License-Identifier: Apache-2.0
// Drawing lanes into a canvas: strips of folded calls by drawImage, long ones as boxes with their names.

import { Api, tileLength } from './api';
import { Lane, Lanes, Part } from './lanes';
import { MarkTexts, Placed, drawMark } from './marks';
import { Trace, Track, isLosses, label } from './model';
import { Palette, rgb, stateRole } from './palette';
import { CHARACTER, FONT, shorten } from './shorten';
import { Store } from './store';
import { Sum, busyTracks, missingText, runsOf, spread } from './summary';
import { isSampled } from './samples';
import { BINS, CUT, Slice, Tile, UNWOUND, stretches } from './tile';

const BIN_PIXELS = 2; // a bin is one to two pixels wide
const TEXT_LEAST = 28; // pixels of a box that has its name in it
const DASH = 3; // pixels: length of a dash, and of the gap after it
const UP = 8; // levels above in which to look for a tile to show meanwhile

export interface Frame { width: number; height: number; scroll: number; from: bigint; span: number }

/** The times of a lane. */
export function shifted(frame: Frame, shift: bigint): Frame {
  return { ...frame, from: frame.from + shift };
}

export function levelOf(span: number, width: number): number {
  return Math.max(0, Math.floor(Math.log2(Math.max(span / Math.max(width, 1) * BIN_PIXELS, 1))));
}

/** Whether a call is highlighted. */
function isLit(lit: NonNullable<Store['lit']>, slice: Slice): boolean {
  const ns = slice.end - slice.begin;
  return slice.name === lit.func && ns >= (lit.min ?? 0) && ns <= (lit.max ?? Infinity);
}

interface Strip { canvas: HTMLCanvasElement; dark: boolean }

/** Each row as a line of 512 pixels: the hue gives the colour, the busy share the density. */
function stripOf(tile: Tile, palette: Palette, colour: (hue: number) => string): HTMLCanvasElement {
  const made = tile.picture as Strip | null;
  if (made && made.dark === palette.dark) return made.canvas;
  const canvas = document.createElement('canvas');
  canvas.width = BINS;
  canvas.height = Math.max(tile.rows.length, 1);
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  const image = context.createImageData(BINS, canvas.height);
  tile.rows.forEach((row, line) => {
    for (let bin = 0; bin < BINS; bin++) {
      const busy = row.bins[3 * bin + 1];
      if (!busy) continue;
      const [r, g, b] = rgb(colour(row.bins[3 * bin]));
      const at = 4 * (line * BINS + bin);
      image.data[at] = r;
      image.data[at + 1] = g;
      image.data[at + 2] = b;
      image.data[at + 3] = 70 + Math.round(busy * 185 / 255);
    }
  });
  context.putImageData(image, 0, 0);
  tile.picture = { canvas, dark: palette.dark };
  return canvas;
}

/** A dashed line between two places; at least one dash, so that what is short is seen. */
function dashes(context: CanvasRenderingContext2D, from: number, until: number, top: number, width: number): void {
  if (until < 0 || from > width) return;
  const left = Math.max(from, 0), right = Math.max(Math.min(until, width), left + DASH);
  for (let x = left; x < right; x += 2 * DASH) context.fillRect(x, top, Math.min(DASH, right - x), 2);
}

export class Painter {
  missing = false; // a tile on the screen has not arrived yet
  unfinished = false; // the index was not whole
  private placed = new Map<number, Placed[]>(); // marks, by track
  constructor(private trace: Trace, private store: Store, private api: Api, private lanes: Lanes, private texts: MarkTexts) {}

  /** Draws all lanes on the screen. If tiles are deeper than known, it requests another layout (lanes.stale). */
  paint(context: CanvasRenderingContext2D, frame: Frame, palette: Palette): void {
    const level = levelOf(frame.span, frame.width);
    this.missing = this.unfinished = false;
    this.placed.clear();
    context.font = FONT;
    context.textBaseline = 'middle';
    context.imageSmoothingEnabled = false;
    for (const lane of this.lanes.lanes) {
      const top = lane.top - frame.scroll;
      if (top > frame.height || top + lane.height < 0) continue;
      this.ground(context, lane, top, frame, palette);
      if (lane.level === 0 && lane.collapsed) this.summary(context, lane, top, shifted(frame, lane.shift), level, palette);
      const own = shifted(frame, lane.shift);
      for (const part of lane.parts) {
        this.part(context, part, top + part.top, own, level, palette);
        if (part.track.kind === 'calls') this.losses(context, part, top + part.top, own, level, palette);
      }
    }
    this.texts.draw(context, this.missing ? [] : [...this.placed.values()], frame.width, palette);
  }

  private ground(context: CanvasRenderingContext2D, lane: Lane, top: number, frame: Frame, palette: Palette): void {
    context.fillStyle = palette.rule;
    if (lane.level === 0) context.fillRect(0, top + lane.height - 1, frame.width, 1);
    else {
      context.fillStyle = palette.grid;
      context.fillRect(0, top + lane.height - 1, frame.width, 1);
    }
  }

  /** Draws a folded group: its height is the number of busy threads, relative to the highest such number. Dashes above it are where events of any thread are missing. */
  private summary(context: CanvasRenderingContext2D, lane: Lane, top: number, frame: Frame, level: number, palette: Palette): void {
    const width = Math.ceil(frame.width), high = lane.height - 8;
    const [shares, missing] = [busyTracks(lane.tracks).tracks, lane.tracks.filter(isLosses)].map((tracks) => spread(this.sumsOf(tracks, frame, level), level, Number(frame.from), frame.span, width));
    const most = Math.max(...shares, 1);
    context.fillStyle = palette.state('run');
    for (let x = 0; x < width; x++) {
      if (shares[x] > 0) context.fillRect(x, top + lane.height - 4 - Math.max(shares[x] / most * high, 1), 1, Math.max(shares[x] / most * high, 1));
    }
    context.fillStyle = palette.lost;
    for (const [from, until] of runsOf(missing)) dashes(context, from, until, top + 1, width);
  }

  private sumsOf(tracks: Track[], frame: Frame, level: number): Map<number, Sum> {
    const length = tileLength(level), found = new Map<number, Sum>();
    if (!tracks.length) return found;
    const first = this.indexOf(frame.from, length), last = this.indexOf(frame.from + BigInt(Math.round(frame.span)), length);
    for (let i = Math.max(first, 0); i <= last; i++) {
      const sum = this.api.summaries.get(tracks, level, i);
      if (sum) found.set(i, sum);
      else this.missing = true;
      this.unfinished ||= !!sum?.unfinished;
    }
    return found;
  }

  /** The number of busy threads of a folded group at a time, in words, and of those whose events are missing. */
  summaryTexts(lane: Lane, at: bigint, frame: Frame): string[] {
    const { tracks, words } = busyTracks(lane.tracks), losses = lane.tracks.filter(isLosses);
    const busy = this.sumAt(tracks, at, frame), missing = losses.length ? this.sumAt(losses, at, frame) : undefined;
    if (busy === undefined) return [];
    const text = `${busy.toFixed(2)} of ${tracks.length} ${words}`;
    return missing ? [text, missingText(missing)] : [text];
  }

  private sumAt(tracks: Track[], at: bigint, frame: Frame): number | undefined {
    const level = levelOf(frame.span, frame.width), length = tileLength(level), index = this.indexOf(at, length);
    const sum = index < 0 ? undefined : this.api.summaries.get(tracks, level, index);
    return sum?.busy[Math.min(Math.floor(Number(at - BigInt(index) * BigInt(length)) / 2 ** level), BINS - 1)];
  }

  private colourOf(track: Track, palette: Palette): (hue: number, name: number) => string {
    if (track.kind === 'calls') return (hue, name) => palette.call(hue, name);
    const classes = this.trace.classes;
    if (track.kind === 'states') {
      return (hue) => (hue < classes.length ? palette.state(stateRole(classes[hue].name)) : palette.call((hue - classes.length) % 12, 1));
    }
    return (hue) => palette.call(hue < classes.length ? hue % 12 : (hue - classes.length) % 12, 1);
  }

  private part(context: CanvasRenderingContext2D, part: Part, top: number, frame: Frame, level: number, palette: Palette): void {
    const length = tileLength(level);
    const first = this.indexOf(frame.from, length), last = this.indexOf(frame.from + BigInt(Math.round(frame.span)), length);
    for (let i = Math.max(first, 0); i <= last; i++) {
      const tile = this.api.tile(part.track.id, level, i);
      if (!tile) {
        this.missing = true;
        this.meanwhile(context, part, top, frame, level, i, palette);
        continue;
      }
      this.tile(context, part, top, frame, tile, i === Math.max(first, 0), palette);
    }
  }

  private lossTracks: { of: Track[] | null; byThread: Map<number, Track> } = { of: null, byThread: new Map() };

  /** The track that says where events of a thread are missing. */
  private lossesOf(thread: number | null): Track | undefined {
    const { tracks } = this.trace;
    if (this.lossTracks.of !== tracks) {
      const known = tracks.filter(isLosses).map((track) => [track.thread ?? -1, track] as const);
      this.lossTracks = { of: tracks, byThread: new Map(known) };
    }
    return this.lossTracks.byThread.get(thread ?? NaN);
  }

  /** Draws a dashed line above a thread's calls, from where to where events were lost or the recording was off. */
  private losses(context: CanvasRenderingContext2D, part: Part, top: number, frame: Frame, level: number, palette: Palette): void {
    const track = this.lossesOf(part.track.thread), length = tileLength(level);
    if (!track) return;
    const first = Math.max(this.indexOf(frame.from, length), 0), last = this.indexOf(frame.from + BigInt(Math.round(frame.span)), length), colour = this.colourOf(track, palette);
    for (let i = first; i <= last; i++) {
      const tile = this.api.tile(track.id, level, i), base = Number(BigInt(i) * BigInt(length) - frame.from);
      this.missing ||= !tile;
      this.unfinished ||= !!tile?.unfinished;
      for (const { begin, end, hue } of tile ? stretches(tile) : []) {
        if (begin < 0 && i > first) continue; // it is in the tile before, too
        context.fillStyle = colour(hue, 1);
        dashes(context, (base + begin) / frame.span * frame.width, (base + end) / frame.span * frame.width, top, frame.width);
      }
    }
  }

  private indexOf(at: bigint, length: number): number {
    return at < 0n ? -1 : Number(at / BigInt(length));
  }

  /** Draws a coarser tile that has arrived in place of one that has not. */
  private meanwhile(context: CanvasRenderingContext2D, part: Part, top: number, frame: Frame, level: number, index: number, palette: Palette): void {
    for (let up = 1; up <= UP; up++) {
      const tile = this.api.peek(part.track.id, level + up, Math.floor(index / 2 ** up));
      if (!tile) continue;
      const begin = this.x(BigInt(index) * BigInt(tileLength(level)), frame), width = tileLength(level) / frame.span * frame.width;
      context.save();
      context.beginPath();
      context.rect(begin, top, width, part.rowHeight * part.rows);
      context.clip();
      this.tile(context, part, top, frame, tile, true, palette);
      context.restore();
      return;
    }
  }

  x(at: bigint, frame: Frame): number {
    return Number(at - frame.from) / frame.span * frame.width;
  }

  private tile(context: CanvasRenderingContext2D, part: Part, top: number, frame: Frame, tile: Tile, isFirst: boolean, palette: Palette): void {
    const begin = tile.index * BigInt(tileLength(tile.level));
    const x = this.x(begin, frame), width = tileLength(tile.level) / frame.span * frame.width;
    this.lanes.learn(part.track.id, tile.deepest);
    this.unfinished ||= tile.unfinished;
    if (tile.kind === 'counter') this.counter(context, part, top, x, width, tile, palette);
    else if (tile.kind === 'instants') this.marks(context, part, top, x, width, tile, begin, palette);
    else this.boxes(context, part, top, frame, x, width, begin, tile, isFirst, palette);
  }

  private boxes(context: CanvasRenderingContext2D, part: Part, top: number, frame: Frame, x: number, width: number, begin: bigint, tile: Tile,
    isFirst: boolean, palette: Palette): void {
    const colour = this.colourOf(part.track, palette);
    if (tile.rows.length) {
      const strip = stripOf(tile, palette, (hue) => colour(hue, 1));
      tile.rows.forEach((row, line) => {
        if (row.depth >= part.rows) return;
        const inset = part.track.kind === 'states' ? 0 : 3;
        context.drawImage(strip, 0, line, BINS, 1, x, top + row.depth * part.rowHeight + inset, width, part.rowHeight - 1 - inset);
      });
    }
    const lit = this.store.lit;
    for (const slice of tile.slices) {
      if (slice.depth >= part.rows || (slice.begin < 0 && !isFirst)) continue;
      this.box(context, part, top, frame, begin, slice, colour(slice.hue, slice.name), palette, lit);
    }
  }

  /** Highlighted single calls get a line below, however short they are. */
  lines(context: CanvasRenderingContext2D, frame: Frame, palette: Palette): void {
    context.fillStyle = palette.accent;
    for (const call of this.store.lit?.calls ?? []) {
      const at = this.lanes.of(call.track), own = shifted(frame, at?.lane.shift ?? 0n), left = this.x(call.begin, own), right = this.x(call.end, own);
      if (!at || call.depth >= at.part.rows || right < 0 || left > frame.width) continue;
      context.fillRect(Math.max(left, -2), at.lane.top + at.part.top + (call.depth + 1) * at.part.rowHeight - 3 - frame.scroll, Math.max(Math.min(right, frame.width) - Math.max(left, -2), 2), 3);
    }
  }

  private box(context: CanvasRenderingContext2D, part: Part, top: number, frame: Frame, tileBegin: bigint, slice: Slice, colour: string,
    palette: Palette, lit: Store['lit']): void {
    const base = Number(tileBegin - frame.from);
    const left = Math.max((base + slice.begin) / frame.span * frame.width, -2);
    const right = Math.min((base + slice.end) / frame.span * frame.width, frame.width + 2);
    const width = Math.max(right - left - (right - left > 4 ? 1 : 0), 1), y = top + slice.depth * part.rowHeight, height = part.rowHeight - 1;
    if (right < 0 || left > frame.width) return;
    const isCall = part.track.kind === 'calls';
    context.globalAlpha = isCall && lit && !isLit(lit, slice) ? 0.28 : 1;
    context.fillStyle = colour;
    context.fillRect(left, y, width, height);
    if (isCall && slice.flags & UNWOUND) {
      context.fillStyle = palette.lost;
      context.fillRect(left + width - 2, y, 2, height);
    }
    if (isCall && slice.flags & CUT && !isSampled(part.track)) {
      context.fillStyle = palette.quiet;
      for (let dash = 0; dash < height; dash += 4) context.fillRect(left + width - 1, y + dash, 1, 2);
    }
    context.globalAlpha = 1;
    if (width >= TEXT_LEAST && height >= 12) this.name(context, part, slice, left, y, width, height, palette);
  }

  private name(context: CanvasRenderingContext2D, part: Part, slice: Slice, left: number, y: number, width: number, height: number, palette: Palette): void {
    const text = this.textOf(part, slice.name);
    if (!text) return;
    const inside = Math.max(left, 0) + 4, room = Math.floor((left + width - inside - 3) / CHARACTER);
    if (room < 3) return;
    context.fillStyle = palette.textOn;
    context.fillText(text.length > room ? shorten(text, room) : text, inside, y + height / 2 + 0.5);
  }

  private textOf(part: Part, name: number): string | undefined {
    if (part.track.kind !== 'calls') return this.api.texts.get(name);
    const func = this.api.funcs.get(name);
    return func && label(func);
  }

  private counter(context: CanvasRenderingContext2D, part: Part, top: number, x: number, width: number, tile: Tile, palette: Palette): void {
    const values = tile.counters as Float64Array;
    const { low, high } = this.rangeOf(part.track.id, values), scale = (part.rowHeight - 2) / (high - low || 1);
    const bottom = top + part.rowHeight - 1, y = (value: number) => bottom - (value - low) * scale, zero = y(0);
    context.save();
    context.fillStyle = palette.state('network');
    for (let bin = 0; bin < BINS; bin++) {
      const least = y(values[3 * bin]), most = y(values[3 * bin + 1]);
      if (Number.isNaN(most)) continue;
      const from = Math.round(x + bin * width / BINS), above = Math.min(most, zero);
      const wide = Math.max(Math.round(x + (bin + 1) * width / BINS) - from, 1); // whole pixels: no seams
      context.globalAlpha = 0.3;
      context.fillRect(from, above, wide, Math.max(least, zero) - above);
      context.globalAlpha = 1;
      const line = Math.round(most - 0.5);
      context.fillRect(from, line, wide, Math.round(least + 0.5) - line); // each bin begins with the value that the one before it ends with
    }
    context.restore();
  }

  /** The least and the most value of a counter in all tiles that were drawn, and 0. */
  private rangeOf(track: number, values: Float64Array): { low: number; high: number } {
    const range = this.counterRanges.get(track) ?? { low: 0, high: 0 };
    for (let bin = 0; bin < BINS; bin++) {
      range.low = Math.min(range.low, values[3 * bin] || 0);
      range.high = Math.max(range.high, values[3 * bin + 1] || 0);
    }
    this.counterRanges.set(track, range);
    return range;
  }

  private counterRanges = new Map<number, { low: number; high: number }>();

  /** The more serious ones over the others; the texts beside them come when all tiles are drawn. */
  private marks(context: CanvasRenderingContext2D, part: Part, top: number, x: number, width: number, tile: Tile, begin: bigint, palette: Palette): void {
    const length = 2 ** tile.level, placed = tile.marks.map((mark) => {
      const from = begin + BigInt(mark.bin * length);
      return { track: part.track.id, x: x + (mark.bin + 0.5) * width / BINS, top, count: mark.count, level: mark.level, from, until: from + BigInt(length) };
    });
    for (const { level, x: at } of [...placed].sort((a, b) => a.level - b.level)) drawMark(context, level, at, top, palette);
    this.placed.set(part.track.id, [...this.placed.get(part.track.id) ?? [], ...placed]);
  }
}
