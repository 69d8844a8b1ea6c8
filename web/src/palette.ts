// SPDX-License-Identifier: Apache-2.0
// Colours: of packages as in flame graphs (tools/flame_palette.py), of what threads do as in `krait view --svg`.

export const HUES = 12;
const SHADES = 3;

export interface Palette {
  dark: boolean;
  ground: string; ink: string; quiet: string; grid: string; rule: string; select: string; accent: string; lost: string; path: string; note: string;
  call(hue: number, name: number): string;
  textOn: string;
  /** From blue over grey to orange, by how much a share has changed: -1 to 1. */
  change(by: number): string;
  state(role: string): string;
  /** Of a mark of a level: marks.ts. */
  mark(level: number): string;
}

/* Apart from each other for colour-blind readers too: at least 0.05 in OKLab (web/test/palette.test.ts). */
const STATES: Record<string, [string, string]> = { // light, dark
  run: ['#419a68', '#5f9d68'], system: ['#277d80', '#368f9b'], interrupt: ['#8c73b9', '#9080c3'], ready: ['#e4a839', '#d89a2c'],
  gil: ['#c34d8d', '#d25e9f'], lock: ['#ac4946', '#ac4d4a'], disk: ['#385ac2', '#488ce8'], network: ['#51afd3', '#50abcc'],
  timer: ['#d8d5e8', '#4c4856'], child: ['#7162af', '#776ec1'], fault: ['#6c5f1a', '#977834'], stopped: ['#565664', '#807f76'],
  throttled: ['#c77a15', '#c88118'], wait: ['#b9b1ac', '#6f6d6b'], idle: ['#efece6', '#24262b'], unknown: ['#efece6', '#24262b'],
  lost: ['#b3362b', '#e0786c'], off: ['#97928c', '#5b5e66'],
};

/* As in src/view/timeline.css. Shapes tell them apart, too. */
const MARKS: [string, string][] = [['#97928c', '#807f76'], ['#277d80', '#368f9b'], ['#2d69d7', '#7aa7ff'], ['#c77a15', '#c88118'], ['#b3362b', '#e0786c'], ['#7b3fb5', '#c792ea'], ['#1c1f24', '#eceae6']];

/** All have the same lightness, so that none stands out and one text colour is readable on all. */
function oklch(light: number, chroma: number, hue: number): string {
  return `oklch(${light.toFixed(3)} ${chroma} ${hue})`;
}

function calls(dark: boolean): string[] {
  const [light, spread, chroma] = dark ? [0.435, 0.03, 0.072] : [0.86, 0.022, 0.078];
  const list: string[] = [];
  for (let hue = 0; hue <= HUES; hue++) {
    for (let shade = 0; shade < SHADES; shade++) {
      const level = light + (shade - 1) * spread;
      list.push(hue === HUES ? oklch(level, 0.012, 90) : oklch(level, chroma, 20 + hue * 360 / HUES));
    }
  }
  return list;
}

/** As in tools/flame_palette.py: darker to both ends, with the full colour at a change of 20 % of the whole. */
function changed(by: number, dark: boolean): string {
  const size = Math.sqrt(Math.min(Math.abs(by) * 5, 1));
  return size < 0.02 ? oklch(dark ? 0.4 : 0.9, 0.003, 90)
    : oklch(dark ? 0.4 + 0.13 * size : 0.9 - 0.24 * size, 0.02 + (dark ? 0.11 : 0.117) * size, by > 0 ? 38 : 250);
}

function make(dark: boolean): Palette {
  const list = calls(dark);
  return {
    dark,
    ground: dark ? '#15171b' : '#fcfbf9', ink: dark ? '#eceae6' : '#1c1f24', quiet: dark ? '#a2a7b0' : '#5c626b',
    grid: dark ? 'rgba(236,234,230,.07)' : 'rgba(28,31,36,.06)', rule: dark ? 'rgba(236,234,230,.16)' : 'rgba(28,31,36,.12)',
    select: dark ? 'rgba(110,160,255,.22)' : 'rgba(45,105,215,.16)', accent: dark ? '#7aa7ff' : '#2d69d7',
    lost: STATES.lost[dark ? 1 : 0], path: dark ? '#ff9d3c' : '#d9480f', note: dark ? '#c792ea' : '#7b3fb5', textOn: dark ? '#f2f0ec' : '#1c1f24',
    change: (by) => changed(by, dark),
    call: (hue, name) => list[Math.min(hue, HUES) * SHADES + name % SHADES],
    state: (role) => (STATES[role] ?? STATES.wait)[dark ? 1 : 0],
    mark: (level) => (MARKS[level] ?? MARKS[2])[dark ? 1 : 0],
  };
}

const palettes = [make(false), make(true)];

export function palette(dark: boolean): Palette {
  return palettes[dark ? 1 : 0];
}

/** The roles of states that the server names; others, such as the threads on a CPU, get a hue of calls. */
export function stateRole(name: string): string {
  const blocked = name.replace('blocked_', '');
  const known: Record<string, string> = {
    user: 'run', system: 'system', interrupt: 'interrupt', woken: 'ready', preempted: 'ready', page_fault: 'fault', other: 'wait', gone: 'unknown',
    'waits for the GIL': 'gil', running: 'run', queue: 'lock', socket: 'network', task: 'wait', future: 'wait', 'events lost': 'lost', 'recording off': 'off',
  };
  return known[name] ?? known[blocked] ?? blocked;
}

/** The role of a state of krait report's wall-time split. */
export function wallRole(state: string): string {
  return state === 'on_cpu' ? 'run' : state === 'runnable' ? 'ready' : stateRole(state);
}

const parsed = new Map<string, [number, number, number]>();
let painter: CanvasRenderingContext2D | null = null;

/** A colour in any notation as red, green and blue. */
export function rgb(colour: string): [number, number, number] {
  const known = parsed.get(colour);
  if (known) return known;
  painter ??= document.createElement('canvas').getContext('2d', { willReadFrequently: true }) as CanvasRenderingContext2D;
  painter.clearRect(0, 0, 1, 1);
  painter.fillStyle = colour;
  painter.fillRect(0, 0, 1, 1);
  const [r, g, b] = painter.getImageData(0, 0, 1, 1).data;
  parsed.set(colour, [r, g, b]);
  return [r, g, b];
}
