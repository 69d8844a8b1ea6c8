// SPDX-License-Identifier: Apache-2.0
// The dialog that makes lanes: intervals, states and signals, with a preview of what they find. The server keeps new lanes
// beside the recording, and the timeline shows them at once.

import { ApiError, ask } from './api';
import { Complaint, Definition, FORMS, File, KEYS, KINDS, Key, Kind, SOURCES, Section, Source, Values, complaintOf, definitionText, fileText, formOf, freeName, missingIn, readFile, tidied, withDefinition, without, wrongIn } from './declared';
import { button, el } from './dom';
import { First, Rule, cellsOf, number, summaryOf } from './found';
import { NESTINGS, PAIRINGS, SELDOM, SOURCE_TITLES, TITLES, aboutOf, wordsOf } from './lane_forms';
import { Prefill, Suggestions, prefillOf } from './lane_hints';
import { Context } from './panel';
import { count, duration, moment } from './time';

const WAIT = 250, SHOWN = 8; // ms after the last key; of what is found
const NOTHING = 'Nothing is shown until the form is right.';
const EVENTS: Key[] = ['event', 'stopEvent'];
const CHOICES: Partial<Record<Key, [string, string][]>> = { pairing: PAIRINGS, outermost: NESTINGS };
const LISTS: Partial<Record<Key, string>> = { call: 'calls', span: 'spans', event: 'events', stopEvent: 'events', value: 'fields', key: 'fields', stopKey: 'fields', by: 'fields' }; // of suggestions

interface Preview { messages: number; givenUp: number; rules: Rule[] }
interface Kept { path: string; text: string; changes: number; warnings: string[] }

async function send<T>(name: string, method: string, body: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(`api/${name}`, { method, body, signal }), answer = await response.json();
  if (!response.ok) throw new ApiError(answer.error ?? response.statusText);
  return answer as T;
}

export class LaneDialog {
  private dialog = el('dialog', { class: 'maker', 'aria-labelledby': 'maker-title' });
  private title = el('h2', { id: 'maker-title' });
  private about = el('p', { class: 'quiet', id: 'maker-about' });
  private kinds = new Map<Kind, HTMLInputElement>();
  private sources = new Map<Source, HTMLInputElement>();
  private name = el('input', { id: 'maker-name', type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: '100' });
  private inputs = new Map<Key, HTMLInputElement | HTMLSelectElement>();
  private lines = new Map<Key | 'name', { line: HTMLElement; label: HTMLElement; error: HTMLElement; hint: HTMLElement }>();
  private more = el('details', { class: 'maker-more' }, el('summary', {}, 'More'));
  private suggestions: Suggestions;
  private found = el('div', { class: 'maker-found', role: 'status', 'aria-label': 'What matches' });
  private kept = el('div', { class: 'maker-kept' });
  private add = el('button', { type: 'submit', class: 'primary' }, 'Add');
  private problem = el('div', { class: 'error', role: 'alert' });
  private file: File = { head: '', sections: [] };
  private edited: Section | null = null;
  private named = false; // by the reader
  private touched = false; // since it was opened
  private timer = 0;
  private asking: AbortController | null = null;

  /** `made` gets the number of the change, what is left out of the file, and the name of the lane to show; none: a lane was removed. */
  constructor(private context: () => Context, private made: (changes: number, warnings: string[], name?: string) => void) {
    this.suggestions = new Suggestions(context);
    this.build();
    document.body.append(this.dialog);
  }

  /** Opens the dialog for a new lane; if something is selected in the page, for a lane of that. */
  async open(): Promise<void> {
    const selected = prefillOf(this.context());
    this.suggestions.forget();
    this.begin(null);
    this.touched = false;
    if (!this.dialog.open) this.dialog.showModal();
    this.focusFirst();
    try {
      this.read(await ask<Kept>('declared'));
    } catch (error) {
      this.problem.textContent = error instanceof Error ? error.message : String(error);
    }
    const found = await selected;
    if (!found || this.edited || this.touched) return;
    this.fill(found);
    this.focusFirst();
  }

  private focusFirst(): void {
    const { needed } = this.form, empty = needed.find((key) => !this.value(key));
    (this.inputs.get(empty ?? needed[0]) as HTMLElement).focus();
  }

  private read({ path, text }: Kept): void {
    this.file = readFile(text);
    this.nameIt();
    this.showKept(path);
  }

  // -- the form --

  private get kind(): Kind {
    return KINDS.find((kind) => this.kinds.get(kind)?.checked) ?? 'interval';
  }

  private get source(): Source {
    const chosen = SOURCES.find((source) => this.sources.get(source)?.checked);
    return chosen && FORMS[this.kind][chosen] ? chosen : 'messages';
  }

  private get form(): { keys: Key[]; needed: Key[] } {
    return formOf(this.kind, this.source);
  }

  private value(key: Key): string {
    return tidied(key, this.inputs.get(key)?.value ?? '');
  }

  private get definition(): Definition {
    const values: Values = {};
    for (const key of this.form.keys) if (this.value(key)) values[key] = this.value(key);
    return { kind: this.kind, source: this.source, name: this.name.value.trim(), values };
  }

  private build(): void {
    const form = el('form', { class: 'maker-form', novalidate: '' }, this.choice('Kind', 'kind', KINDS, TITLES, this.kinds), this.choice('Of', 'source', SOURCES, SOURCE_TITLES, this.sources), this.about);
    for (const key of KEYS) (SELDOM.includes(key) ? this.more : form).append(this.field(key, this.input(key)));
    this.name.addEventListener('input', () => { this.named = true; });
    this.inputs.get('call')?.addEventListener('input', () => { this.suggestions.findCalls(this.value('call')).catch(() => undefined); });
    for (const key of EVENTS) this.inputs.get(key)?.addEventListener('input', () => this.showHints());
    form.append(this.more, this.field('name', this.name), this.suggestions.calls, this.suggestions.spans, this.suggestions.events, this.suggestions.fields);
    form.append(el('div', { class: 'actions' }, this.add, button('Close', 'Esc', () => this.dialog.close())), this.problem);
    form.addEventListener('input', () => {
      this.touched = true;
      this.changed();
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.save();
    });
    this.dialog.append(this.title, el('div', { class: 'maker-body' }, el('div', { class: 'maker-left' }, form, this.kept), this.found));
    this.dialog.addEventListener('close', () => this.stop());
  }

  /** Some radio buttons in a line. */
  private choice<T extends string>(title: string, name: string, values: readonly T[], titles: Record<T, string>, radios: Map<T, HTMLInputElement>): HTMLElement {
    const made = el('fieldset', { class: 'maker-choice' }, el('legend', {}, title));
    for (const value of values) {
      const radio = el('input', { type: 'radio', name: `maker-${name}`, id: `maker-${name}-${value}`, value });
      radio.addEventListener('change', () => this.changeForm());
      radios.set(value, radio);
      made.append(el('label', { for: `maker-${name}-${value}` }, radio, titles[value]));
    }
    return made;
  }

  private input(key: Key): HTMLInputElement | HTMLSelectElement {
    const list = LISTS[key], choices = CHOICES[key], made = choices ? el('select', { id: `maker-${key}` }, ...choices.map(([value, words]) => el('option', { value }, words)))
      : el('input', { id: `maker-${key}`, type: 'text', class: 'pattern', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', ...(list ? { list: `maker-known-${list}` } : {}) });
    this.inputs.set(key, made);
    return made;
  }

  private field(key: Key | 'name', input: HTMLElement): HTMLElement {
    const error = el('div', { class: 'error', id: `maker-${key}-error`, role: 'alert' }), label = el('label', { for: `maker-${key}` }, 'Name');
    const hint = el('div', { class: 'quiet small', id: `maker-${key}-hint` });
    input.setAttribute('aria-describedby', `maker-${key}-hint maker-${key}-error`);
    const line = el('div', { class: 'maker-field' }, label, input, error, hint);
    this.lines.set(key, { line, label, error, hint });
    return line;
  }

  /** Fills the form: empty, or from the section to change. */
  private begin(section: Section | null): void {
    this.edited = section;
    this.named = section !== null;
    this.title.textContent = section ? `Change the lane ${section.name}` : 'New lane';
    this.add.textContent = section ? 'Save' : 'Add';
    for (const input of this.inputs.values()) input.value = '';
    if (section) this.name.value = section.name;
    this.fill(section?.made ?? { kind: 'interval', source: 'messages', values: {} });
  }

  private fill({ kind, source, values }: Prefill): void {
    (this.kinds.get(kind) as HTMLInputElement).checked = (this.sources.get(source) as HTMLInputElement).checked = true;
    for (const [key, value] of Object.entries(values)) {
      const input = this.inputs.get(key as Key);
      if (input) input.value = value === 'order' && key === 'pairing' ? '' : value;
    }
    this.more.open = SELDOM.some((key) => this.value(key));
    this.changeForm();
  }

  /** Shows the fields of a kind and a source. */
  private changeForm(): void {
    const { kind, source, form } = this;
    for (const [each, radio] of this.sources) (radio.parentElement as HTMLElement).hidden = !FORMS[kind][each];
    (this.sources.get(source) as HTMLInputElement).checked = true;
    this.about.textContent = aboutOf(kind, source);
    for (const key of KEYS) {
      const { line, label } = this.lines.get(key) as { line: HTMLElement; label: HTMLElement }, words = wordsOf(kind, source, key);
      line.hidden = !form.keys.includes(key);
      label.textContent = words.label;
      this.inputs.get(key)?.setAttribute('placeholder', words.place);
    }
    this.more.hidden = !form.keys.some((key) => SELDOM.includes(key));
    if (source === 'spans') void this.suggestions.findSpans().catch(() => undefined);
    if (source === 'events') void this.suggestions.findEvents().catch(() => undefined).then(() => this.showHints());
    this.showHints();
    this.changed();
  }

  /** The hints of the fields: of events, the names of their fields, once they are known. */
  private showHints(): void {
    const { kind, source, form, suggestions } = this, shown = source === 'events' ? EVENTS.filter((key) => form.keys.includes(key)) : [];
    const events = (key: Key): string[] => this.value(key).split(', ');
    for (const key of KEYS) {
      const fields = shown.includes(key) ? suggestions.fieldsText(events(key)) : '', text = fields ? `Its fields: ${fields}` : wordsOf(kind, source, key).hint ?? '', hint = this.lines.get(key)?.hint;
      if (hint && hint.textContent !== text) hint.textContent = text;
    }
    suggestions.suggestFields(shown.flatMap(events));
  }

  /** A name for the lane, unless the reader has given one: that of the function or span, or else of the kind. */
  private nameIt(): void {
    const { kind, source } = this, own = source === 'calls' ? this.value('call') : source === 'spans' ? this.value('span') : '';
    if (!this.named && !this.edited) this.name.value = freeName(this.file, own.slice(0, this.name.maxLength - 5) || kind);
  }

  private complain(at: Key | 'name' | null, text: string): void {
    this.problem.textContent = at === null ? text : '';
    if (text && SELDOM.some((key) => key === at)) this.more.open = true;
    for (const [key, { error }] of this.lines) {
      const own = key === at ? text : '';
      if (error.textContent !== own) error.textContent = own;
      const input = key === 'name' ? this.name : this.inputs.get(key);
      if (own) input?.setAttribute('aria-invalid', 'true');
      else input?.removeAttribute('aria-invalid');
    }
  }

  private complainOf(error: unknown): void {
    this.showComplaint(complaintOf(error instanceof Error ? error.message : String(error)), error instanceof ApiError);
  }

  /** `isOfIt`: the definition is wrong, whatever it is that is wrong with it. */
  private showComplaint({ name, key, text }: Complaint, isOfIt: boolean): void {
    const { form, source } = this, at = source !== 'events' ? key : key === 'start' ? 'event' : key === 'stop' ? 'stopEvent' : key;
    if (name !== undefined && name !== (this.definition.name || 'lane')) this.complain(null, `${name}: ${text}`);
    else this.complain(at && form.keys.includes(at) ? at : isOfIt && key === null ? form.needed[0] : null, text);
  }

  // -- the preview --

  private stop(): void {
    clearTimeout(this.timer);
    this.asking?.abort();
  }

  private changed(): void {
    this.stop();
    const { kind, source, form } = this, missing = form.needed.filter((key) => !this.value(key)), wrong = wrongIn(this.definition);
    this.complain(null, '');
    this.nameIt();
    this.found.classList.remove('stale');
    if (wrong) this.timer = window.setTimeout(() => this.showComplaint(wrong, true), WAIT);
    if (missing.length || wrong) {
      this.found.replaceChildren(el('p', { class: 'empty' }, missing.length ? `What matches is shown here, once you fill in ${missing.map((key) => wordsOf(kind, source, key).label).join(' and ')}.` : NOTHING));
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
      this.found.replaceChildren(el('p', { class: 'empty' }, NOTHING));
      this.complainOf(error);
    }
    this.found.classList.remove('stale');
  }

  private show({ messages, givenUp, rules: [rule] }: Preview): void {
    const parts: (HTMLElement | null)[] = [el('p', { class: 'maker-sum' }, summaryOf(rule, messages, this.source))];
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
        (this.inputs.get(this.form.needed[0]) as HTMLElement).focus();
      }) : el('span', { class: 'quiet', title: `It was written by hand: change it in ${path}` }, 'by hand');
      const remove = button('Remove', `Remove the lane ${section.name}`, () => { void this.alone(() => this.keep(without(this.file, section))); });
      for (const each of [change, remove]) if (each instanceof HTMLButtonElement) each.setAttribute('aria-label', each.title);
      return el('tr', {}, el('td', { class: 'left wide' }, section.name), el('td', { class: 'left quiet' }, section.kind), el('td', {}, change), el('td', {}, remove));
    });
    this.kept.replaceChildren(...(rows.length ? [el('h3', {}, 'Lanes made here'), el('table', { class: 'plain', 'aria-label': 'Lanes made here' }, el('tbody', {}, ...rows))] : []),
      el('p', { class: 'quiet small' }, `Kept in ${path}, as a file for -f.`));
  }

  private async save(): Promise<void> {
    const { definition, edited } = this, wrong = missingIn(definition) ?? wrongIn(definition);
    const isTaken = this.file.sections.some((section) => section !== edited && section.kind !== 'lane' && section.name === definition.name);
    if (wrong) this.showComplaint(wrong, true);
    else if (!definition.name) this.complain('name', 'A name is needed.');
    else if (isTaken) this.complain('name', `There is a lane ${definition.name} already.`);
    else if (await this.alone(async () => await this.isThere(definition) && await this.keep(withDefinition(this.file, definition, edited), definition.name))) this.dialog.close();
    if (this.dialog.open) this.dialog.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }

  /** While it works, nothing else is saved. Whether it did it. */
  private async alone(work: () => Promise<boolean>): Promise<boolean> {
    if (this.add.disabled) return false;
    this.add.disabled = true;
    try {
      return await work();
    } finally {
      this.add.disabled = false;
    }
  }

  /** Whether the program has the function. Of a whole file, the server only leaves out lanes of functions that it does not have. */
  private async isThere(definition: Definition): Promise<boolean> {
    if (definition.source !== 'calls') return true;
    try {
      await send<Preview>('preview?limit=0', 'POST', definitionText(definition));
      return true;
    } catch (error) {
      this.complainOf(error);
      return false;
    }
  }

  /** Whether the server accepted it. */
  private async keep(file: File, name?: string): Promise<boolean> {
    this.stop();
    try {
      const kept = await send<Kept>('declared', 'PUT', fileText(file));
      if (name === undefined) this.begin(null);
      this.read(kept);
      this.made(kept.changes, kept.warnings, name);
      return true;
    } catch (error) {
      this.complainOf(error);
      return false;
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
