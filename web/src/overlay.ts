// SPDX-License-Identifier: Apache-2.0
// What a selection adds to the lanes: wakeups, as arrows, and the critical path, as a line from thread to
// thread.

import { ApiError, ask } from './api';
import { Lanes } from './lanes';
import { Trace } from './model';
import { Frame } from './paint';
import { Palette } from './palette';
import { Range, Store } from './store';

const ARROWS = 400; // at most on the screen
const WAIT = 150; // ms after the last change
const HEAD = 4, LINE = 3;

export interface Segment { begin: bigint; end: bigint; kind: string; depth: number; tid: number; name: string | null; syscall: string | null; device: string | null;
  byTid: number | null; byName: string | null; track: number | null; byTrack: number | null }
export interface Wakeup { by: number; to: number; at: bigint; runs: bigint } // tracks

type SegmentRow = [string, string, string, number, number, string | null, string | null, string | null, number | null, string | null, number | null, number | null];

export function readSegment(row: SegmentRow): Segment {
  const [begin, end, kind, depth, tid, name, syscall, device, byTid, byName, track, byTrack] = row;
  return { begin: BigInt(begin), end: BigInt(end), kind, depth, tid, name, syscall, device, byTid, byName, track, byTrack };
}

/** The wakeups by and of a thread in a range. */
export async function askWakeups(track: number, from: bigint, until: bigint, signal?: AbortSignal, limit?: number): Promise<{ list: Wakeup[]; more: number }> {
  const { wakeups, more } = await ask<{ wakeups: [number, string, number, string][]; more: number }>('wakeups', { track, from, until, limit }, signal);
  return { list: wakeups.map(([by, at, to, runs]) => ({ by, to, at: BigInt(at), runs: BigInt(runs) })), more };
}

/** The track of the thread whose path is shown: that of the selected call, or of the first recorded thread. */
export function pathTrack(trace: Trace, call: { track: number } | null): number | undefined {
  const isThread = (id: number): boolean => trace.tracks[id]?.of === 'thread';
  return call && isThread(call.track) ? call.track : trace.tracks.find((t) => t.of === 'thread' && t.thread !== null)?.id;
}

/** The intersection of two ranges; null if it is empty. */
export function common(a: Range, b: Range): Range | null {
  const until = (r: Range): bigint => r.from + BigInt(Math.round(r.span));
  const from = a.from > b.from ? a.from : b.from, end = until(a) < until(b) ? until(a) : until(b);
  return end > from ? { from, span: Number(end - from) } : null;
}

export class Overlay {
  path: Segment[] = [];
  pathOf: Range | null = null; // that the path is of
  problem = ''; // why there is none
  wakeups: Wakeup[] = [];
  more = 0; // wake-ups that are not shown
  private asking: AbortController | null = null;
  private asked = '';
  private now: Promise<void> = Promise.resolve();
  private timer = 0;

  constructor(private trace: Trace, private store: Store, private lanes: Lanes, private changed: () => void) {}

  /** The range of the path: the selected range, or that of the selected call. */
  get range(): Range | null {
    const call = this.store.detail;
    return this.store.view.selected ?? (call && { from: call.begin, span: Math.max(Number(call.end - call.begin), 1) });
  }

  /** Requests what is missing; resolves when it has arrived. */
  update(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = 0;
    return this.now = this.ask();
  }

  /** Runs a moment after the last change. */
  later(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => { void this.update(); }, WAIT);
  }

  get busy(): boolean {
    return this.timer !== 0 || this.asking !== null;
  }

  private async ask(): Promise<void> {
    const { view, detail } = this.store, range = this.range, shown = range && common(range, view.range);
    const track = pathTrack(this.trace, detail), key = JSON.stringify([track, detail?.track, String(detail?.begin), String(range?.from), range?.span, view.path, String(shown?.from), shown?.span]);
    if (key === this.asked) return this.now;
    this.asked = key;
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    try {
      await Promise.all([this.findPath(track, view.path ? range : null, asking.signal), this.findWakeups(detail && this.trace.tracks[detail.track].of === 'thread' ? detail.track : undefined, shown, asking.signal)]);
    } catch {
      if (asking.signal.aborted) return;
      this.asked = '';
    }
    this.asking = null;
    this.changed();
  }

  private async findPath(track: number | undefined, range: Range | null, signal: AbortSignal): Promise<void> {
    const isSame = range && this.pathOf && range.from === this.pathOf.from && range.span === this.pathOf.span && this.path.length > 0;
    if (isSame) return;
    this.path = [];
    this.pathOf = range;
    this.problem = '';
    if (!range || track === undefined) return;
    const from = range.from < 0n ? 0n : range.from;
    try {
      const answer = await ask<{ segments: SegmentRow[] }>('path', { track, from, until: range.from + BigInt(Math.round(range.span)) }, signal);
      this.path = answer.segments.map(readSegment);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.problem = error.message;
    }
  }

  private async findWakeups(track: number | undefined, range: Range | null, signal: AbortSignal): Promise<void> {
    if (track === undefined || !range || !this.trace.tracks.some((t) => t.kind === 'flows')) {
      this.wakeups = [];
      this.more = 0;
      return;
    }
    const until = range.from + BigInt(Math.round(range.span)) + 1n;
    const { list, more } = await askWakeups(track, range.from < 0n ? 0n : range.from, until, signal, ARROWS);
    this.wakeups = list;
    this.more = more;
  }

  draw(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): void {
    context.save();
    this.drawPath(context, frame, colours);
    this.drawArrows(context, frame, colours);
    context.restore();
  }

  private x(at: bigint, frame: Frame): number {
    return Math.min(Math.max(Number(at - frame.from) / frame.span * frame.width, -8), frame.width + 8);
  }

  /** The height below the strip of a thread's states; for a hidden thread, in the head of its group. */
  private y(track: number, frame: Frame): number | undefined {
    const at = this.lanes.heightOf(track);
    return at === undefined ? undefined : at - frame.scroll;
  }

  private drawPath(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): void {
    let before: number | undefined;
    context.fillStyle = context.strokeStyle = colours.path;
    context.lineWidth = 1.5;
    for (const segment of this.path) {
      const y = segment.track === null ? undefined : this.y(segment.track, frame);
      const left = this.x(segment.begin, frame), right = this.x(segment.end, frame);
      if (y !== undefined && right >= 0 && left <= frame.width) {
        context.globalAlpha = segment.kind === 'running' ? 1 : 0.5;
        context.fillRect(left, y, Math.max(right - left, 1), LINE);
        context.globalAlpha = 1;
        if (before !== undefined && before !== y) this.arrow(context, left, before + LINE / 2, left, y + LINE / 2);
      }
      before = y ?? before;
    }
  }

  private drawArrows(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): void {
    context.strokeStyle = context.fillStyle = colours.accent;
    context.lineWidth = 1;
    for (const wakeup of this.wakeups) {
      const from = this.y(wakeup.by, frame), to = this.y(wakeup.to, frame);
      const left = this.x(wakeup.at, frame), right = this.x(wakeup.runs, frame);
      if (from === undefined || to === undefined || from === to || right < 0 || left > frame.width) continue;
      this.arrow(context, left, from, right, to);
    }
  }

  private arrow(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
    const down = y1 > y0 ? 1 : -1;
    context.beginPath();
    context.moveTo(x0, y0);
    if (x0 === x1) context.lineTo(x1, y1);
    else context.bezierCurveTo(x0, y0 + down * 14, x1, y1 - down * 14, x1, y1);
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - HEAD, y1 - down * 1.6 * HEAD);
    context.lineTo(x1 + HEAD, y1 - down * 1.6 * HEAD);
    context.fill();
  }
}
