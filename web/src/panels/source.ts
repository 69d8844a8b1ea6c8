// SPDX-License-Identifier: Apache-2.0
// The source of a function, as text. The file is asked for when the section is opened; it then stays open from call to call.

import { ApiError, ask } from '../api';
import { button, el } from '../dom';
import { Func } from '../model';
import { Store } from '../store';
import { counted } from '../time';

interface Answer { file: string; line: number; first: number; changed: boolean; lines: string[]; more: number }

const BEFORE = 3, SHOWN = 60, ALL = 1000000; // lines

function listing(answer: Answer, shown: number): HTMLElement {
  const begin = Math.max(answer.line - BEFORE, answer.first), list = el('pre', { class: 'source', tabindex: '0', 'aria-label': `Source of ${answer.file}` });
  answer.lines.slice(begin - answer.first, begin - answer.first + shown).forEach((text, i) => {
    const line = el('div', { class: begin + i === answer.line ? 'here' : '' }, el('span', { class: 'number' }, String(begin + i)), text || ' ');
    list.append(line);
  });
  return list;
}

/** The listing, and the number of lines below it up to the end of the file, with a button that shows them: nobody knows where the function ends. */
function showSource(body: HTMLElement, answer: Answer, shown: number, all: () => void): void {
  const made = listing(answer, shown), last = Math.max(answer.line - BEFORE, answer.first) + made.childElementCount - 1, left = answer.first + answer.lines.length + answer.more - 1 - last;
  body.replaceChildren(answer.changed ? el('p', { class: 'quiet' }, 'The file has changed since the recording.') : '', made,
    left > 0 ? el('div', { class: 'quiet bar-row' }, `and ${counted(left, 'more line')} to the end of the file`, button('Show all', 'Show the rest of the file', all, 'link')) : '');
}

export function sourceOf(store: Store, func: Func, signal: AbortSignal): HTMLElement | null {
  if (!func.file || !func.line) return null;
  const body = el('div'), box = el('details', { class: 'source-box' }, el('summary', {}, 'Source'), body);
  let asked = false;
  const load = async (): Promise<void> => {
    if (asked) return;
    asked = true;
    try {
      const answer = await ask<Answer>('source', { func: func.id }, signal);
      showSource(body, answer, SHOWN, async () => { showSource(body, await ask<Answer>('source', { func: func.id, limit: ALL }), ALL, () => undefined); });
    } catch (error) {
      if (error instanceof ApiError) body.replaceChildren(el('p', { class: 'quiet' }, error.message));
    }
  };
  box.addEventListener('toggle', () => {
    store.look('source', box.open ? 'open' : '');
    if (box.open) void load();
  });
  box.open = store.view.looks.source === 'open';
  return box;
}
