// SPDX-License-Identifier: Apache-2.0
// What differs between two kernel traces, or two ranges of one: how long threads were in each state, who had the CPUs, system calls.

import { Api, ask } from '../api';
import { Trace, hasStates, stateWords } from '../model';
import { Base, Context, sideParams } from '../panel';
import { Column, Table } from '../table';
import { count, duration } from '../time';

export interface Sum { times: number; ns: number }
export interface Change { what: string; name: string; now: Sum; before: Sum }
export interface Entry { what: string; name: string; sum: Sum }

const NONE: Sum = { times: 0, ns: 0 };

function added(entries: Entry[]): Map<string, Entry> {
  const found = new Map<string, Entry>();
  for (const { what, name, sum } of entries) {
    const key = `${what}\n${name}`, known = found.get(key)?.sum ?? NONE;
    found.set(key, { what, name, sum: { times: known.times + sum.times, ns: known.ns + sum.ns } });
  }
  return found;
}

/** Identified by kind and name, which mean the same in all traces; ids may not. */
export function changes(now: Entry[], before: Entry[]): Change[] {
  const [is, was] = [added(now), added(before)];
  return [...new Set([...is.keys(), ...was.keys()])].map((key) => {
    const { what, name } = (is.get(key) ?? was.get(key)) as Entry;
    return { what, name, now: is.get(key)?.sum ?? NONE, before: was.get(key)?.sum ?? NONE };
  });
}

/** Whether a trace has entries of the kind. */
export function hasEntries(trace: Trace): boolean {
  return hasStates(trace) || trace.tracks.some((track) => track.name === 'system calls');
}

const [TRACK, STATE, STATE_TIMES, STATE_NS] = [0, 1, 2, 3], [CALL, CALL_TIMES, , CALL_NS] = [0, 1, 2, 3];

async function textOf(api: Api, id: number): Promise<string> {
  return (await api.texts.wait(id)) ?? '';
}

async function entriesOf(context: Context, side: Base, signal: AbortSignal): Promise<Entry[]> {
  const params = sideParams(context, side), { api, trace } = context, entries: Entry[] = [];
  const [states, calls] = await Promise.all(['states', 'syscalls'].map((name) => ask<{ rows: number[][] }>(name, params, signal)));
  for (const row of states.rows) {
    const name = await textOf(api, row[STATE]), isCpu = trace.tracks[row[TRACK]]?.of === 'cpu';
    entries.push({ what: isCpu ? 'on the CPUs' : 'threads', name: isCpu ? name : stateWords(name), sum: { times: row[STATE_TIMES], ns: row[STATE_NS] } });
  }
  for (const row of calls.rows) entries.push({ what: 'system call', name: await textOf(api, row[CALL]), sum: { times: row[CALL_TIMES], ns: row[CALL_NS] } });
  return entries;
}

export async function kernelChanges(context: Context, sides: { now: Base; before: Base }, signal: AbortSignal): Promise<Change[]> {
  const [now, before] = await Promise.all([sides.now, sides.before].map((side) => entriesOf(context, side, signal)));
  return changes(now, before);
}

let most = 1;

export function makeChanges(context: Context, signed: (value: number, text: (size: number) => string) => string): Table<Change> {
  const ns = (title: string, of: (row: Change) => number): Column<Change> => ({ title, width: '86px', text: (row) => duration(of(row)), sort: of });
  const n = (title: string, of: (row: Change) => number): Column<Change> => ({ title, width: '82px', text: (row) => count(of(row)), sort: of });
  const mean = ({ ns: time, times }: Sum): number => (times ? time / times : 0), change = (row: Change): number => row.now.ns - row.before.ns;
  return new Table<Change>(context.store, 'changes', [
    { title: 'name', width: 'minmax(180px, 1fr)', left: true, text: (row) => row.name, sort: (row) => row.name },
    { title: 'of', width: '110px', left: true, text: (row) => row.what, sort: (row) => row.what },
    { title: 'time', width: '104px', text: (row) => signed(change(row), duration), sort: (row) => Math.abs(change(row)), bar: (row) => Math.abs(change(row)) / most },
    ns('time now', (row) => row.now.ns), ns('before', (row) => row.before.ns), n('times now', (row) => row.now.times), n('before', (row) => row.before.times),
    ns('mean now', (row) => mean(row.now)), ns('before', (row) => mean(row.before)),
  ], 2, () => undefined, 'States and system calls of two ranges, and how they differ');
}

export function setChanges(table: Table<Change>, rows: Change[]): void {
  most = Math.max(...rows.map((row) => Math.abs(row.now.ns - row.before.ns)), 1);
  table.set(rows);
}
