// SPDX-License-Identifier: Apache-2.0
// Progress of slow requests, and a button to cancel them. The server stops an answer when its connection closes.

import { ask } from './api';
import { button, el } from './dom';
import { duration } from './time';

const PATIENCE = 500, POLL = 300; // ms: before progress is shown; between two progress requests

export interface Running { name: string; share: number; took: number }

const WORDS: Record<string, string> = {
  functions: 'function table', flame: 'flame graph', call: 'details of the call', calls: 'calls of the function', states: 'states', syscalls: 'system calls',
  marks: 'marks', events: 'events', find: 'search of events', cut: 'part of the trace', path: 'critical path', wakeups: 'wakeups', gil: 'waits for the GIL', counters: 'counters', intervals: 'declared intervals',
};

/** The text for a running request, such as "function table 43%, 2.1 s". */
export function jobText({ name, share, took }: Running): string {
  const words = WORDS[name] ?? name;
  return share > 0 ? `${words} ${Math.floor(share * 100)}%, ${duration(took)}` : `${words} ${duration(took)}`;
}

/** The progress bar of the visible panel. */
export class Jobs {
  readonly element = el('div', { class: 'jobs', role: 'status', hidden: '' });
  private text = el('span');
  private bar = el('progress', { max: '1', 'aria-label': 'Progress' });
  private timer = 0;
  private token = 0;
  private told: { share: number; words: string } | null = null; // reported by the panel itself

  /** Shows progress until the returned function is called. The button calls `cancel`. */
  begin(cancel: () => void): () => void {
    this.end();
    const token = this.token;
    this.element.replaceChildren(this.bar, this.text, button('Cancel', 'Cancel the request (Escape)', cancel));
    this.timer = window.setTimeout(() => { void this.look(token); }, PATIENCE);
    return () => { if (this.token === token) this.end(); };
  }

  /** Shows that the request was cancelled, with a button that calls `again`. */
  cancelled(again: () => void): void {
    const { told } = this;
    this.end();
    this.element.replaceChildren(el('span', {}, told ? `cancelled; the results so far are below (${told.words})` : 'cancelled; the previous results are below'), button('Try again', 'Send the request again', again));
    this.element.hidden = false;
  }

  /** Whether a request can be cancelled. */
  get running(): boolean {
    return !this.element.hidden && this.bar.isConnected;
  }

  /** Sets the progress (0 to 1) over all requests of the panel, and its text. */
  tell(share: number, words: string): void {
    this.told = { share, words };
    if (this.running) this.show(share, words);
  }

  private show(share: number, words: string): void {
    this.text.textContent = words;
    if (share > 0) this.bar.value = Math.min(share, 1);
    else this.bar.removeAttribute('value');
  }

  private end(): void {
    this.told = null;
    this.token++; // ignore a progress request that is still running
    clearTimeout(this.timer);
    this.element.hidden = true;
  }

  private async look(token: number): Promise<void> {
    let running: Running[] = [];
    try {
      running = await ask<Running[]>('progress');
    } catch { /* the server has ended: the awaited request reports it */ }
    if (this.token !== token) return;
    const slowest = running.filter((job) => !['tile', 'tiles'].includes(job.name)).sort((a, b) => b.took - a.took);
    this.element.hidden = false;
    if (this.told) this.show(this.told.share, this.told.words);
    else this.show(slowest[0]?.share ?? 0, slowest.map(jobText).join('; ') || 'waiting for the server');
    this.timer = window.setTimeout(() => { void this.look(token); }, POLL);
  }
}
