// SPDX-License-Identifier: Apache-2.0
// The text of single events: their fields, and for log records level, logger and message.

import { Api, ask } from './api';
import { Trace, clip } from './model';

type Value = string | number | boolean | null | Value[] | { [name: string]: Value };
type Fields = Record<string, Value>;
export interface CatEvent { time_ns: string; event: string; vpid?: number; packet_context?: Fields; common_context?: Fields; payload?: Fields }
const KEPT = 4000, MOST = 400; // marks whose text is kept; characters of one
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

/** Requests the texts of marks that the user looks at, one by one. */
export class Said {
  private known = new Map<string, string>();

  constructor(private trace: Trace, private api: Api) {}

  /** The text of the nth mark of that name at that time. If it is not known yet, `changed` is called when it arrives. */
  get(track: number, name: number, at: bigint, nth: number, changed: () => void): string {
    const key = `${track}/${name}/${at}/${nth}`, found = this.known.get(key);
    if (found !== undefined) return found;
    if (this.known.size >= KEPT) this.known.clear();
    this.known.set(key, '');
    this.load(track, name, at, nth).then((text) => {
      if (text === undefined) this.known.delete(key); // the next use requests it again
      else this.known.set(key, text);
      if (text) changed();
    }).catch(() => { this.known.delete(key); });
    return '';
  }

  private async load(track: number, name: number, at: bigint, nth: number): Promise<string | undefined> {
    const [answer, wanted] = await Promise.all([ask<{ events: CatEvent[] }>('events', { from: at > 0n ? at - 1n : 0n, until: at + 2n, limit: 200 }), this.api.texts.wait(name)]);
    // Times of marks and those that krait cat prints are rounded differently: by a nanosecond at the most.
    const away = (event: CatEvent): number => Math.abs(Number(BigInt(event.time_ns) - this.trace.origin - at)), named = answer.events.filter((event) => event.event === wanted);
    const nearest = Math.min(...named.map(away)), found = named.filter((event) => away(event) === nearest), { number } = this.trace.tracks[track];
    const ofThread = found.filter(({ packet_context: packet, common_context: common }) => (packet?.vtid ?? common?.vtid) === number), own = (ofThread.length ? ofThread : found)[nth];
    return own ? clip(saidText(own), MOST) : undefined;
  }
}
