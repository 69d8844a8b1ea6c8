// SPDX-License-Identifier: Apache-2.0
// Lanes that the reader declares: sections of a TOML file beside the recording (docs/analyses.md), which the server
// keeps. The dialog can change sections that have only the keys below; it does not touch the rest of the file.

export const KINDS = ['interval', 'state', 'signal'] as const;
export type Kind = typeof KINDS[number];
export const KEYS = ['start', 'stop', 'message', 'key', 'pairing'] as const; // in the order of the file
export type Key = typeof KEYS[number];
export type Values = Partial<Record<Key, string>>;
export interface Definition { kind: Kind; name: string; values: Values }

/** The keys of each kind, and those that it needs. */
export const KEYS_OF: Record<Kind, Key[]> = { interval: ['start', 'stop', 'key', 'pairing'], state: ['message', 'key'], signal: ['message', 'key'] };
export const NEEDED: Record<Kind, Key[]> = { interval: ['start', 'stop'], state: ['message'], signal: ['message'] };

/** A part of the file: from its header to the next, and the lines of comment before it. */
export interface Section { lead: string; text: string; kind: string; name: string; made: Definition | null } // made: null: written by hand
export interface File { head: string; sections: Section[] }

const HEADER = /^\s*(\[\[?)\s*(\w+)\s*\.\s*("(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+)\s*\]\]?\s*(?:#.*)?$/;
const VALUE = /^\s*([\w-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*')\s*$/;

/** A text of TOML: if possible between single quotes, where nothing is escaped. */
export function quoted(text: string): string {
  if (!/['\x00-\x1f\x7f]/.test(text)) return `'${text}'`;
  const escaped = text.replace(/[\\"]/g, '\\$&').replace(/[\x00-\x1f\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return `"${escaped}"`;
}

/** undefined: TOML has escapes that JSON does not know. */
function unquoted(text: string): string | undefined {
  if (text[0] === "'") return text.slice(1, -1);
  if (text[0] !== '"') return text;
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}

export function definitionText({ kind, name, values }: Definition): string {
  const lines = KEYS_OF[kind].filter((key) => values[key]).map((key) => `${key} = ${quoted(values[key] as string)}\n`);
  return `[${kind}.${/^[\w-]+$/.test(name) ? name : quoted(name)}]\n${lines.join('')}`;
}

/** The part that the dialog can change; null: the section has keys that the dialog does not know. */
function definitionOf(kind: string, name: string, lines: string[]): Definition | null {
  const known = KINDS.find((each) => each === kind), values: Values = {};
  if (!known) return null;
  for (const line of lines) {
    if (!line.trim()) continue;
    const [, key, raw] = VALUE.exec(line) ?? [], value = raw === undefined ? undefined : unquoted(raw);
    if (value === undefined || !KEYS_OF[known].includes(key as Key)) return null;
    values[key as Key] = value;
  }
  return { kind: known, name, values };
}

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
  const made = brackets === '[' && name !== undefined ? definitionOf(kind, name, lines.slice(1)) : null;
  return { lead: lead.join(''), text: lines.join(''), kind: kind ?? '', name: name ?? lines[0].trim(), made };
}

export function readFile(text: string): File {
  const parts: string[][] = [[]];
  let open = '';
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    if (!open && /^\s*\[/.test(line) && (HEADER.test(line.trimEnd()) || /^\s*\[+[\w."' -]+\]+\s*(#.*)?$/.test(line.trimEnd()))) parts.push([]);
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
export function freeName(file: File, kind: Kind): string {
  const taken = new Set(file.sections.map((section) => section.name));
  for (let n = 1; ; n++) {
    const name = n === 1 ? kind : `${kind}-${n}`;
    if (!taken.has(name)) return name;
  }
}

/** The server's error message, and the key that it is about: "definition:2: interval.x.start: ...". */
export function complaintOf(said: string): { key: Key | null; text: string } {
  const found = /^definition:\d+: (?:interval|state|signal)\.(.*?)\.(start|stop|message|key|pairing): (.*)$/s.exec(said);
  if (found) return { key: found[2] as Key, text: found[3].replace(/^'.*' is no regular expression: /s, 'no regular expression: ') };
  return { key: null, text: said.replace(/^definition:\d+: (?:(?:interval|state|signal)\.[^:]*: )?/, '') };
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
