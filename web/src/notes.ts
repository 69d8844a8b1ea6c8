// SPDX-License-Identifier: Apache-2.0
// Notes at moments and ranges of time, which the server keeps in a file beside the recording (.krait-notes.json):
//   {"version": 1, "notes": [{"time": "1732434343000000000", "length": 250000, "text": "the slow one"}]}
// `time` is nanoseconds since the epoch, so that a note stays where it is when other folders are opened beside.

import { ApiError, ask } from './api';
import { Range } from './store';

export interface Note { range: Range; text: string } // span 0: a moment

const VERSION = 1;

interface Kept { time: string; length: number; text: string }

export function encodeNotes(notes: Note[], origin: bigint): string {
  const kept = notes.map(({ range, text }): Kept => ({ time: String(origin + range.from), length: Math.round(range.span), text }));
  return JSON.stringify({ version: VERSION, notes: kept });
}

function readKept(value: unknown, origin: bigint): Note | null {
  const { time, length, text } = (value ?? {}) as Partial<Kept>;
  if (typeof time !== 'string' || !/^\d{1,19}$/.test(time) || typeof length !== 'number' || !(length >= 0) || !isFinite(length) || typeof text !== 'string') return null;
  return { range: { from: BigInt(time) - origin, span: length }, text };
}

/** Notes that cannot be read are left out; null if a newer krait wrote the file. */
export function decodeNotes(value: unknown, origin: bigint): Note[] | null {
  const { version, notes } = (value ?? {}) as { version?: unknown; notes?: unknown };
  if (version === undefined) return [];
  if (version !== VERSION || !Array.isArray(notes)) return null;
  return notes.map((each) => readKept(each, origin)).filter((note): note is Note => note !== null);
}

export class Notes {
  list: Note[] = [];
  problem = ''; // why they are not kept
  private saving: Promise<void> = Promise.resolve();
  private unread = false; // not to be overwritten

  constructor(private origin: bigint, private changed: () => void) {}

  async load(): Promise<void> {
    const read = decodeNotes(await ask<unknown>('notes'), this.origin);
    this.unread = read === null;
    this.list = read ?? [];
    if (this.unread) this.problem = 'the notes beside this recording were written by a newer krait: notes made here are not kept';
    this.changed();
  }

  add(range: Range): Note {
    const note = { range, text: '' };
    this.list.push(note);
    this.list.sort((a, b) => (a.range.from < b.range.from ? -1 : a.range.from > b.range.from ? 1 : 0));
    this.save();
    return note;
  }

  remove(note: Note): void {
    this.list = this.list.filter((each) => each !== note);
    this.save();
  }

  change(note: Note, text: string): void {
    if (note.text === text) return;
    note.text = text;
    this.save();
  }

  /** Saves one after the other, so that the last change wins. */
  private save(): void {
    this.changed();
    if (this.unread) return;
    const body = encodeNotes(this.list, this.origin);
    this.saving = this.saving.then(() => this.put(body));
  }

  private async put(body: string): Promise<void> {
    let problem = '';
    try {
      const response = await fetch('api/notes', { method: 'PUT', body });
      if (!response.ok) throw new ApiError((await response.json()).error ?? response.statusText);
    } catch (error) {
      problem = `not kept: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (problem === this.problem) return;
    this.problem = problem;
    this.changed();
  }

  /** Waits until all changes were saved, or failed. */
  async kept(): Promise<void> {
    await this.saving;
  }
}
