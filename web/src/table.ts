// SPDX-License-Identifier: Apache-2.0
// A virtual table: it draws only visible rows. A click on a column's head sorts it.

import { VirtualList, el } from './dom';
import { Store } from './store';

export interface Column<T> {
  title: string; width: string; text: (row: T) => string; sort?: (row: T) => number | string;
  left?: boolean; hint?: (row: T) => string; bar?: (row: T) => number;
  swatch?: (row: T) => string; // colour of a mark before the text; '': no mark
  parts?: (row: T) => [string, number][]; // colours and shares of a stacked bar; `hint` is its text
}

function fillParts(cell: HTMLElement, parts: [string, number][]): void {
  cell.classList.add('stacked');
  cell.setAttribute('aria-label', cell.title.replace(/\n/g, ', '));
  for (const [colour, share] of parts) {
    if (share <= 0) continue;
    const part = el('i');
    part.style.width = `${100 * share}%`;
    part.style.background = colour;
    cell.append(part);
  }
}

const GAP = 10, PADDING = 24; // pixels; same values as in app.css
const SOON = 30; // ms

/** The least width in pixels of columns such as "80px" or "minmax(120px, 1fr)". */
export function leastWidth(widths: string[]): number {
  return widths.reduce((sum, width) => sum + Number(/(\d+)px/.exec(width)?.[1] ?? 0), 0) + GAP * (widths.length - 1) + PADDING;
}

export class Table<T> {
  readonly element: HTMLElement;
  private rows: T[] = [];
  private head: HTMLElement;
  private list: VirtualList;
  private by: number;
  private down = true;
  private chosen: T | null = null;
  private empty = el('div', { class: 'table-empty', hidden: '' }, 'Nothing in this range.');

  /** `id` is the key of the sort order in the store; `usual` the column that is sorted by default; `lit` marks rows. */
  constructor(private store: Store, private id: string, private columns: Column<T>[], private usual: number, private open: (row: T) => void, label: string, private lit?: (row: T) => boolean) {
    this.by = usual;
    this.head = el('div', { class: 'table-head', role: 'row' });
    this.list = new VirtualList(22, (i) => this.makeRow(i), 'table-rows');
    this.element = el('div', { class: 'table', role: 'table', 'aria-label': label }, this.head, this.empty, this.list.element);
    this.setWidths();
    this.list.element.addEventListener('keydown', (event) => this.key(event));
    this.drawHead();
  }

  set(rows: T[]): void {
    this.rows = rows;
    this.chosen = null;
    this.readOrder();
    this.drawHead();
    this.sort();
  }

  setColumns(columns: Column<T>[]): void {
    this.columns = columns;
    this.readOrder();
    this.setWidths();
    this.drawHead();
  }

  /** Sets the widths for head and rows. Each row has its own layout, so widths must not depend on contents. */
  private setWidths(): void {
    const widths = this.columns.map((column) => column.width);
    this.element.style.setProperty('--columns', widths.join(' '));
    this.element.style.setProperty('--least', `${leastWidth(widths)}px`);
  }

  redraw(): void {
    this.list.draw();
  }

  private later = 0;

  /** Draws once what arrives for several rows together. For callbacks: it is bound. */
  readonly redrawSoon = (): void => {
    clearTimeout(this.later);
    this.later = window.setTimeout(() => this.redraw(), SOON);
  };

  /** Reads the sort order from the link: "-total" means descending by the column total, "+total" ascending. */
  private readOrder(): void {
    const order = this.store.view.picks[this.id], at = order ? this.columns.findIndex((column) => column.title === order.slice(1) && column.sort) : -1;
    this.by = at < 0 ? this.usual : at;
    this.down = at < 0 || order[0] === '-';
  }

  private orderBy(i: number): void {
    this.down = i === this.by ? !this.down : !this.columns[i].left;
    this.by = i;
    this.store.pick(this.id, i === this.usual && this.down ? '' : (this.down ? '-' : '+') + this.columns[i].title);
    this.drawHead();
    this.sort();
  }

  private sort(): void {
    const key = this.columns[this.by]?.sort;
    if (key) {
      this.rows.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return (x < y ? -1 : x > y ? 1 : 0) * (this.down ? -1 : 1);
      });
    }
    this.empty.hidden = this.rows.length > 0;
    this.element.setAttribute('aria-rowcount', String(this.rows.length + 1));
    this.list.set(this.rows.length);
  }

  private drawHead(): void {
    this.head.replaceChildren(...this.columns.map((column, i) => {
      const cell = el('button', { type: 'button', class: column.left ? 'cell left' : 'cell', role: 'columnheader' }, column.title);
      if (i === this.by) cell.setAttribute('aria-sort', this.down ? 'descending' : 'ascending');
      cell.addEventListener('click', () => {
        if (!column.sort) return;
        this.orderBy(i);
        (this.head.children[i] as HTMLElement).focus();
      });
      return cell;
    }));
  }

  private makeRow(i: number): HTMLElement {
    const row = this.rows[i];
    const isChosen = this.lit ? this.lit(row) : row === this.chosen;
    const element = el('div', { class: isChosen ? 'row chosen' : 'row', role: 'row', 'aria-rowindex': String(i + 2), ...(isChosen ? { 'aria-selected': 'true' } : {}) });
    for (const column of this.columns) {
      const text = column.text(row);
      const cell = el('span', { class: column.left ? 'cell left' : 'cell', role: 'cell', title: column.hint ? column.hint(row) : text }, text);
      if (column.bar) cell.style.setProperty('--bar', `${Math.round(100 * column.bar(row))}%`);
      if (column.bar) cell.classList.add('bar');
      const colour = column.swatch?.(row);
      if (colour) {
        const mark = el('i', { class: 'swatch' });
        mark.style.background = colour;
        cell.prepend(mark);
      }
      if (column.parts) fillParts(cell, column.parts(row));
      element.append(cell);
    }
    element.addEventListener('click', () => this.choose(row));
    return element;
  }

  private choose(row: T): void {
    this.chosen = row;
    this.list.draw();
    this.open(row);
  }

  private key(event: KeyboardEvent): void {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (!step || !this.rows.length) return;
    event.preventDefault();
    event.stopPropagation();
    const at = this.chosen ? this.rows.indexOf(this.chosen) : -step;
    const next = Math.min(Math.max(at + step, 0), this.rows.length - 1);
    this.list.reveal(next);
    this.choose(this.rows[next]);
  }
}
