// SPDX-License-Identifier: Apache-2.0
// Elements. Text is set as text, never as markup, so that text from a recording cannot become markup.

type Child = Node | string | null | undefined | false;

export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  for (const child of children) {
    if (child) element.append(child);
  }
  return element;
}

export function button(text: string, title: string, press: () => void, className = ''): HTMLButtonElement {
  const made = el('button', { type: 'button', title, class: className }, text);
  made.addEventListener('click', press);
  return made;
}

/** The border between two parts of the page, which the mouse drags and the arrow keys move: up and left by -1, down and right by 1. */
export function splitter(orientation: 'horizontal' | 'vertical', words: string, drag: (event: PointerEvent) => void, step: (by: number) => void): HTMLDivElement {
  const made = el('div', { class: `divider ${orientation}`, role: 'separator', 'aria-orientation': orientation, tabindex: '0', 'aria-label': words });
  const keys = orientation === 'horizontal' ? ['ArrowUp', 'ArrowDown'] : ['ArrowLeft', 'ArrowRight'];
  made.addEventListener('pointerdown', (event) => made.setPointerCapture(event.pointerId));
  made.addEventListener('pointermove', (event) => { if (made.hasPointerCapture(event.pointerId)) drag(event); });
  made.addEventListener('keydown', (event) => {
    if (!keys.includes(event.key)) return;
    step(event.key === keys[0] ? -1 : 1);
    event.preventDefault();
    event.stopPropagation();
  });
  return made;
}

/** Adds rows to a table: the first `most` of the items, and below the table a line that says how many more there are, with a button that shows them. */
export async function shortTable<T>(table: HTMLElement, items: T[], most: number, rest: (left: number) => string, row: (item: T) => HTMLElement | Promise<HTMLElement>): Promise<HTMLElement> {
  const body = el('tbody'), add = async (some: T[]): Promise<void> => body.append(...await Promise.all(some.map(row))), left = items.slice(most);
  table.append(body);
  await add(items.slice(0, most));
  if (!left.length) return table;
  const line = el('div', { class: 'quiet bar-row' }, `and ${rest(left.length)}`, button('Show all', 'Show these rows too', () => { void add(left).then(() => line.remove()); }, 'link'));
  return el('div', {}, table, line);
}

/** A list of any length; only the rows on the screen exist as elements. */
export class VirtualList {
  readonly element: HTMLDivElement;
  private readonly inner: HTMLDivElement;
  private rows = 0;

  constructor(private rowHeight: number, private make: (row: number) => HTMLElement, className: string, role = 'rowgroup') {
    this.inner = el('div', { class: 'virtual-inner', role });
    this.element = el('div', { class: `virtual ${className}`, tabindex: '0' }, this.inner);
    this.element.addEventListener('scroll', () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  set(rows: number): void {
    this.rows = rows;
    this.inner.style.height = `${rows * this.rowHeight}px`;
    this.draw();
  }

  reveal(row: number): void {
    const top = row * this.rowHeight, { scrollTop, clientHeight } = this.element;
    if (top < scrollTop || top + this.rowHeight > scrollTop + clientHeight) this.element.scrollTop = top - clientHeight / 2;
  }

  draw(): void {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.rowHeight) - 4);
    const last = Math.min(this.rows, first + Math.ceil(this.element.clientHeight / this.rowHeight) + 10);
    const made: HTMLElement[] = [];
    for (let row = first; row < last; row++) {
      const element = this.make(row);
      element.style.top = `${row * this.rowHeight}px`;
      element.style.height = `${this.rowHeight}px`;
      made.push(element);
    }
    this.inner.replaceChildren(...made);
  }
}
