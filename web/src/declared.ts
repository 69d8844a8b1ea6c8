// SPDX-License-Identifier: Apache-2.0
// Lanes that the reader declares: sections of a TOML file beside the recording (docs/analyses.md), which the server
// keeps. The dialog can change sections that have only the keys below; it does not touch the rest of the file.

import { ConditionError, conditionsText, conditionsToml } from './conditions';
import { Table, Value, keyText, quoted, readPairs, unquoted } from './toml';

export const KINDS = ['interval', 'state', 'signal'] as const;
export type Kind = typeof KINDS[number];
export const SOURCES = ['messages', 'calls', 'spans', 'events'] as const; // what a lane is of
export type Source = typeof SOURCES[number];
export const KEYS = ['start', 'stop', 'message', 'call', 'span', 'event', 'where', 'stopEvent', 'stopWhere', 'state', 'value', 'key', 'stopKey', 'by', 'pairing', 'outermost'] as const; // event, where: of an interval's start
export type Key = typeof KEYS[number];
export type Values = Partial<Record<Key, string>>; // of lists: with commas between
export interface Definition { kind: Kind; source: Source; name: string; values: Values }

/** What each kind may be of, with the keys that it has then, and those that it needs. */
interface Form { keys: Key[]; needed: Key[] }
export const FORMS: Record<Kind, Partial<Record<Source, Form>>> = {
  interval: {
    messages: { keys: ['start', 'stop', 'key', 'by', 'pairing'], needed: ['start', 'stop'] },
    calls: { keys: ['call', 'outermost'], needed: ['call'] },
    spans: { keys: ['span', 'key'], needed: ['span'] },
    events: { keys: ['event', 'where', 'stopEvent', 'stopWhere', 'key', 'stopKey', 'by', 'pairing'], needed: ['event', 'stopEvent'] },
  },
  state: { messages: { keys: ['message', 'key'], needed: ['message'] }, events: { keys: ['event', 'where', 'state', 'key'], needed: ['event', 'state'] } },
  signal: { messages: { keys: ['message', 'key'], needed: ['message'] }, events: { keys: ['event', 'where', 'value', 'key'], needed: ['event', 'value'] } },
};

/** The form of a kind and a source that go together. */
export function formOf(kind: Kind, source: Source): Form {
  return FORMS[kind][source] ?? FORMS[kind].messages as Form;
}

/** A part of the file: from its header to the next, and the lines of comment before it. */
export interface Section { lead: string; text: string; kind: string; name: string; made: Definition | null } // made: null: written by hand
export interface File { head: string; sections: Section[] }

const HEADER = /^\s*(\[\[?)\s*(\w+)\s*\.\s*("(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+)\s*\]\]?\s*(?:#.*)?$/;

// -- the text of a definition --

/** "tid, fd": what is between the commas. */
function partsOf(text: string | undefined): string[] {
  return (text ?? '').split(',').map((part) => part.trim()).filter((part) => part);
}

function listToml(text: string): string {
  const parts = partsOf(text);
  return parts.length === 1 ? quoted(parts[0]) : `[${parts.map(quoted).join(', ')}]`;
}

const AS_LIST: Key[] = ['event', 'stopEvent', 'key', 'stopKey', 'by'];

/** What the reader typed, as a file would have it. */
export function tidied(key: Key, text: string): string {
  return AS_LIST.includes(key) ? partsOf(text).join(', ') : /here$/.test(key) ? text.trim() : text;
}

function valueToml(key: Key, text: string): string {
  return key === 'where' ? conditionsToml(text) : key === 'outermost' ? text : AS_LIST.includes(key) ? listToml(text) : quoted(text);
}

/** An event as a value: { event = 'sched_switch', where = { next_tid = '!= 0' }, key = 'next_tid' }. */
function eventToml(event: string, where: string | undefined, key?: string): string {
  const pairs: [Key, string | undefined][] = [['event', event], ['where', where], ['key', key]];
  return `{ ${pairs.filter(([, text]) => text).map(([name, text]) => `${name} = ${valueToml(name, text as string)}`).join(', ')} }`;
}

/** The section of a definition; a ConditionError says what is wrong with its conditions. */
export function definitionText({ kind, source, name, values }: Definition): string {
  const { event, where, stopEvent, stopWhere, stopKey } = values, isPair = kind === 'interval' && source === 'events';
  const pair = isPair ? [`start = ${eventToml(event ?? '', where)}\n`, `stop = ${eventToml(stopEvent ?? '', stopWhere, stopKey)}\n`] : [];
  const keys = formOf(kind, source).keys.filter((key) => values[key] && !(isPair && /[eE]vent|[wW]here|stopKey/.test(key)));
  const isText = (key: Key): boolean => key === 'key' && source === 'spans'; // one field
  return `[${kind}.${keyText(name)}]\n${[...pair, ...keys.map((key) => `${key} = ${isText(key) ? quoted(values[key] as string) : valueToml(key, values[key] as string)}\n`)].join('')}`;
}

// -- the definition of a text --

/** undefined: it is none. */
function textOf(value: Value | undefined): string | undefined {
  return value && !(value instanceof Array) && !(value instanceof Map) && value.quoted && value.text ? value.text : undefined;
}

/** Texts with commas between; undefined: it is neither a text nor an array of texts, or one of them cannot stand in a list. */
function listOf(value: Value | undefined): string | undefined {
  const texts = value instanceof Array ? value.map(textOf) : [textOf(value)];
  return texts.length && texts.every((text) => text !== undefined && !text.includes(',') && text.trim() === text) ? texts.join(', ') : undefined;
}

/** true alone: false is the default, which the form leaves out. */
function truthOf(value: Value): string | undefined {
  return value instanceof Array || value instanceof Map || value.quoted || value.text !== '1' ? undefined : 'true';
}

const READ: Partial<Record<Key, (value: Value) => string | null | undefined>> = { event: listOf, key: listOf, by: listOf, where: conditionsText, outermost: truthOf };

/** The values of keys, if the table has no others and the form can show them all. */
function valuesOf(table: Table, keys: Key[]): Values | null {
  const values: Values = {};
  for (const [key, value] of table) {
    const text = keys.includes(key as Key) ? (READ[key as Key] ?? textOf)(value) : undefined;
    if (text === undefined || text === null) return null;
    values[key as Key] = text;
  }
  return values;
}

/** An interval from event to event. The keys of both events stand in place of that of the interval. */
function pairOf(table: Table, start: Table, stop: Table): Values | null {
  const rest = valuesOf(new Map([...table].filter(([key]) => key !== 'start' && key !== 'stop')), ['key', 'by', 'pairing']);
  const from = valuesOf(start, ['event', 'where', 'key']), to = valuesOf(stop, ['event', 'where', 'key']);
  if (!rest || !from || !to) return null;
  const key = from.key ?? rest.key, stopKey = to.key ?? rest.key;
  if (!key !== !stopKey) return null;
  const values: Values = { ...rest, event: from.event, where: from.where, stopEvent: to.event, stopWhere: to.where, key, stopKey: stopKey === key ? undefined : stopKey };
  return Object.fromEntries(Object.entries(values).filter(([, text]) => text !== undefined));
}

function intervalOf(table: Table): [Source, Values | null] {
  const start = table.get('start'), stop = table.get('stop');
  if (start instanceof Map && stop instanceof Map) return ['events', pairOf(table, start, stop)];
  const source = table.has('call') ? 'calls' : table.has('span') ? 'spans' : 'messages';
  return [source, valuesOf(table, formOf('interval', source).keys)];
}

/** The part that the dialog can change; null: the section has more than the dialog knows. */
function definitionOf(kind: string, name: string, lines: string): Definition | null {
  const known = KINDS.find((each) => each === kind), table = known && readPairs(lines);
  if (!table) return null;
  const isOfEvents = table.has('event'), [source, values]: [Source, Values | null] = known === 'interval' ? intervalOf(table)
    : [isOfEvents ? 'events' : 'messages', valuesOf(table, formOf(known, isOfEvents ? 'events' : 'messages').keys)];
  return values && formOf(known, source).needed.every((key) => values[key]) ? { kind: known, source, name, values } : null;
}

// -- the file --

/** Whether a multi-line text is open after this line. */
function staysOpen(line: string, open: string): string {
  for (const mark of line.match(/'''|"""/g) ?? []) open = open === '' ? mark : open === mark ? '' : open;
  return open;
}

/** The number of blank lines and comments at the end: they belong to the next section. */
function trailing(lines: string[]): number {
  let n = 0;
  while (n < lines.length && /^\s*(#.*)?$/.test(lines[lines.length - 1 - n].trimEnd())) n++;
  return n;
}

function sectionOf(lead: string[], lines: string[]): Section {
  const [, brackets, kind, rawName] = HEADER.exec(lines[0].trimEnd()) ?? [], name = rawName === undefined ? undefined : unquoted(rawName);
  const made = brackets === '[' && name !== undefined ? definitionOf(kind, name, lines.slice(1).join('')) : null;
  return { lead: lead.join(''), text: lines.join(''), kind: kind ?? '', name: name ?? lines[0].trim(), made };
}

const BELOW = /^\s*\[\[?\s*(\w+)\s*\.\s*("(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+)\s*\./;

/** Whether a header is of a table of the section, as [interval.a.start] is of [interval.a]. */
function isBelow(line: string, header: string | undefined): boolean {
  const [, kind, name] = BELOW.exec(line) ?? [], [, , ownKind, ownName] = HEADER.exec(header?.trimEnd() ?? '') ?? [];
  return name !== undefined && ownName !== undefined && kind === ownKind && unquoted(name) === unquoted(ownName);
}

export function readFile(text: string): File {
  const parts: string[][] = [[]];
  let open = '';
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    if (!open && /^\s*\[/.test(line) && !isBelow(line, parts[parts.length - 1][0]) && (HEADER.test(line.trimEnd()) || /^\s*\[+[\w."' -]+\]+\s*(#.*)?$/.test(line.trimEnd()))) parts.push([]);
    parts[parts.length - 1].push(line);
    open = staysOpen(line, open);
  }
  const leads = parts.map((lines) => lines.splice(lines.length - trailing(lines)));
  const sections = parts.slice(1).map((lines, i) => sectionOf(leads[i], lines)), last = leads[leads.length - 1].join('');
  if (!sections.length) return { head: parts[0].join('') + last, sections };
  return { head: parts[0].join(''), sections: last ? [...sections, { lead: last, text: '', kind: '', name: '', made: null }] : sections };
}

/** A file without sections is removed. */
export function fileText({ head, sections }: File): string {
  let text = head;
  for (const section of sections) {
    if (text && section.text && !text.endsWith('\n')) text += '\n';
    if (text && section.text && !section.lead && !text.endsWith('\n\n')) text += '\n';
    text += section.lead + section.text;
  }
  return text.trim() ? text : '';
}

/** Replaces a section, or adds one at the end. If the file has lane sections, adds one for this too. */
export function withDefinition(file: File, made: Definition, before: Section | null): File {
  const section: Section = { lead: before?.lead ?? '', text: definitionText(made), kind: made.kind, name: made.name, made };
  const others = before && before.name !== made.name ? withoutLane(file.sections, before.name) : file.sections;
  const sections = before && others.includes(before) ? others.map((each) => (each === before ? section : each)) : [...others, section];
  const hasLanes = file.sections.some((each) => each.kind === 'lane'), text = laneText(made.name);
  const isShown = sections.some((each) => each.kind === 'lane' && (each.text === text || each.text.includes(quoted(made.name)) || each.text.includes(JSON.stringify(made.name))));
  return { ...file, sections: hasLanes && !isShown ? [...sections, { lead: '', text, kind: 'lane', name: made.name, made: null }] : sections };
}

export function without(file: File, section: Section): File {
  return { ...file, sections: withoutLane(file.sections.filter((each) => each !== section), section.name) };
}

function laneText(name: string): string {
  return `[lane.${quoted(name)}]\nshow = ${quoted(name)}\n`;
}

function withoutLane(sections: Section[], name: string): Section[] {
  return sections.filter((each) => each.text !== laneText(name));
}

/** A name that no other section has. */
export function freeName(file: File, wanted: string): string {
  const taken = new Set(file.sections.map((section) => section.name));
  for (let n = 1; ; n++) {
    const name = n === 1 ? wanted : `${wanted}-${n}`;
    if (!taken.has(name)) return name;
  }
}

// -- what is wrong --

export interface Complaint { name?: string; key: Key | null; text: string } // name: of the section that it is about

const OF_KEY = new RegExp(`^definition:\\d+: (?:interval|state|signal)\\.(.*?)\\.(${KEYS.join('|')}): (.*)$`, 's');

/** The server's error message, and the key that it is about: "definition:2: interval.x.start: ...". */
export function complaintOf(said: string): Complaint {
  const [, name, key, why] = OF_KEY.exec(said) ?? [];
  if (key) return { name, key: key as Key, text: why.replace(/^'.*' is no regular expression: /s, 'no regular expression: ') };
  const [, func] = /^(no function '.*' in the trace(?:; did you mean '.*'\?)?)(?:;|$)/s.exec(said) ?? [];
  if (func) return { key: 'call', text: func };
  const [, other, text] = /^definition:\d+: (?:interval|state|signal)\.(.*?): (.*)$/s.exec(said) ?? [];
  if (other === undefined) return { key: null, text: said.replace(/^definition:\d+: /, '') };
  return { name: other, key: KEYS.find((each) => each === other) ?? null, text }; // the server leaves out a key that is called as its section
}

const WORDS: Partial<Record<Key, string>> = { call: 'A function is needed.', span: 'A name is needed.', event: 'An event is needed.', stopEvent: 'An event is needed.', state: 'A state is needed.', value: 'A field is needed.' };

/** What a definition lacks, before the server is asked. */
export function missingIn({ kind, source, values }: Definition): Complaint | null {
  const key = formOf(kind, source).needed.find((each) => !values[each]);
  return key ? { key, text: WORDS[key] ?? 'A pattern is needed.' } : null;
}

/** What is wrong with conditions and keys: the server does not say which of two events it means. */
export function wrongIn({ kind, source, values }: Definition): Complaint | null {
  const { keys } = formOf(kind, source);
  for (const key of ['where', 'stopWhere'] as const) {
    const text = keys.includes(key) ? values[key] : undefined;
    try {
      if (text) conditionsToml(text);
    } catch (error) {
      if (error instanceof ConditionError) return { key, text: error.message };
      throw error;
    }
  }
  return keys.includes('stopKey') && values.stopKey && !values.key ? { key: 'key', text: 'The start needs a key, if the stop has one.' } : null;
}

/* The first of these fields that an event has is its message: src/analysis/intervals.h. */
const MESSAGES = ['message', 'msg', 'text', 'buf'];

/** undefined: the message is the event's name with all fields, which is not used for patterns. */
export function messageOf(payload: Record<string, unknown> | undefined): string | undefined {
  const found = Object.entries(payload ?? {}).find(([name, value]) => MESSAGES.includes(name) && typeof value === 'string');
  return found?.[1] as string | undefined;
}

/** Patterns for two messages: other numbers match too, and the first number that both have pairs them. */
export function patternsOf(start: string, stop: string): { start: string; stop: string } {
  const numbers = (text: string): string[] => text.match(/\d+/g) ?? [], shared = start === stop ? undefined : numbers(start).find((n) => numbers(stop).includes(n));
  const pattern = (text: string): string => {
    let keyed = false;
    return text.split(/(\d+)/).map((part, i) => {
      if (i % 2 === 0) return part.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');
      if (part !== shared || keyed) return '\\d+';
      keyed = true;
      return '(?P<key>\\d+)';
    }).join('');
  };
  return { start: pattern(start), stop: pattern(stop) };
}
