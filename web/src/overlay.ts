// SPDX-License-Identifier: Apache-2.0
// What a selection adds to the lanes: wakeups, flows and waits of tasks for each other, as arrows, and the critical path, as a
// line from thread to thread.

import { ApiError, ask } from './api';
import { Lanes } from './lanes';
import { Trace } from './model';
import { Frame } from './paint';
import { Palette } from './palette';
import { Range, Store } from './store';
import { count } from './time';

const ARROWS = 200; // at most on the screen
const COLUMNS = 200; // of the screen: of the arrows between the same two, one is drawn
const FAINT = 40; // more arrows than this are drawn fainter
const WAIT = 150; // ms after the last change
const HEAD = 4, LINE = 3;

export interface Segment { begin: bigint; end: bigint; kind: string; depth: number; tid: number; name: string | null; syscall: string | null; device: string | null;
  byTid: number | null; byName: string | null; track: number | null; byTrack: number | null }
export interface Wakeup { by: number; to: number; at: bigint; runs: bigint; calls: string | null } // tracks; what the work calls

type SegmentRow = [string, string, string, number, number, string | null, string | null, string | null, number | null, string | null, number | null, number | null];

export function readSegment(row: SegmentRow): Segment {
  const [begin, end, kind, depth, tid, name, syscall, device, byTid, byName, track, byTrack] = row;
  return { begin: BigInt(begin), end: BigInt(end), kind, depth, tid, name, syscall, device, byTid, byName, track, byTrack };
}

/** The wakeups by and of a thread or a task in a range, and its flows. */
export async function askWakeups(track: number, from: bigint, until: bigint, of: { begin?: bigint; end?: bigint; limit?: number; columns?: number } = {}, signal?: AbortSignal): Promise<{ list: Wakeup[]; more: number }> {
  const { wakeups, more } = await ask<{ wakeups: [number, string, number, string, string | null][]; more: number }>('wakeups', { track, from, until, ...of }, signal);
  return { list: wakeups.map(([by, at, to, runs, calls]) => ({ by, to, at: BigInt(at), runs: BigInt(runs), calls })), more };
}

/** The track of the thread whose path is shown: that of the selected call, or of the first recorded thread. */
export function pathTrack(trace: Trace, call: { track: number } | null): number | undefined {
  const isThread = (id: number): boolean => trace.tracks[id]?.of === 'thread';
  return call && isThread(call.track) ? call.track : trace.tracks.find((t) => t.of === 'thread' && t.thread !== null)?.id;
}

const untilOf = (range: Range): bigint => range.from + BigInt(Math.round(range.span));
const atLeast0 = (at: bigint): bigint => (at < 0n ? 0n : at);
const shifted = (range: Range, by: bigint): Range => ({ from: range.from + by, span: range.span });

/** A request that is sent again only when it is about something else. */
class Request {
  private about = '';
  private now: Promise<void> = Promise.resolve();
  private sent: AbortController | null = null;

  get busy(): boolean {
    return this.sent !== null && !this.sent.signal.aborted;
  }

  /** Resolves when the answer has arrived, the request was cancelled, or it failed. */
  run(about: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (about === this.about) return this.now;
    this.about = about;
    this.sent?.abort();
    const sent = this.sent = new AbortController();
    return this.now = work(sent.signal).catch(() => {
      if (!sent.signal.aborted) this.about = '';
    }).then(() => {
      if (this.sent === sent) this.sent = null;
    });
  }

  /** It is not sent again until it is about something else, or `forget` was called. */
  cancel(): void {
    this.sent?.abort();
  }

  forget(): void {
    this.about = '';
  }
}

export class Overlay {
  path: Segment[] = [];
  problem = ''; // why there is none
  wakeups: Wakeup[] = [];
  more = 0; // wake-ups that are not shown
  private pathRequest = new Request();
  private wakeupRequest = new Request();
  private timer = 0;

  constructor(private trace: Trace, private store: Store, private lanes: Lanes, private changed: () => void) {}

  /** The range of the path in time on the screen: the selected range, or that of the selected call. */
  get range(): Range | null {
    const call = this.store.detail;
    return this.store.view.selected ?? (call && { from: call.begin - this.shift(call.track), span: Math.max(Number(call.end - call.begin), 1) });
  }

  /** Which part of the arrows is drawn, in words; empty: all. */
  get restText(): string {
    const shown = this.wakeups.length;
    return this.more ? `${count(shown)} of ${count(shown + this.more)} arrows are drawn; zoom in to see the others` : '';
  }

  /** Requests what is missing; resolves when it has arrived. */
  async update(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = 0;
    const { view, detail } = this.store, { range } = this;
    const track = pathTrack(this.trace, detail), own = detail && this.hasArrows(detail.track) ? detail.track : undefined;
    await Promise.all([
      this.ask(this.pathRequest, track, view.path && range ? [range] : [], ([of], signal) => this.findPath(track, of, signal)),
      this.ask(this.wakeupRequest, own, range ? [range, view.range] : [], ([of, shown], signal) => this.findWakeups(own, of, shown, signal)),
    ]);
  }

  /** Of tasks there are some without tracks of flows. */
  private hasArrows(track: number): boolean {
    const { of } = this.trace.tracks[track];
    return of === 'task' || (of === 'thread' && this.trace.tracks.some((t) => t.kind === 'flows'));
  }

  /** For ranges on the screen, asks about those of the track's time; none: about nothing. */
  private ask(request: Request, track: number | undefined, ranges: Range[], find: (ranges: Range[], signal: AbortSignal) => Promise<void>): Promise<void> {
    const of = track === undefined ? [] : ranges.map((range) => shifted(range, this.shift(track)));
    return request.run(JSON.stringify([track, ...of.map(({ from, span }) => [String(from), span])]), async (signal) => {
      await find(of, signal);
      this.changed();
    });
  }

  /** Runs a moment after the last change. */
  later(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => { void this.update(); }, WAIT);
  }

  get busy(): boolean {
    return this.timer !== 0 || this.pathRequest.busy || this.wakeupRequest.busy;
  }

  /** Cancels the request for the path, if there is one. */
  cancel(): void {
    if (!this.pathRequest.busy) return;
    this.problem = 'The critical path was cancelled.';
    this.pathRequest.cancel();
  }

  /** Lets the next update send a cancelled request again. */
  again(): void {
    if (!this.path.length && !this.pathRequest.busy) this.pathRequest.forget();
  }

  /** Shows the path or hides it. Who does both at once wants one that was cancelled. */
  togglePath(): void {
    this.again();
    this.store.togglePath();
  }

  /** The time of a track minus the time on the screen. */
  private shift(track: number): bigint {
    return this.lanes.shiftOf(this.trace.tracks[track]);
  }

  private async findPath(track: number | undefined, range: Range | undefined, signal: AbortSignal): Promise<void> {
    this.path = [];
    this.problem = '';
    if (!range) return;
    try {
      const answer = await ask<{ segments: SegmentRow[] }>('path', { track, from: atLeast0(range.from), until: untilOf(range) }, signal);
      this.path = answer.segments.map(readSegment);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.problem = error.message;
    }
  }

  private async findWakeups(track: number | undefined, range: Range | undefined, shown: Range | undefined, signal: AbortSignal): Promise<void> {
    if (track === undefined || !range || !shown) {
      this.wakeups = [];
      this.more = 0;
      return;
    }
    const selection = { begin: atLeast0(range.from), end: atLeast0(untilOf(range)) };
    const { list, more } = await askWakeups(track, atLeast0(shown.from), atLeast0(untilOf(shown)) + 1n, { ...selection, limit: ARROWS, columns: COLUMNS }, signal);
    this.wakeups = list;
    this.more = more;
  }

  draw(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): void {
    context.save();
    this.drawPath(context, frame, colours);
    this.drawArrows(context, frame, colours);
    context.restore();
  }

  private x(at: bigint, track: number, frame: Frame): number {
    return Math.min(Math.max(Number(at - this.shift(track) - frame.from) / frame.span * frame.width, -8), frame.width + 8);
  }

  /** The height below the strip of a thread's states, or below its marks; for a hidden thread, in the head of its group. */
  private y(track: number, frame: Frame, isBelow = false): number | undefined {
    const at = this.lanes.heightOf(track, isBelow) ?? this.lanes.heightOf(this.besideOf(track), isBelow);
    return at === undefined ? undefined : at - frame.scroll;
  }

  private beside: { of: Trace['tracks'] | null; found: Map<number, number> } = { of: null, found: new Map() };

  /** A track in the lane of the same thread: the flows of a program have none of their own. */
  private besideOf(track: number): number {
    const { tracks } = this.trace, { of, thread, process, machine, number } = tracks[track];
    if (this.beside.of !== tracks) this.beside = { of: tracks, found: new Map() };
    let found = this.beside.found.get(track);
    if (found === undefined) {
      found = tracks.find((t) => t.kind !== 'flows' && t.of === of && t.thread === thread && t.process === process && t.machine === machine && t.number === number)?.id ?? track;
      this.beside.found.set(track, found);
    }
    return found;
  }

  private drawPath(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): void {
    let before: number | undefined;
    context.fillStyle = context.strokeStyle = colours.path;
    context.lineWidth = 1.5;
    for (const segment of this.path) {
      const y = segment.track === null ? undefined : this.y(segment.track, frame);
      if (y === undefined || segment.track === null) continue;
      const left = this.x(segment.begin, segment.track, frame), right = this.x(segment.end, segment.track, frame);
      if (right >= 0 && left <= frame.width) {
        context.globalAlpha = segment.kind === 'running' ? 1 : 0.5;
        context.fillRect(left, y, Math.max(right - left, 1), LINE);
        context.globalAlpha = 1;
        if (before !== undefined && before !== y) this.arrow(context, left, before + LINE / 2, left, y + LINE / 2);
      }
      before = y;
    }
  }

  private drawArrows(context: CanvasRenderingContext2D, frame: Frame, colours: Palette): void {
    context.strokeStyle = context.fillStyle = colours.accent;
    context.lineWidth = 1;
    context.globalAlpha = this.wakeups.length > FAINT ? 0.5 : 0.9;
    for (const wakeup of this.wakeups) {
      const above = this.y(wakeup.by, frame), below = this.y(wakeup.to, frame);
      const left = this.x(wakeup.at, wakeup.by, frame), right = this.x(wakeup.runs, wakeup.to, frame);
      if (above === undefined || below === undefined || above === below || right < 0 || left > frame.width) continue;
      const from = this.y(wakeup.by, frame, below > above) ?? above, to = this.y(wakeup.to, frame, above > below) ?? below;
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
