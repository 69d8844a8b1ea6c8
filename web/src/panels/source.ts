// SPDX-License-Identifier: Apache-2.0
// The source of a function, as text. The file is asked for when the section is opened; it then stays open from call to call.

import { ApiError, ask } from '../api';
import { el } from '../dom';
import { Func } from '../model';
import { Store } from '../store';

interface Answer { file: string; line: number; first: number; changed: boolean; lines: string[] }

const BEFORE = 3, SHOWN = 60;

function listing(answer: Answer): HTMLElement {
  const begin = Math.max(answer.line - BEFORE, answer.first), list = el('pre', { class: 'source', tabindex: '0', 'aria-label': `Source of ${answer.file}` });
  answer.lines.slice(begin - answer.first, begin - answer.first + SHOWN).forEach((text, i) => {
    const line = el('div', { class: begin + i === answer.line ? 'here' : '' }, el('span', { class: 'number' }, String(begin + i)), text || ' ');
    list.append(line);
  });
  return list;
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
      body.replaceChildren(answer.changed ? el('p', { class: 'quiet' }, 'The file has changed since the recording.') : '', listing(answer));
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
