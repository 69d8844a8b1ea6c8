// SPDX-License-Identifier: Apache-2.0
// Conditions on the fields of an event, as the reader types them and as a TOML file has them (docs/analyses.md):
//
//   prio < 100, comm = python* | "the cook"        { prio = '< 100', comm = ['python*', 'the cook'] }

import { Scalar, Table, Value, keyText, quoted } from './toml';

interface Condition { part: string; op: string; values: string[] }

const PART = /\s*("(?:[^"\\]|\\.)*"|[^\s"=!<>,|]+)\s*/y, OP = /(!=|<=|>=|==|=|<|>)\s*/y, VALUE = /("(?:[^"\\]|\\.)*"|[^\s",|=!<>][^",|=!<>]*)\s*/y;
const WHOLE = /^(?:0|-?[1-9]\d{0,17})$/, SIGN = /^(!=|<=|>=|==|<|>)/;
const HOW = 'Write a field, one of = != < <= > >=, and a value; commas between conditions: prio < 100, comm = python*';

export class ConditionError extends Error {}

function unescaped(text: string): string {
  if (text[0] !== '"') return text.trim();
  try {
    return JSON.parse(text) as string;
  } catch {
    throw new ConditionError(`${text} has a backslash before a character that needs none.`);
  }
}

class Reader {
  private at = 0;

  constructor(private text: string) {}

  all(): Condition[] {
    const found: Condition[] = [];
    do found.push(this.one());
    while (this.has(','));
    if (this.at < this.text.length) throw new ConditionError(HOW);
    return found;
  }

  private one(): Condition {
    const part = unescaped(this.take(PART)), given = this.take(OP), values: string[] = [];
    do {
      while (this.text[this.at] === ' ') this.at++;
      values.push(unescaped(this.take(VALUE)));
    } while (this.has('|'));
    return { part, op: given === '==' ? '=' : given, values };
  }

  private take(what: RegExp): string {
    what.lastIndex = this.at;
    const found = what.exec(this.text);
    if (!found) throw new ConditionError(HOW);
    this.at += found[0].length;
    return found[1];
  }

  private has(sign: string): boolean {
    const found = this.text[this.at] === sign;
    if (found) this.at++;
    return found;
  }
}

function check({ part, op, values }: Condition, before: Condition[]): void {
  if (before.some((each) => each.part === part)) throw new ConditionError(`${part} has two conditions; only one is possible.`);
  if (/[<>]/.test(op) && (values.length > 1 || !/\d/.test(values[0]) || Number.isNaN(Number(values[0])))) throw new ConditionError(`${op} compares with one number.`);
  if (op !== '=' && /^\s/.test(values[0])) throw new ConditionError(`After ${op}, a value cannot begin with a space.`);
}

function valueToml(op: string, value: string, i: number): string {
  if (op !== '=' && i === 0) return quoted(`${op} ${value}`);
  if (i === 0 && SIGN.test(value)) return quoted(`==${value}`);
  return WHOLE.test(value) ? value : quoted(value);
}

/** The value of `where`; a ConditionError says what is wrong. */
export function conditionsToml(text: string): string {
  const all = new Reader(text.trim()).all();
  all.forEach((each, i) => check(each, all.slice(0, i)));
  return `{ ${all.map(({ part, op, values }) => {
    const made = values.map((value, i) => valueToml(op, value, i));
    return `${keyText(part)} = ${made.length > 1 ? `[${made.join(', ')}]` : made[0]}`;
  }).join(', ')} }`;
}

function valueText(value: string): string {
  return /^[^\s",|=!<>](?:[^",|=!<>]*[^\s",|=!<>])?$/.test(value) ? value : JSON.stringify(value);
}

/** The same as the reader types it; null: it is more than that. */
export function conditionsText(where: Value): string | null {
  if (!(where instanceof Map) || !where.size) return null;
  const all: string[] = [];
  for (const [part, value] of where as Table) {
    const items = value instanceof Array ? value : [value];
    if (!items.length || items.some((item) => item instanceof Array || item instanceof Map)) return null;
    const texts = (items as Scalar[]).map((item) => item.text), sign = SIGN.exec(texts[0])?.[0];
    if (sign) texts[0] = texts[0].slice(sign.length).replace(/^ +/, '');
    all.push(`${/^[^\s"=!<>,|]+$/.test(part) ? part : JSON.stringify(part)} ${!sign || sign === '==' ? '=' : sign} ${texts.map(valueText).join(' | ')}`);
  }
  return all.join(', ');
}
