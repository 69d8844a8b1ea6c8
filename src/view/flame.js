/* SPDX-License-Identifier: Apache-2.0 */
// The flame graph in a browser. It redraws from the data (see flame_data.c) whenever zoom, width, colours or search
// change; the frames that were there before any script are replaced. Embedded as it stands: no modules, no build.
'use strict';
(() => {
const SVG = 'http://www.w3.org/2000/svg', HTML = 'http://www.w3.org/1999/xhtml';
const $ = (id) => document.getElementById(id);
const svg = $('flame');
const data = JSON.parse($('data').textContent);
const ROW = data.row, PAD = data.pad, FOOT = data.foot, REST = 3, OTHERS = 12;
const MAX_DRAWN = 12000, MAX_MIN = 32; // frames; pixels up to which narrow ones are given up for that

/* ---- the graph: columns by node, in preorder ---- */

const FIELDS = 7; // a name: name, module, file, line, layer, hue, shade
const text = (id) => data.strings[id];
const nameOf = (i) => names[func[i]];
const names = [];
for (let i = 0; i < data.names.length; i += FIELDS) {
  const [name, module, file, line, layer, hue, shade] = data.names.slice(i, i + FIELDS);
  names.push({name: text(name), module: text(module), file: text(file), line, layer, hue, shade});
}
for (const n of names) n.full = n.module ? n.module + '.' + n.name : n.name;

const func = [0], parent = [-1], depth = [0];
const own = [[[0], [0]], [[0], [0]]]; // [side][unit]: own ns, own calls
const chance = [0]; // 1 where the change is no more than chance
const total = [[[], []], [[], []]];

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const digit = new Uint8Array(128);
for (let i = 0; i < 64; i++) digit[DIGITS.charCodeAt(i)] = i;

function decode(tree) {
  let at = 0, last = 0;
  const number = () => {
    let n = 0, scale = 1, d;
    do {
      d = digit[tree.charCodeAt(at++)];
      n += (d & 31) * scale;
      scale *= 32;
    } while (d > 31);
    return n;
  };
  while (at < tree.length) {
    for (let up = number(); up > 0; up--) last = parent[last];
    const i = parent.length;
    parent.push(last);
    depth.push(depth[last] + 1);
    func.push(number());
    for (let side = 0; side <= data.diff; side++)
      for (let unit = 0; unit < 2; unit++) own[side][unit].push(number());
    if (data.judged) chance.push(number());
    last = i;
  }
}
decode(data.tree);
const COUNT = parent.length;
const end = new Int32Array(COUNT); // the node after a node and all below it
const start = new Float64Array(COUNT); // what lies left of a node, in the unit of width

function addUp() {
  for (let side = 0; side <= data.diff; side++)
    for (let unit = 0; unit < 2; unit++) {
      const sum = Float64Array.from(own[side][unit]);
      for (let i = COUNT - 1; i > 0; i--) sum[parent[i]] += sum[i];
      total[side][unit] = sum;
    }
  for (let i = COUNT - 1; i >= 0; i--) {
    end[i] = Math.max(end[i], i + 1);
    if (i) end[parent[i]] = Math.max(end[parent[i]], end[i]);
  }
}
addUp();

/* ---- what can be changed; `view` is what the address keeps ---- */

let unit = data.unit, width = data.width, icicle = !!data.icicle, bySelf = false;
let colors = data.diff ? 'bd' : data.layers ? 'bl' : 'bm';
let zoomed = 0, focused = 0, keyboard = false;
let query = '', matchCase = false, hits = null, holds = null, hitList = [];
let rows = 1, shownRows = 1, top_ = data.top, height = 0;
let drawn = [], elements = new Map();

const weight = (i, side = 0) => total[side][unit][i];
const share = (i, side = 0) => (weight(0, side) ? weight(i, side) / weight(0, side) : 0);

function place() {
  const next = new Float64Array(COUNT);
  for (let i = 1; i < COUNT; i++) {
    const p = parent[i];
    start[i] = next[p];
    next[i] = next[p];
    next[p] += weight(i);
  }
}

/* ---- numbers as people read them; the twins of flame_text.c ---- */

const NARROW = '\u202f';
const scaled = (x, u) => x.toFixed(x < 9.995 ? 2 : x < 99.95 ? 1 : 0) + NARROW + u;
function duration(ns) {
  if (ns < 1000) return Math.round(ns) + NARROW + 'ns';
  if (ns < 999.5e3) return scaled(ns / 1e3, '\u00b5s');
  if (ns < 999.5e6) return scaled(ns / 1e6, 'ms');
  return scaled(ns / 1e9, 's');
}
const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ',');
const plural = (n, one, many) => count(n) + ' ' + (n === 1 ? one : many);
const percent = (s) => (s * 100).toFixed(s && s < 0.00995 ? 2 : 1) + NARROW + '%';
const amount = (n) => (unit ? plural(n, 'call', 'calls') : duration(n));
const points = (x) => (x < 0 ? '\u2212' : '+') + Math.abs(x).toFixed(2);

/* ---- drawing ---- */

function make(tag, attributes, parentElement, content) {
  const e = document.createElementNS(SVG, tag);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (content !== undefined) e.textContent = content;
  if (parentElement) parentElement.appendChild(e);
  return e;
}

// Wide characters of East Asia and emoji take two columns.
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]|[\ud840-\ud8ff][\udc00-\udfff]/;
const PLAIN = /^[\x20-\x7e]*$/;
const columns = (s) => (PLAIN.test(s) ? s.length : Array.from(s).reduce((n, c) => n + (WIDE.test(c) ? 2 : 1), 0));
let column = 6.65;

function cut(s, room) {
  if (columns(s) <= room) return s;
  let n = 0, out = '';
  for (const c of s) {
    n += WIDE.test(c) ? 2 : 1;
    if (n > room - 1) break;
    out += c;
  }
  return out + '\u2026';
}

function label(element, name, room) {
  if (name.module && columns(name.full) <= room) {
    make('tspan', {class: 'q'}, element, name.module + '.');
    element.appendChild(document.createTextNode(name.name));
    return;
  }
  const long = name.module && name.name === '<module>' ? name.module : name.name;
  const last = long.slice(long.lastIndexOf('.') + 1);
  element.textContent = cut(columns(long) <= room ? long : last || long, room);
}

const isChance = (i) => chance[i] && unit === data.unit && !bySelf; // what is judged is a frame's share of all

// A change that is small beside the frame itself is noise.
function diffClass(i) {
  const ownShare = (side) => (weight(0, side) ? own[side][unit][i] / weight(0, side) : 0);
  const now = bySelf ? ownShare(0) : share(i), was = bySelf ? ownShare(1) : share(i, 1);
  const change = 100 * (now - was), big = Math.abs(change) >= 100 * data.noise * Math.max(now, was);
  const size = big && !isChance(i) ? data.steps.filter((step) => Math.abs(change) >= step).length : 0;
  return data.steps.length + (change < 0 ? -size : size);
}

function frameClass(i) {
  const n = nameOf(i);
  let c = 'f l' + 'pcgr'[n.layer] + ' s' + n.shade;
  if (n.layer < 2) c += ' m' + n.hue;
  if (data.diff) c += ' d' + diffClass(i);
  if (i < zoomed && end[i] > zoomed) c += ' above';
  if (hits && hits[i]) c += ' hit';
  else if (holds && holds[i]) c += ' holds';
  return c;
}

const rowY = (d) => top_ + (icicle ? d : rows - 1 - d) * ROW;

// The frames from the outermost to this one.
function lineTo(i) {
  const line = [];
  for (; i >= 0; i = parent[i]) line.push(i);
  return line.reverse();
}

// Which frames are wide enough to be drawn, and for each parent the stretches of those that are not.
function choose(min) {
  const scale = (width - 2 * PAD) / (weight(zoomed) || 1), chosen = [], specks = [];
  for (const i of lineTo(parent[zoomed])) chosen.push({i, x: PAD, w: width - 2 * PAD});
  let run = null;
  for (let i = zoomed; i < end[zoomed];) {
    const x = PAD + (start[i] - start[zoomed]) * scale, w = weight(i) * scale;
    if (w >= min || i === zoomed) {
      chosen.push({i, x, w: i === zoomed ? width - 2 * PAD : w});
      i++;
      continue;
    }
    const hit = hits && (hits[i] || holds[i]);
    if (run && run.parent === parent[i] && !run.hit === !hit) run.w = x + w - run.x;
    else specks.push(run = {parent: parent[i], depth: depth[i], x, w, hit});
    i = end[i];
  }
  return {chosen, specks: specks.filter((s) => s.w >= 0.7 || (s.hit && s.w > 0))};
}

// No more than can be drawn: the widest, and of a recursion that is still deeper what is nearest to the zoomed frame.
function choosePossible() {
  let min = data.min, picked = choose(min);
  while (picked.chosen.length > MAX_DRAWN && min < MAX_MIN) picked = choose(min = Math.max(min, 0.1) * 1.5);
  if (picked.chosen.length <= MAX_DRAWN) return picked;
  const rowsAway = ({i}) => Math.abs(depth[i] - depth[zoomed]);
  picked.chosen = picked.chosen.sort((a, b) => rowsAway(a) - rowsAway(b)).slice(0, MAX_DRAWN).sort((a, b) => a.i - b.i);
  return picked;
}

function drawFrame(group, {i, x, w}) {
  const name = nameOf(i), roomy = w > 4, y = rowY(depth[i]);
  const g = make('g', {class: frameClass(i), role: 'treeitem', tabindex: i === focused ? 0 : -1, 'aria-level': depth[i] + 1}, group);
  g.node = i;
  g.setAttribute('aria-label', name.full + ', ' + percent(share(i)) + ' of all, ' + amount(weight(i)));
  const r = make('rect', {x: x.toFixed(2), y, width: Math.max(roomy ? w - 1 : w * 0.8, 0.2).toFixed(2), height: ROW - 1}, g);
  if (roomy) r.setAttribute('rx', 2);
  const room = Math.floor((w - 9) / column);
  if (room >= 3) label(make('text', {x: (x + 4).toFixed(2), y: y + 12.5}, g), name, room);
  elements.set(i, g);
}

function drawSpecks(group, specks) {
  for (const hit of [false, true]) {
    const d = specks.filter((s) => !!s.hit === hit).map((s) =>
      `M${s.x.toFixed(1)},${rowY(s.depth)}h${Math.max(s.w - 0.4, 0.6).toFixed(1)}v${ROW - 1}h-${Math.max(s.w - 0.4, 0.6).toFixed(1)}z`);
    if (d.length) make('path', {class: hit ? 'specks hit' : 'specks', d: d.join('')}, group);
  }
}

function windowSize() {
  return {w: document.documentElement.clientWidth || innerWidth, h: innerHeight || 600};
}

const standsAlone = () => document.documentElement === svg || (window.parent === window && svg.parentNode === document.body);

function measure() {
  if (!data.fixed && standsAlone()) width = Math.max(windowSize().w, 320);
  top_ = data.top + (width < 900 ? 38 : 0);
  const probe = make('text', {}, make('g', {class: 'f'}, svg), 'mmmmmmmmmmmmmmmmmmmm');
  const length = probe.getComputedTextLength();
  probe.parentNode.remove();
  if (length > 20) column = length / 20;
}

function resize() {
  const least = standsAlone() ? windowSize().h : 0;
  height = Math.max(top_ + rows * ROW + FOOT, data.fixed ? 0 : least);
  svg.setAttribute('width', width);
  svg.setAttribute('height', height);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  for (const ground of svg.querySelectorAll('.ground')) ground.setAttribute('width', width);
  $('ground').setAttribute('height', height);
  $('head').querySelector('.ground').setAttribute('height', top_ - 4);
  rules[0].setAttribute('d', `M0,${top_ - 4}h${width}`);
  rules[1].setAttribute('d', `M0,0h${width}`);
  fitHeader();
  pin();
}

// Title and legend give way to the controls and to the window's edge.
function fitHeader() {
  const narrow = width < 900, shift = narrow ? 38 : 0;
  controls.setAttribute('x', narrow ? PAD - 2 : width - PAD - controlsWidth() + 2);
  bar.className = width < 640 && query ? 'bar tight' : 'bar';
  controls.setAttribute('y', narrow ? 56 : 12);
  controls.setAttribute('width', narrow ? width - 2 * PAD + 4 : controlsWidth());
  for (const legend of svg.querySelectorAll('.legend')) legend.setAttribute('transform', `translate(0,${shift})`);
  fitLegend();
  const room = narrow ? width - 2 * PAD : width - 3 * PAD - controlsWidth();
  shorten($('title'), data.title, room);
  shorten($('subtitle'), subtitle, room);
  path.setAttribute('transform', `translate(0,${shift})`);
}

// As many packages as there is room for; "others" stands behind them with the share of those that found none.
function fitLegend() {
  const others = svg.querySelector('.others'), show = (e, yes) => { e.style.display = yes ? 'inline' : 'none'; };
  let end = PAD, rest = Number(others.dataset.s);
  for (const entry of svg.querySelectorAll('.by-module .e:not(.others)')) {
    const fits = Number(entry.dataset.x) <= width - PAD - 110;
    if (fits) end = Number(entry.dataset.x);
    else rest += Number(entry.dataset.s);
    show(entry, fits);
  }
  show(others, rest > 0.00005);
  others.setAttribute('transform', `translate(${end - others.firstChild.getAttribute('x')},0)`);
  others.querySelector('.q').textContent = percent(rest);
}

const controlsWidth = () => Math.min(Math.max(width * 0.46, 470) + (query ? 170 : 0), 720);

function shorten(element, s, room) {
  element.textContent = s;
  if (element.getComputedTextLength() <= room) return;
  const chars = Array.from(s);
  let low = 0, high = chars.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    element.textContent = chars.slice(0, middle).join('') + '\u2026';
    if (element.getComputedTextLength() <= room) low = middle;
    else high = middle - 1;
  }
  element.textContent = chars.slice(0, low).join('').trimEnd() + '\u2026';
}

// Head and foot stay in the window while the graph scrolls.
function pin() {
  const alone = standsAlone(), y = alone ? Math.max(scrollY, 0) : 0;
  const bottom = alone ? Math.min(y + windowSize().h, height) : height;
  $('head').setAttribute('transform', `translate(0,${y})`);
  $('foot').setAttribute('transform', `translate(0,${bottom - FOOT})`);
  const first = icicle ? top_ : top_ + (rows - shownRows) * ROW, last = icicle ? top_ + shownRows * ROW : top_ + rows * ROW;
  rules[0].style.display = alone && y + top_ > first ? '' : 'none';
  rules[1].style.display = alone && bottom - FOOT < last ? '' : 'none';
}

// A scroll bar that comes or goes changes the window's width: then once more.
function draw() {
  redraw();
  if (data.fixed || !standsAlone() || windowSize().w === width || width === 320) return;
  measure();
  redraw();
}

function redraw() {
  const picked = choosePossible();
  rows = 1;
  for (const {i} of picked.chosen) rows = Math.max(rows, depth[i] + 1);
  shownRows = rows;
  if (icicle === false && standsAlone() && !data.fixed)
    rows = Math.max(rows, Math.floor((windowSize().h - top_ - FOOT) / ROW));
  const old = $('frames'), group = make('g', {id: 'frames', role: 'tree', 'aria-label': 'Call stacks'});
  drawn = picked.chosen;
  elements = new Map();
  const had = old.contains(document.activeElement);
  for (const box of drawn) drawFrame(group, box);
  drawSpecks(group, picked.specks);
  old.replaceWith(group);
  svg.setAttribute('class', colors + (hits ? ' finding' : ''));
  resize();
  if (!elements.has(focused)) setFocus(zoomed, had);
  else setFocus(focused, had);
  drawPath();
  $('over').style.display = 'none';
}

// Search and colours change classes alone.
function paint() {
  for (const [i, g] of elements) g.setAttribute('class', frameClass(i));
  svg.setAttribute('class', colors + (hits ? ' finding' : ''));
}

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
  out.push((data.reversed && depth[i] ? 'own time ' : 'total ').replace('time', unit ? 'calls' : 'time') +
    amount(weight(i)) + '  ' + percent(share(i)) + ' of all');
  if (depth[i] > 1 && weight(parent[i])) out.push(percent(weight(i) / weight(parent[i])) + ' of parent');
  if (zoomed && i >= zoomed && i < end[zoomed] && i !== zoomed && parent[i] !== zoomed)
    out.push(percent(weight(i) / (weight(zoomed) || 1)) + ' of zoomed');
  if (!data.reversed && i && n.layer !== REST) {
    const ns = own[0][0][i], calls = own[0][1][i];
    out.push('self ' + duration(ns) + (total[0][0][0] ? '  ' + percent(ns / total[0][0][0]) : ''));
    out.push(plural(calls, 'call', 'calls') + (calls > 1 ? ', ' + duration(total[0][0][i] / calls) + ' each' : ''));
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
  ['n|N', 'next and previous found frame'], ['u', 'width is time or calls'], ['c', 'colours'],
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
})();
