// SPDX-License-Identifier: Apache-2.0
// Several recordings side by side: each is drawn as if it had begun at 0. Requests to the server, and selected calls,
// keep the recording's own times; lanes have a shift.

import { Trace, Track, machineOf } from './model';

export interface Recording { begin: bigint; until: bigint; folder: string }

/** By folder, in the order in which they were opened: the first event of its threads, or of its machine. A folder without events has no begin of its own. */
export function recordingsOf(trace: Trace): (Recording | undefined)[] {
  const found: (Recording | undefined)[] = [];
  const parts = [...trace.machines, ...trace.threads.map(({ process, begin, until }) => ({ recording: trace.processes[process].recording, begin, until }))];
  for (const { recording, begin, until } of parts) {
    const known = found[recording];
    if (!known) found[recording] = { begin, until, folder: trace.folders[recording] ?? '' };
    else {
      known.begin = begin < known.begin ? begin : known.begin;
      known.until = until > known.until ? until : known.until;
    }
  }
  return found;
}

export class Alignment {
  private of: Trace['threads'] | null = null;
  private known: (Recording | undefined)[] = [];

  constructor(private trace: Trace) {}

  get recordings(): (Recording | undefined)[] {
    if (this.of !== this.trace.threads) [this.of, this.known] = [this.trace.threads, recordingsOf(this.trace)];
    return this.known;
  }

  /** Whether there is more than one to draw side by side. */
  get offered(): boolean {
    return this.recordings.filter((each) => each).length > 1;
  }

  recordingOf(track: Track): number | undefined {
    const machine = machineOf(this.trace, track);
    if (machine !== undefined) return this.trace.machines[machine].recording;
    return track.process === null ? undefined : this.trace.processes[track.process].recording;
  }

  /** When a track's recording begins. */
  beginOf(track: Track): bigint {
    const recording = this.recordingOf(track);
    return recording === undefined ? 0n : this.recordings[recording]?.begin ?? 0n;
  }

  /** The longest of them, in nanoseconds. */
  get span(): number {
    return Math.max(...this.recordings.map((each) => (each ? Number(each.until - each.begin) : 0)), 1);
  }
}
