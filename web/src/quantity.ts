// SPDX-License-Identifier: Apache-2.0
// Values of counters with their units.

import { count } from './time';

const STEPS: [number, string][] = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
const PARTS: Record<string, number> = { '\u00d7 10\u207b\u00b3': 1e3, '\u00d7 10\u207b\u2076': 1e6, '\u00d7 10\u207b\u2079': 1e9 };

/** "2.400 GHz": Hz and bytes get a prefix; "1,234" and "99.5645" for others, which the server sends in the parts that make all of them whole. */
export function quantity(value: number, unit: string): string {
  if (PARTS[unit]) return quantity(value / PARTS[unit], '');
  const [, prefix, base] = /^(k?)(Hz|B)$/.exec(unit) ?? [];
  if (base === undefined) return `${Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(6)))}${unit ? ` ${unit}` : ''}`;
  const plain = value * (prefix ? 1000 : 1), [scale, letter] = STEPS.find(([s]) => Math.abs(plain) >= s) ?? [1, ''];
  return `${letter ? (plain / scale).toFixed(3) : String(plain)} ${letter}${base}`;
}

/** "3 kHz", or "3 kHz to 5 kHz" for a range of values. */
export function quantities(least: number, most: number, unit: string): string {
  return least === most ? quantity(most, unit) : `${quantity(least, unit)} to ${quantity(most, unit)}`;
}
