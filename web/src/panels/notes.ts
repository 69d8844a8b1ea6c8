// SPDX-License-Identifier: Apache-2.0
// The user's notes: each is a moment or a range of time with a text.

import { button, el } from '../dom';
import { Note } from '../notes';
import { Context, Panel } from '../panel';
import { duration, moment } from '../time';

let box: HTMLElement, shown: Note[] | null = null;

function go(context: Context, note: Note): void {
  const { from, span } = note.range, { store } = context;
  if (span > 0) store.show(from, from + BigInt(Math.round(span)), 0.5);
  else store.setRange(from - BigInt(Math.round(store.view.range.span / 2)), store.view.range.span);
}

function rowOf(context: Context, note: Note): HTMLElement {
  const text = el('input', { type: 'text', class: 'note-text', 'aria-label': `Note at ${moment(note.range.from)}`, placeholder: 'what is there', maxlength: '500' });
  text.value = note.text;
  text.addEventListener('change', () => context.notes.change(note, text.value));
  text.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === 'Escape') text.blur(); });
  return el('tr', {}, el('td', {}, button(moment(note.range.from), 'Show it', () => go(context, note), 'link')),
    el('td', {}, note.range.span > 0 ? duration(note.range.span) : '-'), el('td', { class: 'left wide' }, text),
    el('td', {}, button('Delete', 'Delete this note', () => context.notes.remove(note))));
}

function draw(context: Context): void {
  const { notes } = context, body = el('tbody', {}, ...notes.list.map((note) => rowOf(context, note)));
  const table = el('table', { class: 'plain notes', 'aria-label': 'Notes' }, el('thead', {}, el('tr', {}, el('th', {}, 'time'), el('th', {}, 'length'), el('th', { class: 'left' }, 'note'), el('th', {}))), body);
  const add = button('Add a note', 'M', () => addNote(context));
  box.replaceChildren(el('div', { class: 'actions' }, add, el('span', { class: 'note', role: 'status' }, notes.problem)),
    notes.list.length ? table : el('p', { class: 'empty' }, 'M notes the selected range or call, or else the middle of the screen. Notes are kept beside the recording, in .krait-notes.json.'));
  shown = [...notes.list];
}

/** Adds a note to the selection, or to the middle of the screen, and lets the user type its text. */
export function addNote(context: Context): void {
  const { view, detail } = context.store, { from, span } = view.range;
  const chosen = view.selected ?? (detail && { from: detail.begin, span: Number(detail.end - detail.begin) });
  const note = context.notes.add(chosen ?? { from: from + BigInt(Math.round(span / 2)), span: 0 });
  context.store.openPanel('notes');
  window.setTimeout(() => {
    const inputs = box?.querySelectorAll<HTMLInputElement>('.note-text');
    inputs?.[context.notes.list.indexOf(note)]?.focus();
  }, 60); // once the panel is there
}

export const notes: Panel = {
  id: 'notes', title: 'Notes', key: '9', ofRange: false,
  make() {
    box = el('div', { class: 'details fill' });
    return box;
  },
  async update(context) {
    const isSame = shown?.length === context.notes.list.length && shown.every((note, i) => note === context.notes.list[i]);
    const status = box.querySelector('[role=status]');
    if (isSame && status) status.textContent = context.notes.problem; // what is being typed stays
    else draw(context);
  },
};
