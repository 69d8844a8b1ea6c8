/* SPDX-License-Identifier: Apache-2.0 */
// The flame graph in a browser: data, state and drawing. It redraws from the data (see flame_data.c) whenever zoom, width,
// colours or search change; the frames that were there before any script are replaced.
//
// The build joins flame.js, flame_controls.js and flame_page.js, and flame_svg.c embeds them in one function: no modules.
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
const TIMES = [[999.5e3, 1e3, '\u00b5s'], [999.5e6, 1e6, 'ms'], [600e9, 1e9, 's'], [5400e9, 60e9, 'min'], [360000e9, 3600e9, 'h'], [Infinity, 86400e9, 'd']];
function duration(ns) {
  if (ns < 1000) return Math.round(ns) + NARROW + 'ns';
  const [, size, unit] = TIMES.find(([below]) => ns < below);
  return scaled(ns / size, unit);
}
const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ',');
const plural = (n, one, many) => count(n) + ' ' + (n === 1 ? one : many);
const percent = (s) => (s * 100).toFixed(s && s < 0.00995 ? 2 : 1) + NARROW + '%';
const BOTH = 0, SAMPLES = 2; // data.measures: what frames have
const counted = data.measures === SAMPLES ? ['sample', 'samples'] : ['call', 'calls'];
const amount = (n) => (unit ? plural(n, ...counted) : duration(n));
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
  element.textContent = cut(columns(long) <= room ? long : symbols.brief(long), room);
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

// So it does in a frame that was made for it alone, of a page that has more than it.
const isFramed = () => window.parent !== window && location.href !== 'about:srcdoc';
const standsAlone = () => document.documentElement === svg || (!isFramed() && svg.parentNode === document.body);

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
