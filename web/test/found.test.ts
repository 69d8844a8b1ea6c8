// SPDX-License-Identifier: Apache-2.0
import { Row, Rule, cellsOf, leftOver, summaryOf } from '../src/found';
import { equal, test } from './harness';

const ROW: Row = { key: null, count: 1, total: 1500, min: 1500, mean: 1500, median: 1500, p90: 1500, p99: 1500, max: 1500, deviation: 0, noKey: 0, noStop: 2, noStart: 1 };

test('numbers have units, and a dash stands where there are too few', () => {
  equal(cellsOf('interval', ROW).map(([, text]) => text), ['1', '1.500 us', '1.500 us', '1.500 us', '1.500 us', '1.500 us', '1.500 us', '1.500 us', '-']);
  equal(cellsOf('signal', { ...ROW, count: 0 }).map(([, text]) => text).join(''), '0----------');
  equal(cellsOf('signal', { ...ROW, count: 2, mean: 1.23456789, last: 5, perSecond: 0.5 }).map(([title, text]) => `${title} ${text}`).slice(8), ['std dev 0', 'last 5', 'per second 0.5']);
});

test('what did not fit is said', () => {
  equal(leftOver([ROW, { ...ROW, noKey: 3 }]), '4 without a stop, 2 without a start, 3 without the key');
  const rule: Rule = { name: 'x', kind: 'interval', rows: [{ ...ROW, noStop: 0, noStart: 0 }], transitions: [], first: [] };
  equal([summaryOf(rule, 5, 'messages'), summaryOf(rule, 5, 'calls')], ['1 interval in 5 messages', '1 interval']);
});
