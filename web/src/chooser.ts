// SPDX-License-Identifier: Apache-2.0
// A box with an input line and the results below: search, and the command palette.

import { el } from './dom';

export interface Choice { text: string; hint: string; run: () => void }
export interface Choices { list: Choice[]; more?: string } // more: what else there is, in words

export class Chooser {
  private input = el('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', 'aria-controls': 'choices', role: 'combobox', 'aria-expanded': 'true' });
  private list = el('ul', { id: 'choices', role: 'listbox' });
  private more = el('div', { class: 'quiet', role: 'status' });
  private dialog = el('dialog', { class: 'chooser' }, this.input, this.list, this.more);
  private choices: Choice[] = [];
  private at = 0;
  private asked = 0;

  /** `keep` gets the text of the line, so that a link contains it; an empty text when the box closes. */
  constructor(title: string, private find: (text: string) => Promise<Choices>, private keep: (text: string) => void = () => undefined) {
    this.input.placeholder = title;
    this.input.setAttribute('aria-label', title);
    document.body.append(this.dialog);
    this.input.addEventListener('input', () => { void this.update(); });
    this.input.addEventListener('keydown', (event) => this.key(event));
    this.dialog.addEventListener('close', () => this.keep(''));
    this.dialog.addEventListener('click', (event) => { if (event.target === this.dialog) this.dialog.close(); });
  }

  open(text = ''): void {
    this.input.value = text;
    if (!this.dialog.open) this.dialog.showModal();
    this.input.focus();
    void this.update();
  }

  private async update(): Promise<void> {
    const turn = ++this.asked, text = this.input.value.trim();
    this.keep(text);
    const found = await this.find(text);
    if (turn !== this.asked) return;
    this.choices = found.list;
    this.more.textContent = found.more ?? '';
    this.at = 0;
    this.draw();
  }

  private draw(): void {
    this.list.replaceChildren(...this.choices.map((choice, i) => {
      const item = el('li', { role: 'option', 'aria-selected': String(i === this.at) }, el('span', {}, choice.text), el('span', { class: 'hint' }, choice.hint));
      item.addEventListener('click', () => this.take(i));
      return item;
    }));
    this.list.children[this.at]?.scrollIntoView({ block: 'nearest' });
  }

  private key(event: KeyboardEvent): void {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step && this.choices.length) {
      event.preventDefault();
      this.at = (this.at + step + this.choices.length) % this.choices.length;
      this.draw();
    }
    if (event.key === 'Enter') this.take(this.at);
    event.stopPropagation();
  }

  private take(i: number): void {
    this.dialog.close();
    this.choices[i]?.run();
  }
}
