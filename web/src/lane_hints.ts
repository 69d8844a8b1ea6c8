// SPDX-License-Identifier: Apache-2.0
// What the dialog that makes lanes knows of the recording: what is selected in the page, and names to suggest.

import { ask, readCall } from './api';
import { Kind, Source, Values, messageOf, patternsOf } from './declared';
import { el } from './dom';
import { Call, fullName } from './model';
import { Context } from './panel';
import { CatEvent, fieldNames } from './said';
import { spanAt } from './spans';
import { Range, eventOf } from './store';

const EVENTS_MOST = 2000, FUNCS = 20, MESSAGE_MOST = 200, FIELDS = 12; // events of a range that are looked at; functions; characters of a message for a pattern; fields in a hint
const NOT_PLAIN = /[*?[\],]/; // signs with a meaning in the name of an event
const OF_CALLS = /^(?:python|c|code|process|thread|gil|krait):/; // krait's own events that are no marks: no lane can be made of them

function isUsable(event: string): boolean {
  return !NOT_PLAIN.test(event) && !OF_CALLS.test(event);
}

export interface Prefill { kind: Kind; source: Source; values: Values }

/** Patterns from the first and the last message of a range; undefined if it has fewer than two. */
async function patternsIn({ from, span }: Range): Promise<Values | undefined> {
  const until = from + BigInt(Math.round(span)) + 1n;
  const { events } = await ask<{ events: CatEvent[] }>('events', { from: from > 0n ? from : 0n, until, limit: EVENTS_MOST });
  const said = events.map((event) => messageOf(event.payload)).filter((text): text is string => text !== undefined);
  return said.length > 1 && events.length < EVENTS_MOST ? patternsOf(said[0], said[said.length - 1]) : undefined;
}

/** The function or span that is selected. */
async function callIn({ store, api, trace }: Context): Promise<Values | undefined> {
  const at = store.view.call, track = at && trace.tracks[at.track];
  if (!at || !track || track.of === 'lane') return undefined;
  if (track.kind === 'calls') {
    const call = store.detail ?? readCall(await ask<Call>('call', { track: at.track, depth: at.depth, at: at.at }), at.track), func = await api.funcs.wait(call.func);
    return func && { call: fullName(func) };
  }
  const span = track.kind === 'slices' ? store.detail ?? await spanAt(api.fetchTile, at.track, at.at, at.depth) : null, name = span ? await api.texts.wait(span.func) : undefined;
  return name && !NOT_PLAIN.test(name) ? { span: name } : undefined;
}

/** The event that is chosen in the table of events or of marks, and a pattern for its message. */
async function eventIn({ store }: Context): Promise<Values | undefined> {
  const [at, nth] = store.view.panel === 'events' || store.view.panel === 'marks' ? eventOf(store.view) : [null, 0];
  if (at === null) return undefined;
  const { events } = await ask<{ events: CatEvent[] }>('events', { from: at, until: at + 1n, text: store.view.events || undefined, limit: nth + 1 });
  if (!events[nth] || !isUsable(events[nth].event)) return undefined;
  const said = messageOf(events[nth].payload), pattern = said !== undefined && said.length <= MESSAGE_MOST ? patternsOf(said, said).start : undefined;
  return { event: events[nth].event, ...(pattern ? { start: pattern, message: pattern } : {}) };
}

/** What the dialog begins with: a selected range with two messages, or else a selected call, or else a chosen event. */
export async function prefillOf(context: Context): Promise<Prefill | undefined> {
  const { selected } = context.store.view, none = (): undefined => undefined;
  const [said, call, event] = await Promise.all([selected ? patternsIn(selected).catch(none) : undefined, callIn(context).catch(none), eventIn(context).catch(none)]);
  const values = { ...event, ...call, ...said };
  if (!Object.keys(values).length) return undefined;
  const source = said ? 'messages' : call?.call ? 'calls' : call?.span ? 'spans' : event?.start ? 'messages' : 'events';
  return { kind: 'interval', source, values };
}

function options(names: string[]): HTMLElement[] {
  return names.map((value) => el('option', { value }));
}

/** Lists that the browser shows below a field while the reader types. */
export class Suggestions {
  readonly calls = el('datalist', { id: 'maker-known-calls' });
  readonly spans = el('datalist', { id: 'maker-known-spans' });
  readonly events = el('datalist', { id: 'maker-known-events' });
  readonly fields = el('datalist', { id: 'maker-known-fields' });
  private asked = 0;
  private spansKnown = false;
  private known: Map<string, string[]> | null = null; // the fields of events

  constructor(private context: () => Context) {}

  /** Functions of the program whose names have the text. */
  async findCalls(text: string): Promise<void> {
    const turn = ++this.asked, { api } = this.context();
    if (!text || [...this.calls.children].some((option) => (option as HTMLOptionElement).value === text)) return;
    const { funcs } = await ask<{ funcs: number[] }>('search', { text, limit: FUNCS });
    const names = (await Promise.all(funcs.map((id) => api.funcs.wait(id)))).map((func) => (func ? fullName(func) : ''));
    if (turn === this.asked) this.calls.replaceChildren(...options([...new Set(names)].filter((name) => name)));
  }

  /** The names of spans and system calls on the screen; they are looked for once. */
  async findSpans(): Promise<void> {
    if (this.spansKnown) return;
    this.spansKnown = true;
    const { rows } = await ask<{ rows: [number, number, number][] }>('spans', this.screen), { texts } = this.context().api;
    const names = await Promise.all(rows.map(([name]) => texts.wait(name)));
    this.spans.replaceChildren(...options([...new Set(names)].filter((name): name is string => !!name && !NOT_PLAIN.test(name)).sort()));
  }

  private get screen(): { from: bigint; until: bigint } {
    const { from, span } = this.context().store.view.range;
    return { from: from > 0n ? from : 0n, until: from + BigInt(Math.round(span)) };
  }

  /** The names of events on the screen, and their fields; they are looked for once. */
  async findEvents(): Promise<void> {
    if (this.known) return;
    const known = this.known = new Map<string, string[]>();
    const { events } = await ask<{ events: CatEvent[] }>('events', { ...this.screen, limit: EVENTS_MOST });
    for (const event of events) if (!known.has(event.event)) known.set(event.event, fieldNames(event));
    this.events.replaceChildren(...options([...known.keys()].filter(isUsable).sort()));
  }

  private fieldsOf(events: string[]): string[] {
    return [...new Set(events.flatMap((name) => this.known?.get(name) ?? []))];
  }

  /** The fields of some events in words; empty: they are not known. */
  fieldsText(events: string[]): string {
    const names = this.fieldsOf(events);
    return names.slice(0, FIELDS).join(', ') + (names.length > FIELDS ? ' \u2026' : '');
  }

  suggestFields(events: string[]): void {
    const names = this.fieldsOf(events);
    this.fields.replaceChildren(...options(names.length ? [...names, '$cpu', '$thread', '$process', '$task'] : []));
  }

  /** The recording may have grown, or another part of it is on the screen. */
  forget(): void {
    this.known = null;
    this.spansKnown = false;
    this.calls.replaceChildren();
  }
}
