// SPDX-License-Identifier: Apache-2.0
// The text of single events: their fields, and for log records level, logger and message.

import { Api, ask } from './api';
import { Trace, clip } from './model';

type Value = string | number | boolean | null | Value[] | { [name: string]: Value };
type Fields = Record<string, Value>;
export interface CatEvent { time_ns: string; event: string; vpid?: number; packet_context?: Fields; common_context?: Fields; payload?: Fields }
const KEPT = 4000, MOST = 400; // answers that are kept of either kind; characters of one's text
const LEVELS: [number, string][] = [[50, 'CRITICAL'], [40, 'ERROR'], [30, 'WARNING'], [20, 'INFO'], [10, 'DEBUG']]; // of Python's logging

/** "fd = 3, name = open": enumerations by their labels; integers of 64 bits arrive as texts. */
export function valueText(value: Value): string {
  if (value === null || typeof value !== 'object') return typeof value === 'string' && !/^-?\d+$/.test(value) ? JSON.stringify(value) : String(value);
  if (value instanceof Array) return `[${value.map(valueText).join(', ')}]`;
  if ('label' in value && 'value' in value) return value.label === null ? valueText(value.value) : String(value.label);
  return `{ ${fieldsText(value)} }`;
}

export function fieldsText(fields: Fields | undefined): string {
  return Object.entries(fields ?? {}).map(([name, value]) => `${name} = ${valueText(value)}`).join(', ');
}

/** The names of an event's fields; with dots on the way into one: "extra.order". */
export function fieldNames({ payload, common_context }: Pick<CatEvent, 'payload' | 'common_context'>): string[] {
  const isPlain = (value: Value): boolean => value === null || typeof value !== 'object' || value instanceof Array || 'label' in value;
  const names = (fields: Fields): string[] => Object.entries(fields).flatMap(([name, value]) => (isPlain(value) ? [name] : names(value as Fields).map((inner) => `${name}.${inner}`)));
  return [...new Set([...names(payload ?? {}), ...names(common_context ?? {})])];
}

function levelText(level: Value): string {
  const number = Number(level);
  return Number.isInteger(number) ? LEVELS.find(([least]) => least === number)?.[1] ?? `level ${number}` : String(level);
}

/** "INFO app.db: connected" for a record of Python's logging (krait's log:record, LTTng's lttng_python:event); all fields for other events. */
export function saidText({ payload }: Pick<CatEvent, 'payload'>): string {
  const message = payload?.msg ?? payload?.message, logger = payload?.logger_name ?? payload?.logger, level = payload?.int_loglevel ?? payload?.level;
  if (typeof message !== 'string' || level === undefined) return fieldsText(payload);
  const name = logger === undefined ? '' : typeof logger === 'string' ? logger : valueText(logger);
  return `${levelText(level)}${name ? ` ${name}` : ''}: ${message}`;
}

export interface Told { text: string; at: bigint; event: CatEvent } // at: the time that krait cat prints, from the recording's origin
export interface Mark { track: number; name: number; at: bigint; nth: number } // nth: of those of the same name and time

/** The kept answer for a key. If there is none, `meanwhile`: it is requested, and `changed` is called if it is another. */
function known<T>(kept: Map<string, T>, key: string, meanwhile: T, request: () => Promise<T | undefined>, changed: () => void): T {
  const found = kept.get(key);
  if (found !== undefined) return found;
  if (kept.size >= KEPT) kept.clear();
  kept.set(key, meanwhile);
  request().then((answer) => {
    if (answer === undefined) kept.delete(key); // the next use requests it again
    else kept.set(key, answer);
    if (answer !== undefined && answer !== meanwhile) changed();
  }).catch(() => { kept.delete(key); });
  return meanwhile;
}

/** Requests the events of marks that the user looks at, one by one. */
export class Said {
  private marks = new Map<string, Told | null>(); // null: requested
  private times = new Map<string, bigint>(); // by track and exact time

  constructor(private trace: Trace, private api: Api) {}

  /** The text of a mark. If it is not known yet, `changed` is called when it arrives. */
  text(mark: Mark, changed: () => void): string {
    return this.told(mark, changed)?.text ?? '';
  }

  /** The time of a mark as krait cat prints it; until that is known, the mark's own. */
  time(mark: Mark, changed: () => void): bigint {
    return this.told(mark, changed)?.at ?? mark.at;
  }

  private told(mark: Mark, changed: () => void): Told | null {
    return known(this.marks, `${mark.track}/${mark.name}/${mark.at}/${mark.nth}`, null, () => this.find(mark), changed);
  }

  /** The event of a mark. */
  async find({ track, name, at, nth }: Mark): Promise<Told | undefined> {
    const [events, wanted] = await Promise.all([this.around(at), this.api.texts.wait(name)]);
    const own = this.nearest(events.filter((event) => event.event === wanted), track, at)[nth];
    return own && { text: clip(saidText(own), MOST), at: this.timeOf(own), event: own };
  }

  /** A time in a track as krait cat prints it, that of the event there; where there is none, the time itself. */
  async printed(track: number, at: bigint): Promise<bigint> {
    const [event] = this.nearest(await this.around(at), track, at);
    return event ? this.timeOf(event) : at;
  }

  /** The same for a table: the time itself until the other is known; if they differ, `changed` is called then. */
  when(track: number, at: bigint, changed: () => void): bigint {
    return known(this.times, `${track}/${at}`, at, () => this.printed(track, at), changed);
  }

  /** The page's times are exact. krait cat prints times in babeltrace2's rounding, which may be off by a nanosecond. */
  private async around(at: bigint): Promise<CatEvent[]> {
    const { events } = await ask<{ events: CatEvent[] }>('events', { from: at > 0n ? at - 1n : 0n, until: at + 2n, limit: 200 });
    return events;
  }

  private timeOf(event: CatEvent): bigint {
    return BigInt(event.time_ns) - this.trace.origin;
  }

  private nearest(events: CatEvent[], track: number, at: bigint): CatEvent[] {
    const { number, of } = this.trace.tracks[track], own = events.filter((event) => (of === 'cpu' ? event.packet_context?.cpu_id : event.packet_context?.vtid ?? event.common_context?.vtid ?? event.common_context?.tid) === number);
    const list = own.length ? own : events, away = (event: CatEvent): number => Math.abs(Number(this.timeOf(event) - at)), least = Math.min(...list.map(away));
    return list.filter((event) => away(event) === least);
  }
}
