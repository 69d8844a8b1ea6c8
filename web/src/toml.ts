// SPDX-License-Identifier: Apache-2.0
// The lines of a section of a TOML file, as far as the dialog can write them again: texts of one line, numbers, true and
// false, arrays and inline tables. Comments, dotted keys and all else are not read, because they would be lost.

export interface Scalar { text: string; quoted: boolean } // of a number: its digits; of true and false: 1 and 0, as for krait
export type Value = Scalar | Value[] | Table;
export type Table = Map<string, Value>;

const SPACE = /[ \t]*/y, GAP = /\s*/y, NAME = /[\w-]+/y, TEXT = /"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y;
const NUMBER = /[+-]?\d+(?:_\d+)*(?:\.\d+(?:_\d+)*)?(?:[eE][+-]?\d+)?/y, TRUTH = /true|false/y, LINE = /[ \t]*(?:\r?\n\s*|$)/y;

class Wrong extends Error {}

/** A text of TOML: if possible between single quotes, where nothing is escaped. */
export function quoted(text: string): string {
  if (!/['\x00-\x1f\x7f]/.test(text)) return `'${text}'`;
  const escaped = text.replace(/[\\"]/g, '\\$&').replace(/[\x00-\x1f\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return `"${escaped}"`;
}

/** undefined: TOML has escapes that JSON does not know. */
export function unquoted(text: string): string | undefined {
  if (text[0] === "'") return text.slice(1, -1);
  if (text[0] !== '"') return text;
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}

/** A key of TOML, or the name of a section: quoted if it has to be. */
export function keyText(name: string): string {
  return /^[\w-]+$/.test(name) ? name : quoted(name);
}

class Reader {
  private at = 0;

  constructor(private text: string) {}

  /** All pairs of a key and a value, a line each. */
  pairs(): Table {
    const table: Table = new Map();
    this.skip(GAP);
    while (this.at < this.text.length) {
      this.pair(table);
      if (this.take(LINE) === undefined) throw new Wrong();
    }
    return table;
  }

  private pair(table: Table): void {
    const bare = this.take(NAME), key = bare ?? this.quotedText();
    this.skip(SPACE);
    if (key === undefined || table.has(key) || !this.has('=')) throw new Wrong();
    this.skip(SPACE);
    table.set(key, this.value());
  }

  private value(): Value {
    const text = this.quotedText();
    if (text !== undefined) return { text, quoted: true };
    if (this.has('[')) return this.array();
    if (this.has('{')) return this.inline();
    const truth = this.take(TRUTH), number = truth ?? this.take(NUMBER);
    if (number === undefined) throw new Wrong();
    return { text: truth ? String(Number(truth === 'true')) : number.replace(/_|^\+/g, ''), quoted: false };
  }

  private array(): Value[] {
    const items: Value[] = [];
    for (this.skip(GAP); !this.has(']'); this.skip(GAP)) {
      items.push(this.value());
      this.skip(GAP);
      if (!this.has(',') && this.text[this.at] !== ']') throw new Wrong();
    }
    return items;
  }

  private inline(): Table {
    const table: Table = new Map();
    for (this.skip(SPACE); !this.has('}'); this.skip(SPACE)) {
      this.pair(table);
      this.skip(SPACE);
      if (!this.has(',') && this.text[this.at] !== '}') throw new Wrong();
    }
    return table;
  }

  private quotedText(): string | undefined {
    const raw = this.take(TEXT), text = raw === undefined ? undefined : unquoted(raw);
    if (raw !== undefined && text === undefined) throw new Wrong();
    return text;
  }

  private take(what: RegExp): string | undefined {
    what.lastIndex = this.at;
    const found = what.exec(this.text)?.[0];
    this.at += found?.length ?? 0;
    return found;
  }

  private skip(what: RegExp): void {
    this.take(what);
  }

  private has(sign: string): boolean {
    const found = this.text[this.at] === sign;
    if (found) this.at++;
    return found;
  }
}

/** The keys and values of lines; null: there is something that the dialog cannot write again. */
export function readPairs(lines: string): Table | null {
  try {
    return new Reader(lines).pairs();
  } catch (error) {
    if (error instanceof Wrong) return null;
    throw error;
  }
}
