// SPDX-License-Identifier: Apache-2.0
// Answers that take long: how far each is, and a way to end it. An answer ends when its connection closes.

import { ask } from './api';
import { button, el } from './dom';
import { duration } from './time';

const PATIENCE = 500, POLL = 300; // ms: before an answer is told of; between two looks at it

export interface Running { name: string; share: number; took: number }

const WORDS: Record<string, string> = {
  functions: 'function table', flame: 'flame graph', call: 'details of the call', calls: 'calls of the function', states: 'states', syscalls: 'system calls',
  marks: 'marks', events: 'events', find: 'search of events', cut: 'part of the trace', path: 'critical path', wakeups: 'wakeups', gil: 'waits for the GIL', counters: 'counters', intervals: 'declared intervals',
};

/** "function table 43%, 2.1 s". */
export function jobText({ name, share, took }: Running): string {
  const words = WORDS[name] ?? name;
  return share > 0 ? `${words} ${Math.floor(share * 100)}%, ${duration(took)}` : `${words} ${duration(took)}`;
}

/** What is shown while something is awaited. */
export class Jobs {
  readonly element = el('div', { class: 'jobs', role: 'status', hidden: '' });
  private text = el('span');
  private bar = el('progress', { max: '1', 'aria-label': 'How far the answer is' });
  private timer = 0;
  private token = 0;
  private told: { share: number; words: string } | null = null; // by who asks

  /** Until `done` is called: `cancel` is what the reader may do meanwhile. */
  begin(cancel: () => void): () => void {
    this.end();
    const token = this.token;
    this.element.replaceChildren(this.bar, this.text, button('Cancel', 'Stop it (Escape)', cancel));
    this.timer = window.setTimeout(() => { void this.look(token); }, PATIENCE);
    return () => { if (this.token === token) this.end(); };
  }

  /** In its place: that it was cancelled, and how to begin again. */
  cancelled(again: () => void): void {
    const { told } = this;
    this.end();
    this.element.replaceChildren(el('span', {}, told ? `cancelled: what is below was found by then (${told.words})` : 'cancelled: what is below is as it was before'), button('Ask again', 'Ask for it again', again));
    this.element.hidden = false;
  }

  /** Whether there is something to cancel. */
  get running(): boolean {
    return !this.element.hidden && this.bar.isConnected;
  }

  /** How far all of the answers together are; `words`: what is said of it. */
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
    this.token++; // a look that is under way is not shown
    clearTimeout(this.timer);
    this.element.hidden = true;
  }

  private async look(token: number): Promise<void> {
    let running: Running[] = [];
    try {
      running = await ask<Running[]>('progress');
    } catch { /* the server ends: what is awaited says so */ }
    if (this.token !== token) return;
    const slowest = running.filter((job) => job.name !== 'tile').sort((a, b) => b.took - a.took);
    this.element.hidden = false;
    if (this.told) this.show(this.told.share, this.told.words);
    else this.show(slowest[0]?.share ?? 0, slowest.map(jobText).join('; ') || 'waiting for the answer');
    this.timer = window.setTimeout(() => { void this.look(token); }, POLL);
  }
}
