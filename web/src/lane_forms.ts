// SPDX-License-Identifier: Apache-2.0
// The words of the dialog that makes lanes: what each kind of lane is, and the label, example and hint of each field.

import { Key, Kind, Source } from './declared';

export interface Words { label: string; place: string; hint?: string } // place: an example

export const TITLES: Record<Kind, string> = { interval: 'Intervals', state: 'States', signal: 'Signal' };
export const SOURCE_TITLES: Record<Source, string> = { messages: 'Messages', calls: 'Calls', spans: 'Spans', events: 'Events' };
export const PAIRINGS: [string, string][] = [['', 'the oldest start'], ['nested', 'the newest start (nested)'], ['latest', 'the newest; the others never stop']];
export const NESTINGS: [string, string][] = [['', 'each call'], ['true', 'the outermost alone']];
export const SELDOM: Key[] = ['stopKey', 'by', 'pairing']; // shown on request

const ABOUT: Record<Kind, Partial<Record<Source, string>>> = {
  interval: {
    messages: 'From a message that matches Start to the next that matches Stop.',
    calls: 'Each call of a function is an interval; of a generator, each step from a resume to the next yield.',
    spans: 'Each span is an interval: those of krait.span, imports, garbage collections and system calls.',
    events: 'From an event Start to the next event Stop, also of the kernel.',
  },
  state: {
    messages: 'A group in round brackets is the state, which lasts until the next message that matches.',
    events: 'Each event begins a state, which lasts until the next one.',
  },
  signal: {
    messages: 'A group in round brackets is the number, which holds until the next message that matches.',
    events: 'A field of each event is the number, which holds until the next one.',
  },
};

export function aboutOf(kind: Kind, source: Source): string {
  return ABOUT[kind][source] ?? '';
}

type Row = readonly [of: '' | `${Kind}/${Source}`, key: Key, label: string | null, place?: string | null, hint?: string];

/** Of all forms, and where a form differs (null: it does not). */
const ROWS: readonly Row[] = [
  ['', 'start', 'Start', 'order (?P<key>\\d+) is taken', 'Regular expressions, found anywhere in the message. A group (?P<key>\u2026) in both pairs them.'],
  ['', 'stop', 'Stop', 'order (?P<key>\\d+) is sent'],
  ['', 'message', 'Message', 'oven is (\\w+)', 'A regular expression, found anywhere in the message.'],
  ['', 'call', 'Function', 'shop.Cart.add', 'Its name, with or without its module; type a part of it to see those of this program.'],
  ['', 'span', 'Span', 'read', 'Its name; * stands for any text. Those on the screen are suggested.'],
  ['', 'event', 'Event', 'sched_switch', 'Its name; * stands for any text. Separate several names by commas.'],
  ['', 'where', 'Only if', 'next_tid != 0, next_comm = python*', 'Conditions on its fields, separated by commas. a = 1 | 2 allows both values.'],
  ['', 'stopEvent', 'Stop', 'sched_switch'],
  ['', 'stopWhere', 'Only if'],
  ['', 'state', 'State', '{next_comm}', 'A text; fields of the event stand in braces.'],
  ['', 'value', 'Value', 'nr_sector', 'The field that is the number.'],
  ['', 'key', 'Key', '', 'A group or field, if not the group named key; without one, each thread is on its own.'],
  ['', 'stopKey', 'Stop\u2019s key', '', 'The field with the same value in the stop, if it has another name there.'],
  ['', 'by', 'Rows', '', 'Fields or groups of the start; each of their values gets a row in the table.'],
  ['', 'pairing', 'A stop ends'],
  ['', 'outermost', 'Of a recursion', '', 'A call is outermost if it begins in no other call of the function.'],
  ['interval/spans', 'key', null, null, 'A field of the span; each of its values gets a row in the table.'],
  ['interval/events', 'event', 'Start', 'sched_wakeup'],
  ['interval/events', 'where', null, 'prio < 100'],
  ['interval/events', 'key', null, 'tid', 'A field that a start and its stop have in common, $cpu, $thread, $process or $task; without one, each thread is on its own.'],
  ['interval/events', 'stopKey', null, 'next_tid'],
  ['interval/events', 'by', null, 'comm', 'Fields of the start; each of their values gets a row in the table.'],
  ['state/events', 'key', null, '$cpu', 'What has the state: a field, $cpu, $thread, $process or $task; without one, each thread has states of its own.'],
  ['signal/events', 'key', null, null, 'A field, $cpu, $thread, $process or $task; each of its values gets a row and a curve of its own.'],
];

export function wordsOf(kind: Kind, source: Source, key: Key): Words {
  const [, , label, place, hint] = [`${kind}/${source}`, ''].flatMap((of) => ROWS.filter((row) => row[0] === of && row[1] === key))
    .reduce((own, all) => [own[0], own[1], own[2] ?? all[2], own[3] ?? all[3], own[4] ?? all[4]]);
  return { label: label ?? key, place: place ?? '', hint };
}
