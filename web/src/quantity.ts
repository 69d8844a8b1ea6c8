// SPDX-License-Identifier: Apache-2.0
// Values of counters with their units.

import { Track } from './model';
import { count } from './time';

const STEPS: [number, string][] = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

/** "2.400 GHz": Hz and bytes get a prefix; "1,234" for others. A value in parts is divided by them, and its unit tells only their size: "99.5645". */
export function quantity(inParts: number, track: Pick<Track, 'unit' | 'parts'>): string {
  const value = inParts / track.parts, unit = track.parts > 1 ? '' : track.unit;
  const [, prefix, base] = /^(k?)(Hz|B)$/.exec(unit) ?? [];
  if (base === undefined) return `${Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(6)))}${unit ? ` ${unit}` : ''}`;
  const plain = value * (prefix ? 1000 : 1), [scale, letter] = STEPS.find(([s]) => Math.abs(plain) >= s) ?? [1, ''];
  return `${letter ? (plain / scale).toFixed(3) : String(plain)} ${letter}${base}`;
}

/** "3 kHz", or "3 kHz to 5 kHz" for a range of values. */
export function quantities(least: number, most: number, track: Pick<Track, 'unit' | 'parts'>): string {
  return least === most ? quantity(most, track) : `${quantity(least, track)} to ${quantity(most, track)}`;
}
