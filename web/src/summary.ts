// SPDX-License-Identifier: Apache-2.0
// Several tracks together: how many of them were busy. The server adds them up exactly; here are its answers.

import { ApiError, ask, tileLength } from './api';
import { Trace, Track, isThreadState } from './model';
import { idRanges } from './panel';
import { counted, share } from './time';

export interface Sum { tracks: number; unfinished: boolean; busy: number[] } // busy: of each bin of a tile
const KEPT = 400, AT_A_TIME = 2;

/** The tracks that show how busy lanes were, and the words for it: their calls, or whether threads ran, or CPUs. */
export function busyTracks(tracks: Track[]): { tracks: Track[]; words: string } {
  const calls = tracks.filter((track) => track.kind === 'calls');
  if (calls.length) return { tracks: calls, words: 'threads are in a call' };
  const states = tracks.filter(isThreadState);
  if (states.length) return { tracks: states, words: 'threads run' };
  return { tracks: tracks.filter((track) => track.kind === 'states' && track.of === 'cpu'), words: 'CPUs are busy' };
}

/** The tracks that represent the whole recording. */
export function allBusy(trace: Trace): Track[] {
  const calls = trace.tracks.filter((track) => track.kind === 'calls');
  return calls.length ? calls : trace.tracks.filter((track) => track.kind === 'states' && track.of === 'cpu');
}

export class Summaries {
  private sums = new Map<string, Sum | 'asked'>();
  private waiting: string[] = [];
  private running = 0;

  constructor(private changed: () => void) {}

  /** The sum if it has arrived; otherwise it is requested. */
  get(tracks: Track[], level: number, index: number): Sum | undefined {
    const ids = tracks.length ? idRanges(tracks.map((track) => track.id)) : undefined;
    if (ids === undefined) return undefined;
    const key = `${ids}/${level}/${index}`, found = this.sums.get(key);
    if (typeof found === 'object') return found;
    if (!found) {
      this.sums.set(key, 'asked');
      this.waiting.push(key);
      this.pump();
    }
    return undefined;
  }

  /** Requests everything again: the recording, or its index, has grown. */
  forget(): void {
    this.sums.clear();
    this.waiting = [];
  }

  /** Requests again the sums from before the index was complete. */
  forgetUnfinished(): void {
    for (const [key, sum] of this.sums) if (typeof sum === 'object' && sum.unfinished) this.sums.delete(key);
  }

  get busy(): boolean {
    return this.running + this.waiting.length > 0;
  }

  private pump(): void {
    while (this.running < AT_A_TIME && this.waiting.length) {
      this.running++;
      void this.load(this.waiting.pop() as string).finally(() => {
        this.running--;
        this.pump();
        this.changed();
      });
    }
  }

  private async load(key: string): Promise<void> {
    const [tracks, level, tile] = key.split('/');
    try {
      this.sums.set(key, await ask<Sum>('busy', { tracks, level, tile }));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
    for (const old of this.sums.keys()) {
      if (this.sums.size <= KEPT) break;
      this.sums.delete(old);
    }
  }
}

/** Of how many threads events are missing, on average over a time. Of how many they are is not known if it is no whole number. */
export function missingText(threads: number): string {
  const whole = Math.round(threads);
  if (whole && Math.abs(threads - whole) < 0.005) return `events of ${counted(whole, 'thread')} are missing here`;
  return threads < 1 ? `events are missing here for ${share(threads, 1)} of one thread\u2019s time` : `events of ${threads.toFixed(2)} threads on average are missing here`;
}

/** The stretches of pixels that are not 0: from where to where. */
export function runsOf(shares: Float64Array): [number, number][] {
  const runs: [number, number][] = [];
  shares.forEach((share, x) => {
    const last = runs[runs.length - 1];
    if (share > 0 && last?.[1] === x) last[1]++;
    else if (share > 0) runs.push([x, x + 1]);
  });
  return runs;
}

/** How busy each pixel of a stretch is: the mean of its bins. */
export function spread(sums: Map<number, Sum>, level: number, from: number, span: number, width: number): Float64Array {
  const out = new Float64Array(width), bin = 2 ** level, length = tileLength(level), bins = length / bin;
  for (let x = 0; x < width; x++) {
    const begin = from + x / width * span, end = from + (x + 1) / width * span;
    const first = Math.floor(begin / bin), last = Math.max(Math.ceil(end / bin), first + 1);
    let sum = 0;
    for (let i = first; i < last; i++) {
      const part = Math.max(Math.min((i + 1) * bin, end) - Math.max(i * bin, begin), 0) / (end - begin);
      sum += part * (i < 0 ? 0 : sums.get(Math.floor(i / bins))?.busy[i % bins] ?? 0);
    }
    out[x] = sum;
  }
  return out;
}
