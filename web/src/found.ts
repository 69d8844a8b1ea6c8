// SPDX-License-Identifier: Apache-2.0
// Results of declared analyses from the server (src/serve/answer_declared.c): the numbers of `krait intervals`.

import { Kind, Source } from './declared';
import { count, counted, duration } from './time';

export interface Row {
  key: string | null; // of a state: its name
  count: number; total: number; min: number; mean: number; median: number; p90: number; p99: number; max: number; deviation: number;
  noKey: number;
  noStop?: number; noStart?: number; // of intervals and states
  noNumber?: number; last?: number; perSecond?: number; // of signals
}
export interface Transition { from: string; to: string; count: number }
export interface First { begin: string; until?: string; value?: number; key: string | null; track: number | null }
export interface Rule { name: string; kind: Kind; rows: Row[]; transitions: Transition[]; first: First[] }

/** "12.5": with as many digits as krait's tables. */
export function number(value: number): string {
  return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(6)));
}

/** The cells of a row, by title; a dash for a missing value. */
export function cellsOf(kind: Kind, row: Row): [string, string][] {
  const text = kind === 'signal' ? number : duration, of = (value: number | undefined | null, least = 1): string => (row.count >= least && value !== undefined && value !== null ? text(value) : '-');
  const cells: [string, string][] = [['count', count(row.count)], ['total', of(row.total)], ['mean', of(row.mean)], ['min', of(row.min)], ['median', of(row.median)], ['p90', of(row.p90)],
    ['p99', of(row.p99)], ['max', of(row.max)], ['std dev', of(row.deviation, 2)]];
  if (kind === 'signal') cells.push(['last', of(row.last)], ['per second', of(row.perSecond, 2)]);
  return cells;
}

/** What did not match, in words; empty if everything did. */
export function leftOver(rows: Row[]): string {
  const sum = (of: (row: Row) => number | undefined): number => rows.reduce((n, row) => n + (of(row) ?? 0), 0);
  const told: [number, string][] = [[sum((row) => row.noStop), 'without a stop'], [sum((row) => row.noStart), 'without a start'], [sum((row) => row.noKey), 'without the key'], [sum((row) => row.noNumber), 'without a number']];
  return told.filter(([n]) => n).map(([n, words]) => `${count(n)} ${words}`).join(', ');
}

const NOUNS: Record<Kind, string> = { interval: 'interval', state: 'stay', signal: 'value' };

/** "39 intervals in 78 messages; 2 without a stop". */
export function summaryOf(rule: Rule, messages: number, source: Source): string {
  const found = rule.rows.reduce((n, row) => n + row.count, 0), rest = leftOver(rule.rows);
  const among = source === 'messages' ? ` in ${counted(messages, 'message')}` : '';
  return `${counted(found, NOUNS[rule.kind])}${among}${rest ? `; ${rest}` : ''}`;
}
