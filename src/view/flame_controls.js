/* SPDX-License-Identifier: Apache-2.0 */
// The flame graph in a browser: what the reader does. Path, details, focus and keys, zoom, search, and the address.

/* ---- the path to the zoomed frame ---- */

const MAX_PATH = 200; // more fit no window

const pathName = (n) => (n.name === '<module>' && n.module ? n.module : n.name.replace(/^.*<locals>\./, ''));

function drawPath() {
  path.textContent = '';
  path.style.display = zoomed ? '' : 'none';
  if (!zoomed) return;
  const line = lineTo(zoomed);
  if (line.length > MAX_PATH) line.splice(1, line.length - MAX_PATH);
  let labels = line.map((i) => ({i, text: cut(pathName(nameOf(i)), 32)}));
  const wide = () => labels.reduce((n, l) => n + columns(l.text) + 3, 0) * column * 1.05 > width - 2 * PAD;
  while (labels.length > 3 && wide()) {
    const gap = labels.findIndex((l) => l.i < 0);
    if (gap < 0) labels.splice(1, 1, {i: -1, text: '\u2026'});
    else labels.splice(gap + 1, 1);
  }
  let x = PAD;
  labels.forEach((l, n) => {
    if (n) make('text', {x, y: 94, class: 'sep'}, path, '\u203a');
    x += n ? 2.2 * column : 0;
    const last = n === labels.length - 1;
    const e = make('text', {x, y: 94, class: l.i < 0 ? 'sep' : last ? 'here' : ''}, path, l.text);
    if (l.i >= 0 && !last) {
      e.setAttribute('role', 'link');
      e.setAttribute('tabindex', 0);
      e.setAttribute('aria-label', 'Zoom out to ' + nameOf(l.i).full);
      e.node = l.i;
    }
    x += e.getComputedTextLength() + column;
  });
}

/* ---- details ---- */

function describe(i) {
  const n = nameOf(i), out = [];
  out.push((data.reversed && depth[i] ? 'own time ' : 'total ').replace('time', unit ? counted[1] : 'time') +
    amount(weight(i)) + '  ' + percent(share(i)) + ' of all');
  if (depth[i] > 1 && weight(parent[i])) out.push(percent(weight(i) / weight(parent[i])) + ' of parent');
  if (zoomed && i >= zoomed && i < end[zoomed] && i !== zoomed && parent[i] !== zoomed)
    out.push(percent(weight(i) / (weight(zoomed) || 1)) + ' of zoomed');
  if (!data.reversed && i && n.layer !== REST) {
    const ns = own[0][0][i], calls = own[0][1][i];
    const ownShare = own[0][unit][i] / total[0][unit][0];
    if (data.measures !== BOTH) out.push('self ' + amount(own[0][unit][i]) + (total[0][unit][0] ? '  ' + percent(ownShare) : ''));
    else out.push('self ' + duration(ns) + (total[0][0][0] ? '  ' + percent(ns / total[0][0][0]) : ''));
    if (data.measures === BOTH) out.push(plural(calls, 'call', 'calls') + (calls > 1 ? ', ' + duration(total[0][0][i] / calls) + ' each' : ''));
  }
  if (data.diff) {
    const was = weight(i, 1);
    out.push(was ? 'other ' + amount(was) + '  ' + percent(share(i, 1)) + ' of all, change ' +
      points(100 * (share(i) - share(i, 1))) + ' points' + (isChance(i) ? ': no more than chance' : '') : 'not in the other');
  }
  return {head: n.full, file: n.file ? n.file + (n.line ? ':' + n.line : '') : '', numbers: out};
}

function showDetails(i) {
  const d = describe(i), room = width - 2 * PAD;
  const details = $('details');
  shorten(details, d.head, room);
  if (d.file && details.getComputedTextLength() + 40 < room) {
    const rest = make('tspan', {class: 'q', dx: 12, 'font-weight': 400}, details);
    shorten(rest, d.file, room - details.getComputedTextLength() - 16);
  }
  shorten($('numbers'), d.numbers.join('   \u00b7   '), room);
}

function outline(element, box, inset) {
  element.setAttribute('x', (box.x - inset).toFixed(2));
  element.setAttribute('y', rowY(depth[box.i]) - inset);
  element.setAttribute('width', Math.max(box.w - 1 + 2 * inset, 1).toFixed(2));
  element.setAttribute('height', ROW - 1 + 2 * inset);
}

function hover(g) {
  const i = g.node, box = drawn.find((b) => b.i === i);
  showDetails(i);
  outline(over, box, 0);
  over.style.display = '';
  if (!g.querySelector('title')) {
    const d = describe(i);
    g.insertBefore(make('title', {}, null, [d.head, d.file, ...d.numbers].filter(Boolean).join('\n')), g.firstChild);
  }
}

/* ---- focus and keys ---- */

function setFocus(i, really) {
  const was = elements.get(focused), g = elements.get(i);
  if (was) was.setAttribute('tabindex', -1);
  focused = i;
  if (!g) return;
  g.setAttribute('tabindex', 0);
  if (really) g.focus({preventScroll: true});
  showRing();
}

function showRing() {
  const box = drawn.find((b) => b.i === focused), g = elements.get(focused);
  const visible = keyboard && box && g === document.activeElement;
  ring.style.display = visible ? '' : 'none';
  if (!visible) return;
  for (const r of ring.children) outline(r, box, 1);
  showDetails(focused);
}

function reveal(i) {
  if (!standsAlone()) return;
  const y = rowY(depth[i]), from = scrollY + top_, to = scrollY + windowSize().h - FOOT - ROW;
  if (y < from) scrollTo(scrollX, y - top_);
  else if (y > to) scrollTo(scrollX, y - windowSize().h + FOOT + 2 * ROW);
}

const isDrawn = (i) => elements.has(i);
function child() {
  let best = -1;
  for (let i = focused + 1; i < end[focused]; i = end[i])
    if (isDrawn(i) && (best < 0 || weight(i) > weight(best))) best = i;
  return best;
}
function neighbour(step) {
  const row = drawn.filter((b) => depth[b.i] === depth[focused]).sort((a, b) => a.x - b.x);
  const at = row.findIndex((b) => b.i === focused) + step;
  return at >= 0 && at < row.length ? row[at].i : -1;
}
function go(i) {
  if (i < 0) return;
  keyboard = true;
  setFocus(i, true);
  reveal(i);
}
function nextHit(step) {
  const seen = hitList.filter(isDrawn);
  if (!seen.length) return;
  const after = seen.findIndex((i) => (step > 0 ? i > focused : i >= focused));
  const at = step > 0 ? (after < 0 ? 0 : after) : ((after < 0 ? seen.length : after) - 1 + seen.length) % seen.length;
  go(seen[at]);
}

const KEYS = {
  ArrowUp: () => go(icicle ? parent[focused] : child()),
  ArrowDown: () => go(icicle ? child() : parent[focused]),
  ArrowLeft: () => go(neighbour(-1)),
  ArrowRight: () => go(neighbour(1)),
  Home: () => { zoom(0); go(0); },
  Enter: () => { zoom(focused); go(focused); },
  ' ': () => { zoom(focused); go(focused); },
  Backspace: () => out(),
  Escape: () => (!help.hidden ? toggleHelp() : query ? search('') : out()),
  '/': () => input.select(),
  '?': () => toggleHelp(),
  n: () => nextHit(1),
  N: () => nextHit(-1),
  i: () => flip(),
  c: () => nextColors(),
  u: () => switchUnit(),
};

function out() {
  const from = zoomed;
  if (!zoomed) return;
  zoom(parent[zoomed]);
  if (keyboard) go(from);
}

function onKey(e) {
  const typing = e.target === input;
  const ctrl = e.ctrlKey || e.metaKey;
  let action = null;
  if ((ctrl && e.key === 'f' && document.activeElement !== input) || e.key === 'F3') action = () => input.select();
  else if (ctrl && e.key === 'i') action = toggleCase;
  else if (typing) action = e.key === 'Escape' ? () => { search(''); go(focused); } : e.key === 'Enter' ? () => nextHit(1) : null;
  else if (!ctrl && !e.altKey) {
    const onControl = e.target.closest && e.target.closest('button,[role=link],[role=button]');
    if (onControl && e.key === 'Enter' && onControl.namespaceURI === SVG) action = () => onControl.dispatchEvent(new MouseEvent('click', {bubbles: true}));
    else if (!onControl || !(e.key === 'Enter' || e.key === ' ')) action = KEYS[e.key];
  }
  if (!action) return;
  e.preventDefault();
  action();
}

/* ---- zoom, search and the other changes ---- */

function zoom(i, silent) {
  if (nameOf(i).layer === REST || i === zoomed) return;
  zoomed = i;
  focused = i;
  draw();
  showDetails(i);
  reveal(i);
  updateFound();
  resetButton.disabled = !zoomed;
  if (!silent) remember();
}

function search(pattern, silent) {
  query = pattern;
  if (input.value !== pattern) input.value = pattern;
  let expression = null, bad = false;
  try {
    expression = pattern ? new RegExp(pattern, matchCase ? 'u' : 'iu') : null;
  } catch (e) {
    try { expression = new RegExp(pattern, matchCase ? '' : 'i'); } catch (again) { bad = true; }
  }
  input.setAttribute('aria-invalid', bad);
  hits = holds = null;
  hitList = [];
  if (expression) mark(expression);
  updateFound(bad);
  if (hits || !pattern || bad) draw();
  if (!silent) remember();
}

function mark(expression) {
  const named = names.map((n) => n.layer !== REST && expression.test(n.full));
  hits = new Uint8Array(COUNT);
  holds = new Uint8Array(COUNT);
  for (let i = COUNT - 1; i >= 0; i--) {
    if (named[func[i]]) { hits[i] = 1; hitList.push(i); }
    if (i && (hits[i] || holds[i])) holds[parent[i]] = 1;
  }
  hitList.reverse();
}

// A found frame inside a found frame adds nothing: its time is in there already.
function found(root) {
  let sum = 0;
  for (let i = root; i < end[root];) {
    if (hits[i]) { sum += weight(i); i = end[i]; } else i++;
  }
  return sum;
}

function updateFound(bad) {
  foundText.className = bad ? 'found bad' : 'found';
  if (bad) foundText.textContent = 'no valid expression';
  else if (!hits) foundText.textContent = '';
  else {
    const all = weight(0) ? found(0) / weight(0) : 0;
    let s = percent(all) + (width < 640 ? '' : ' matched');
    // What is found above the zoomed frame holds all of it.
    let above = false;
    for (let i = parent[zoomed]; i >= 0; i = parent[i]) above = above || hits[i] === 1;
    if (zoomed && weight(zoomed)) s += ' (' + percent(above ? 1 : found(zoomed) / weight(zoomed)) + ' here)';
    foundText.textContent = s;
    foundText.title = plural(hitList.length, 'frame', 'frames') + ', ' + amount(found(0)) + ', nested ones counted once';
  }
}

function toggleCase() {
  matchCase = !matchCase;
  caseButton.setAttribute('aria-pressed', matchCase);
  search(query);
}
function flip() {
  icicle = !icicle;
  draw();
  toRoot();
}
function nextColors() {
  const all = data.diff ? ['bd', 'bm', 'bl'] : ['bm', 'bl'];
  if (colors === 'bd' && !bySelf && !data.reversed) bySelf = true;
  else {
    bySelf = false;
    colors = all[(all.indexOf(colors) + 1) % all.length];
  }
  paint();
  nameColors();
}
function nameColors() {
  colorButton.textContent = {bm: 'Module', bl: 'Layer', bd: bySelf ? 'Change of self' : 'Change of total'}[colors];
}
function switchUnit() {
  if (data.measures !== BOTH) return;
  unit = 1 - unit;
  place();
  if (!weight(zoomed)) zoomed = 0;
  unitButton.textContent = unit ? 'Calls' : 'Time';
  updateFound();
  draw();
  showDetails(zoomed);
}
function toggleHelp() {
  help.hidden = !help.hidden;
  helpBox.style.display = help.hidden ? 'none' : '';
  helpButton.setAttribute('aria-expanded', !help.hidden);
  if (help.hidden) { go(focused); return; }
  const w = Math.min(460, width - 20), y = standsAlone() ? scrollY : 0;
  helpBox.setAttribute('x', (width - w) / 2);
  helpBox.setAttribute('y', y + 60);
  helpBox.setAttribute('width', w);
  helpBox.setAttribute('height', Math.max(Math.min(470, windowSize().h - 80), 200));
  closeButton.focus();
}

/* ---- the address keeps zoom and search, so that a link shows what its sender saw ---- */

function remember() {
  const parts = new URLSearchParams();
  if (zoomed) parts.set('x', zoomed);
  if (query) parts.set('s', query);
  if (matchCase) parts.set('case', 1);
  const hash = '#' + parts;
  if (hash === (location.hash || '#')) return;
  try { history[zoomed === remembered ? 'replaceState' : 'pushState'](null, '', hash); } catch (e) { /* not in this frame */ }
  remembered = zoomed;
}
let remembered = 0;

function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const at = Number(parts.get('x') || 0);
  matchCase = parts.has('case');
  caseButton.setAttribute('aria-pressed', matchCase);
  if ((parts.get('s') || '') !== query) search(parts.get('s') || '', true);
  remembered = Number.isInteger(at) && at > 0 && at < COUNT ? at : 0;
  zoom(remembered, true);
}

function toRoot() {
  if (standsAlone()) scrollTo(0, icicle ? 0 : height);
  pin();
  noteRoot();
}

let atRoot = true, windowHeight = 0;
// A resize scrolls too, and comes before its event: that is no one leaving the root.
function noteRoot() {
  const h = windowSize().h, end = icicle ? scrollY < ROW : scrollY + h > height - ROW;
  if (h === windowHeight || end) atRoot = end;
  windowHeight = h;
}
