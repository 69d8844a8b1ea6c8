// SPDX-License-Identifier: Apache-2.0
// The words of the dialog that makes lanes: what each kind of lane is, and the label, example and hint of each field.

import { Key, Kind, Source } from './declared';

export interface Words { label: string; place: string; hint?: string } // place: an example

export const TITLES: Record<Kind, string> = { interval: 'Intervals', state: 'States', signal: 'Signal' };
export const SOURCE_TITLES: Record<Source, string> = { messages: 'Messages', calls: 'Calls', spans: 'Spans', events: 'Events' };
export const PAIRINGS: [string, string][] = [['', 'the oldest start'], ['nested', 'the newest start (nested)'], ['latest', 'the newest; the others never stop']];
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

const FORM: Record<Key, Words> = {
  start: { label: 'Start', place: 'order (?P<key>\\d+) is taken', hint: 'Regular expressions, found anywhere in the message. A group (?P<key>\u2026) in both pairs them.' },
  stop: { label: 'Stop', place: 'order (?P<key>\\d+) is sent' },
  message: { label: 'Message', place: 'oven is (\\w+)', hint: 'A regular expression, found anywhere in the message.' },
  call: { label: 'Function', place: 'shop.Cart.add', hint: 'Its name, with or without its module; type a part of it to see those of this program.' },
  span: { label: 'Span', place: 'read', hint: 'Its name; * stands for any text.' },
  event: { label: 'Event', place: 'sched_switch', hint: 'Its name; * stands for any text. Separate several names by commas.' },
  where: { label: 'Only if', place: 'next_tid != 0, next_comm = python*', hint: 'Conditions on its fields, separated by commas. a = 1 | 2 allows both values.' },
  stopEvent: { label: 'Stop', place: 'sched_switch' },
  stopWhere: { label: 'Only if', place: '' },
  state: { label: 'State', place: '{next_comm}', hint: 'A text; fields of the event stand in braces.' },
  value: { label: 'Value', place: 'nr_sector', hint: 'The field that is the number.' },
  key: { label: 'Key', place: '', hint: 'A group or field, if not the group named key; without one, each thread is on its own.' },
  stopKey: { label: 'Stop\u2019s key', place: '', hint: 'The field with the same value in the stop, if it has another name there.' },
  by: { label: 'Rows', place: '', hint: 'Fields or groups of the start; each of their values gets a row in the table.' },
  pairing: { label: 'A stop ends', place: '' },
};

/** Where a field differs from the others of its name. */
const OWN: Partial<Record<`${Kind}/${Source}`, Partial<Record<Key, Partial<Words>>>>> = {
  'interval/spans': { key: { hint: 'A field of the span; each of its values gets a row in the table.' } },
  'interval/events': {
    event: { label: 'Start', place: 'sched_wakeup' },
    where: { place: 'prio < 100' },
    key: { place: 'tid', hint: 'A field that a start and its stop have in common, $cpu or $thread; without one, each thread is on its own.' },
    stopKey: { place: 'next_tid' },
    by: { place: 'comm', hint: 'Fields of the start; each of their values gets a row in the table.' },
  },
  'state/events': { key: { place: '$cpu', hint: 'What has the state: a field, $cpu or $thread; without one, each thread has states of its own.' } },
  'signal/events': { key: { hint: 'A field, $cpu or $thread; each of its values gets a row and a curve of its own.' } },
};

export function wordsOf(kind: Kind, source: Source, key: Key): Words {
  return { ...FORM[key], ...OWN[`${kind}/${source}`]?.[key] };
}
