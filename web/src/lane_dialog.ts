// SPDX-License-Identifier: Apache-2.0
// The dialog that makes lanes: intervals, states and signals, with a preview of what they find. The server keeps new lanes
// beside the recording, and the timeline shows them at once.

import { ApiError, ask } from './api';
import { Definition, File, KEYS_OF, KINDS, Key, Kind, NEEDED, Section, Values, complaintOf, definitionText, fileText, freeName, messageOf, patternsOf, readFile, withDefinition, without } from './declared';
import { button, el } from './dom';
import { First, Rule, cellsOf, number, summaryOf } from './found';
import { CatEvent } from './said';
import { Range } from './store';
import { count, duration, moment } from './time';

const WAIT = 250, SHOWN = 8, EVENTS_MOST = 2000; // ms after the last key; of what is found; looked at for two messages
const TITLES: Record<Kind, string> = { interval: 'Intervals', state: 'States', signal: 'Signal' };
const ABOUT: Record<Kind, string> = {
  interval: 'From a message that matches Start to the next that matches Stop.',
  state: 'A group in round brackets is the state, which lasts until the next message that matches.',
  signal: 'A group in round brackets is the number, which holds until the next message that matches.',
};
const LABELS: Record<Key, string> = { start: 'Start', stop: 'Stop', message: 'Message', key: 'Key', pairing: 'A stop ends' };
const PLACES: Record<Key, string> = { start: 'order (?P<key>\\d+) is taken', stop: 'order (?P<key>\\d+) is sent', message: 'oven is (\\w+)', key: '', pairing: '' };
const HINTS: Partial<Record<Key, string>> = {
  start: 'Regular expressions, found anywhere in the message. A group (?P<key>…) in both pairs them.',
  message: 'A regular expression, found anywhere in the message.',
  key: 'A group or field, if not the group named key; without one, each thread is on its own.',
};
const PAIRINGS: [string, string][] = [['', 'the oldest start'], ['nested', 'the newest start (nested)'], ['latest', 'the newest; the others never stop']];

interface Preview { messages: number; givenUp: number; rules: Rule[] }
interface Kept { path: string; text: string; changes: number }

async function send<T>(name: string, method: string, body: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(`api/${name}`, { method, body, signal }), answer = await response.json();
  if (!response.ok) throw new ApiError(answer.error ?? response.statusText);
  return answer as T;
}

/** Patterns from the first and the last message of a range; undefined if it has fewer than two. */
export async function patternsIn({ from, span }: Range): Promise<{ start: string; stop: string } | undefined> {
  const until = from + BigInt(Math.round(span)) + 1n;
  const { events } = await ask<{ events: CatEvent[] }>('events', { from: from > 0n ? from : 0n, until, limit: EVENTS_MOST });
  const said = events.map((event) => messageOf(event.payload)).filter((text): text is string => text !== undefined);
  return said.length > 1 && events.length < EVENTS_MOST ? patternsOf(said[0], said[said.length - 1]) : undefined;
}

export class LaneDialog {
  private dialog = el('dialog', { class: 'maker', 'aria-labelledby': 'maker-title' });
  private title = el('h2', { id: 'maker-title' });
  private about = el('p', { class: 'quiet', id: 'maker-about' });
  private kinds = new Map<Kind, HTMLInputElement>();
  private name = el('input', { id: 'maker-name', type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: '100' });
  private inputs = new Map<Key, HTMLInputElement | HTMLSelectElement>();
  private lines = new Map<Key | 'name', HTMLElement>();
  private errors = new Map<Key | 'name', HTMLElement>();
  private found = el('div', { class: 'maker-found', role: 'status', 'aria-label': 'What matches' });
  private kept = el('div', { class: 'maker-kept' });
  private add = el('button', { type: 'submit', class: 'primary' }, 'Add');
  private problem = el('div', { class: 'error', role: 'alert' });
  private file: File = { head: '', sections: [] };
  private edited: Section | null = null;
  private named = false; // by the reader
  private timer = 0;
  private asking: AbortController | null = null;

  /** `made` gets the number of the change, and the name of the lane to show; none: a lane was removed. */
  constructor(private made: (changes: number, name?: string) => void) {
    this.build();
    document.body.append(this.dialog);
  }

  /** Opens the dialog for a new lane; for a range with two messages, with patterns from them. */
  async open(range: Range | null): Promise<void> {
    const start = range ? patternsIn(range).catch(() => undefined) : undefined;
    this.begin(null);
    if (!this.dialog.open) this.dialog.showModal();
    (this.inputs.get('start') as HTMLElement).focus();
    try {
      this.read(await ask<Kept>('declared'));
    } catch (error) {
      this.problem.textContent = error instanceof Error ? error.message : String(error);
    }
    const patterns = await start;
    if (patterns && !this.edited && !this.value('start') && !this.value('stop')) this.fill('interval', patterns);
  }

  private read({ path, text }: Kept): void {
    this.file = readFile(text);
    if (!this.named && !this.edited) this.name.value = freeName(this.file, this.kind);
    this.showKept(path);
  }

  // -- the form --

  private get kind(): Kind {
    return KINDS.find((kind) => this.kinds.get(kind)?.checked) ?? 'interval';
  }

  private value(key: Key): string {
    return this.inputs.get(key)?.value ?? '';
  }

  private get definition(): Definition {
    const values: Values = {};
    for (const key of KEYS_OF[this.kind]) if (this.value(key)) values[key] = this.value(key);
    return { kind: this.kind, name: this.name.value.trim(), values };
  }

  private build(): void {
    const kinds = el('fieldset', { class: 'maker-kinds' }, el('legend', {}, 'Kind'));
    for (const kind of KINDS) {
      const radio = el('input', { type: 'radio', name: 'maker-kind', id: `maker-${kind}`, value: kind });
      radio.addEventListener('change', () => this.changeKind());
      this.kinds.set(kind, radio);
      kinds.append(el('label', { for: `maker-${kind}` }, radio, TITLES[kind]));
    }
    const form = el('form', { class: 'maker-form', novalidate: '' }, kinds, this.about);
    for (const key of ['start', 'stop', 'message', 'key', 'pairing'] as Key[]) form.append(this.field(key, LABELS[key], this.input(key), HINTS[key]));
    this.name.addEventListener('input', () => { this.named = true; });
    form.append(this.field('name', 'Name', this.name));
    form.append(el('div', { class: 'actions' }, this.add, button('Close', 'Esc', () => this.dialog.close())), this.problem);
    form.addEventListener('input', () => this.changed());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.save();
    });
    this.dialog.append(this.title, el('div', { class: 'maker-body' }, el('div', { class: 'maker-left' }, form, this.kept), this.found));
    this.dialog.addEventListener('close', () => this.stop());
  }

  private input(key: Key): HTMLInputElement | HTMLSelectElement {
    const made = key === 'pairing' ? el('select', { id: 'maker-pairing' }, ...PAIRINGS.map(([value, words]) => el('option', { value }, words)))
      : el('input', { id: `maker-${key}`, type: 'text', class: 'pattern', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', placeholder: PLACES[key] });
    this.inputs.set(key, made);
    return made;
  }

  private field(key: Key | 'name', label: string, input: HTMLElement, hint?: string): HTMLElement {
    const error = el('div', { class: 'error', id: `maker-${key}-error`, role: 'alert' });
    input.setAttribute('aria-describedby', `${hint ? `maker-${key}-hint ` : ''}maker-${key}-error`);
    this.errors.set(key, error);
    const line = el('div', { class: 'maker-field' }, el('label', { for: `maker-${key}` }, label), input, error, hint ? el('div', { class: 'quiet small', id: `maker-${key}-hint` }, hint) : null);
    this.lines.set(key, line);
    return line;
  }

  /** Fills the form: empty, or from the section to change. */
  private begin(section: Section | null): void {
    this.edited = section;
    this.named = section !== null;
    this.title.textContent = section ? `Change the lane ${section.name}` : 'New lane';
    this.add.textContent = section ? 'Save' : 'Add';
    for (const input of this.inputs.values()) input.value = '';
    this.fill(section?.made?.kind ?? 'interval', section?.made?.values ?? {}, section?.name);
  }

  private fill(kind: Kind, values: Values, name?: string): void {
    (this.kinds.get(kind) as HTMLInputElement).checked = true;
    for (const [key, value] of Object.entries(values)) {
      const input = this.inputs.get(key as Key);
      if (input) input.value = value === 'order' && key === 'pairing' ? '' : value;
    }
    if (name !== undefined) this.name.value = name;
    this.changeKind();
  }

  private changeKind(): void {
    this.about.textContent = ABOUT[this.kind];
    for (const [key, line] of this.lines) line.hidden = key !== 'name' && !KEYS_OF[this.kind].includes(key);
    if (!this.named) this.name.value = freeName(this.file, this.kind);
    this.changed();
  }

  private complain(at: Key | 'name' | null, text: string): void {
    this.problem.textContent = at === null ? text : '';
    for (const [key, error] of this.errors) {
      const own = key === at ? text : '';
      if (error.textContent !== own) error.textContent = own;
      const input = key === 'name' ? this.name : this.inputs.get(key);
      if (own) input?.setAttribute('aria-invalid', 'true');
      else input?.removeAttribute('aria-invalid');
    }
  }

  private complainOf(error: unknown): void {
    const { key, text } = complaintOf(error instanceof Error ? error.message : String(error)), { kind } = this;
    this.complain(key && KEYS_OF[kind].includes(key) ? key : error instanceof ApiError && key === null ? NEEDED[kind][0] : null, text);
  }

  // -- the preview --

  private stop(): void {
    clearTimeout(this.timer);
    this.asking?.abort();
  }

  private changed(): void {
    this.stop();
    const { kind } = this, missing = NEEDED[kind].filter((key) => !this.value(key));
    this.complain(null, '');
    this.found.classList.remove('stale');
    if (missing.length) {
      this.found.replaceChildren(el('p', { class: 'empty' }, `What matches is shown here, once there is a pattern for ${missing.map((key) => LABELS[key].toLowerCase()).join(' and ')}.`));
      return;
    }
    this.found.classList.add('stale');
    this.timer = window.setTimeout(() => { void this.preview(); }, WAIT);
  }

  private async preview(): Promise<void> {
    const asking = this.asking = new AbortController();
    try {
      const answer = await send<Preview>(`preview?limit=${SHOWN}`, 'POST', definitionText({ ...this.definition, name: this.definition.name || 'lane' }), asking.signal);
      this.show(answer);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.found.replaceChildren(el('p', { class: 'empty' }, 'Nothing is shown until the pattern is right.'));
      this.complainOf(error);
    }
    this.found.classList.remove('stale');
  }

  private show({ messages, givenUp, rules: [rule] }: Preview): void {
    const parts: (HTMLElement | null)[] = [el('p', { class: 'maker-sum' }, summaryOf(rule, messages))];
    if (givenUp) parts.push(el('p', { class: 'error' }, `${count(givenUp)} searches took too many steps: leave out repeats inside repeats, such as (a+)+`));
    if (rule.kind === 'state' && rule.rows.length) parts.push(tableOf('Time in each state', ['state', 'times', 'time', 'mean', 'max'], rule.rows.slice(0, 2 * SHOWN).map((row) => [row.key ?? '-', number(row.count), duration(row.total), row.count ? duration(row.mean) : '-', duration(row.max)])));
    else if (rule.rows.some((row) => row.count)) parts.push(statistics(rule));
    if (rule.first.length) parts.push(firsts(rule));
    this.found.replaceChildren(...parts.filter((part): part is HTMLElement => part !== null));
  }

  // -- the file --

  private showKept(path: string): void {
    const rows = this.file.sections.filter((section) => section.text && section.kind !== 'lane').map((section) => {
      const change = section.made ? button('Change', `Change the lane ${section.name}`, () => {
        this.begin(section);
        (this.inputs.get(NEEDED[this.kind][0]) as HTMLElement).focus();
      }) : el('span', { class: 'quiet', title: `It was written by hand: change it in ${path}` }, 'by hand');
      const remove = button('Remove', `Remove the lane ${section.name}`, () => { void this.keep(without(this.file, section)); });
      for (const each of [change, remove]) if (each instanceof HTMLButtonElement) each.setAttribute('aria-label', each.title);
      return el('tr', {}, el('td', { class: 'left wide' }, section.name), el('td', { class: 'left quiet' }, section.kind), el('td', {}, change), el('td', {}, remove));
    });
    this.kept.replaceChildren(...(rows.length ? [el('h3', {}, 'Lanes made here'), el('table', { class: 'plain', 'aria-label': 'Lanes made here' }, el('tbody', {}, ...rows))] : []),
      el('p', { class: 'quiet small' }, `Kept in ${path}, as a file for -f.`));
  }

  private async save(): Promise<void> {
    const { definition, edited } = this, missing = NEEDED[definition.kind].find((key) => !definition.values[key]);
    const isTaken = this.file.sections.some((section) => section !== edited && section.kind !== 'lane' && section.name === definition.name);
    if (missing) this.complain(missing, 'A pattern is needed.');
    else if (!definition.name) this.complain('name', 'A name is needed.');
    else if (isTaken) this.complain('name', `There is a lane ${definition.name} already.`);
    else if (await this.keep(withDefinition(this.file, definition, edited), definition.name)) this.dialog.close();
    const wrong = this.dialog.querySelector<HTMLElement>('[aria-invalid]');
    if (this.dialog.open) wrong?.focus();
  }

  /** Whether the server accepted it. */
  private async keep(file: File, name?: string): Promise<boolean> {
    this.stop();
    this.add.disabled = true;
    try {
      const kept = await send<Kept>('declared', 'PUT', fileText(file));
      if (name === undefined) this.begin(null);
      this.read(kept);
      this.made(kept.changes, name);
      return true;
    } catch (error) {
      this.complainOf(error);
      return false;
    } finally {
      this.add.disabled = false;
    }
  }
}

function tableOf(label: string, titles: string[], rows: string[][]): HTMLElement {
  const cell = (tag: 'th' | 'td') => (text: string, i: number): HTMLElement => el(tag, i ? {} : { class: 'left' }, text);
  return el('table', { class: 'plain', 'aria-label': label }, el('thead', {}, el('tr', {}, ...titles.map(cell('th')))), el('tbody', {}, ...rows.map((row) => el('tr', {}, ...row.map(cell('td'))))));
}

/** One line for each row. */
function statistics(rule: Rule): HTMLElement {
  const rows = rule.rows.filter((row) => row.count).slice(0, SHOWN), all = el('div', {});
  for (const row of rows) {
    if (row.key !== null) all.append(el('h3', {}, row.key));
    all.append(el('dl', {}, ...cellsOf(rule.kind, row).flatMap(([title, text]) => [el('dt', {}, title), el('dd', {}, text)])));
  }
  return all;
}

function firsts(rule: Rule): HTMLElement {
  const took = (first: First): string => duration(Number(BigInt(first.until ?? first.begin) - BigInt(first.begin)));
  const keyed = rule.first.some((first) => first.key !== null), key = rule.kind === 'state' ? 'state' : 'key';
  const rows = rule.first.map((first) => [moment(BigInt(first.begin)), first.value === undefined ? took(first) : number(first.value), ...(keyed ? [first.key ?? '-'] : [])]);
  const table = tableOf('The first ones', ['begin', rule.kind === 'signal' ? 'value' : 'duration', ...(keyed ? [key] : [])], rows);
  return el('div', {}, el('h3', {}, 'The first ones'), table);
}
