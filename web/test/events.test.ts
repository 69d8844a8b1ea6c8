// SPDX-License-Identifier: Apache-2.0
import { askAll, commands } from '../src/panels/events';
import { fieldsText, saidText, valueText } from '../src/said';
import { equal, test } from './harness';

test('fields are names and values, enumerations their labels', () => {
  equal(fieldsText({ fd: 3, name: 'a"b', list: [1, 2], of: { x: true } }), 'fd = 3, name = "a\\"b", list = [1, 2], of = { x = true }');
  equal(valueText({ value: 1139, label: 'app.main' }), 'app.main');
  equal(valueText({ value: 7, label: null }), '7');
  equal(valueText('-960000000000000000'), '-960000000000000000');
  equal(fieldsText(undefined), '');
});

test('commands that export a range name all folders and hold the filter as one word', () => {
  const trace = { folders: ['app', "'a b'"], origin: 1000000000n };
  equal(commands(trace, 500000000n, 1500000000n, 'name == "it\'s"'), [
    'krait cut app --from 0.500000000 --until 1.500000000 -o part',
    "krait cut 'a b' --from 0.500000000 --until 1.500000000 -o part2",
    "krait cat --json --begin 1.500000000 --end 2.499999999 --filter 'name == \"it'\\''s\"' app 'a b' > events.json",
  ]);
});

test('log records say level, logger and message', () => {
  equal(saidText({ payload: { msg: 'hello', logger_name: 'app.db', int_loglevel: 30, lineno: 4 } }), 'WARNING app.db: hello');
  equal(saidText({ payload: { level: 25, logger: { value: 3, label: 'app' }, message: 'x' } }), 'level 25 app: x');
  equal(saidText({ payload: { text: 'a', n: 2 } }), 'text = "a", n = 2');
  equal(saidText({}), '');
});

test('a page of rare events is made of as many answers as it takes, up to the end', async () => {
  const parts: Record<string, { events: number[]; next: { from: string; skip: number } | null }> = {
    0: { events: [], next: { from: '40', skip: 1 } }, 40: { events: [41], next: { from: '80', skip: 2 } }, 80: { events: [81, 82], next: null },
  };
  const asked: [string, number, number][] = [], found: number[] = [];
  const askPart = (from: bigint | string, skip: number, limit: number) => {
    asked.push([String(from), skip, limit]);
    return Promise.resolve({ ...parts[String(from)], damage: null });
  };
  const add = (answer: { events: number[] }): boolean => found.push(...answer.events) >= 0;
  await askAll(askPart, { from: 0n, skip: 0 }, 5, add);
  equal([asked, found], [[['0', 0, 5], ['40', 1, 5], ['80', 2, 4]], [41, 81, 82]]);
  asked.length = 0;
  await askAll(askPart, { from: 0n, skip: 0 }, 1, add);
  equal(asked.length, 2);
  await askAll(askPart, { from: 0n, skip: 0 }, 5, () => false);
  equal(asked.length, 3);
});
