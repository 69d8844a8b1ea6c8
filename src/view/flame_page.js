/* SPDX-License-Identifier: Apache-2.0 */
// The flame graph in a browser: the elements that the script adds to the picture, its events, and the start.

/* ---- what the script adds to the picture ---- */

function html(tag, attributes, parentElement, content) {
  const e = document.createElementNS(HTML, tag);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (content !== undefined) e.textContent = content;
  if (parentElement) parentElement.appendChild(e);
  return e;
}
function button(parentElement, content, title, action) {
  const b = html('button', {type: 'button', title, 'aria-label': title}, parentElement, content);
  b.addEventListener('click', action);
  return b;
}

if ($('still')) $('still').remove();
const subtitle = $('subtitle').textContent;
const over = make('rect', {id: 'over', rx: 2});
const ring = make('g', {id: 'ring'});
make('rect', {class: 'out', rx: 3}, ring);
make('rect', {class: 'in', rx: 3}, ring);
over.style.display = ring.style.display = 'none';
svg.insertBefore(over, $('head'));
svg.insertBefore(ring, $('head'));
const path = make('g', {id: 'path', role: 'navigation', 'aria-label': 'Path to the zoomed frame'}, $('head'));

const rules = ['head', 'foot'].map((id) => make('path', {class: 'rule'}, $(id)));
const controls = make('foreignObject', {id: 'controls', height: 36}, $('head'));
const bar = html('div', {class: 'bar', role: 'toolbar', 'aria-label': 'Flame graph'}, controls);
const foundText = html('span', {class: 'found', role: 'status', 'aria-live': 'polite'}, bar);
const input = html('input', {type: 'search', placeholder: 'Search  /', 'aria-label': 'Search by regular expression', spellcheck: 'false', autocomplete: 'off'}, bar);
const caseButton = button(bar, 'Aa', 'Match case (Ctrl-I)', toggleCase);
const unitButton = button(bar, unit ? 'Calls' : 'Time', 'What width is: time or calls (u)', switchUnit);
if (data.measures !== BOTH) unitButton.remove();
const colorButton = button(bar, '', 'What colours are (c)', nextColors);
const flipButton = button(bar, '\u21c5', 'Grow up or down (i)', flip);
const resetButton = button(bar, 'Reset', 'Zoom out to all (Home)', () => zoom(0));
const helpButton = button(bar, '?', 'Keys and mouse (?)', toggleHelp);
helpButton.setAttribute('aria-expanded', false);
caseButton.setAttribute('aria-pressed', false);
resetButton.disabled = true;

const helpBox = make('foreignObject', {id: 'helpbox'}, svg);
const help = html('div', {class: 'help', role: 'dialog', 'aria-label': 'Keys and mouse'}, helpBox);
help.hidden = true;
helpBox.style.display = 'none';
html('h2', {}, help, 'Keys and mouse');
const table = html('table', {}, help);
for (const [keys, what] of [
  ['click|Enter', 'zoom to a frame; on one above, zoom out to it'], ['Esc', 'end the search, then zoom out'],
  ['Backspace', 'zoom out by one'], ['Home', 'show all'], ['\u2191|\u2193|\u2190|\u2192', 'move to callee, caller and neighbours'],
  ['/|Ctrl-F|F3', 'search names by regular expression'], ['Ctrl-I', 'search: match case or not'],
  ['n|N', 'next and previous found frame'], ...(data.measures === BOTH ? [['u', 'width is time or calls']] : []), ['c', 'colours'],
  ['i', 'grow up or down'], ['?', 'this help'], ['legend', 'click a package to find its frames']]) {
  const row = html('tr', {}, table), left = html('td', {}, row);
  keys.split('|').forEach((k) => { html('kbd', {}, left, k); left.appendChild(document.createTextNode(' ')); });
  html('td', {}, row, what);
}
const closeButton = button(help, 'Close', 'Close', toggleHelp);

for (const entry of svg.querySelectorAll('.e[data-k]')) {
  entry.setAttribute('role', 'button');
  entry.setAttribute('tabindex', 0);
  entry.setAttribute('aria-label', 'Find ' + entry.dataset.k);
}

const frameAt = (e) => { const g = e.target.closest && e.target.closest('.f'); return g && g.node !== undefined ? g : null; };
svg.addEventListener('click', (e) => {
  keyboard = false;
  const g = frameAt(e), link = e.target.closest('#path text'), entry = e.target.closest('.e[data-k]');
  if (g) { zoom(g.node); setFocus(focused, true); }
  else if (link && link.node !== undefined) zoom(link.node);
  else if (entry) {
    const pattern = '^' + entry.dataset.k.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '\\.';
    search(query === pattern ? '' : pattern);
  }
});
svg.addEventListener('mouseover', (e) => {
  const g = frameAt(e);
  if (g) hover(g);
});
svg.addEventListener('mouseout', (e) => {
  if (!frameAt(e)) return;
  over.style.display = 'none';
  showDetails(keyboard ? focused : zoomed);
});
svg.addEventListener('focusin', showRing);
svg.addEventListener('focusout', () => { ring.style.display = 'none'; });
document.addEventListener('keydown', (e) => {
  if (e.key === 'Tab') keyboard = true;
  onKey(e);
});
let typingTimer = 0;
input.addEventListener('input', () => {
  clearTimeout(typingTimer);
  typingTimer = setTimeout(() => search(input.value), COUNT > 50000 ? 200 : 60);
});
addEventListener('scroll', () => { pin(); noteRoot(); }, {passive: true});
// Who looks at the root goes on doing so: a window often gets its size after the file was opened.
addEventListener('resize', () => {
  const rooted = atRoot;
  measure();
  draw();
  if (rooted) toRoot();
});
addEventListener('hashchange', recall);
addEventListener('popstate', recall);

nameColors();
place();
measure();
draw();
showDetails(0);
if (location.hash.length > 1) recall();
toRoot();
