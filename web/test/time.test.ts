// SPDX-License-Identifier: Apache-2.0
import { clock, count, duration, logLabel, logTicks, moment, share, tickLabel, tickLabels, tickStep } from '../src/time';
import { equal, test } from './harness';

test('durations have four digits and the unit that fits', () => {
  equal(duration(0), '0 ns');
  equal(duration(999), '999 ns');
  equal(duration(1000), '1.000 us');
  equal(duration(12345), '12.35 us');
  equal(duration(999999.99), '1.000 ms');
  equal(duration(123456789), '123.5 ms');
  equal(duration(61e9), '61.00 s');
  equal(duration(599.9e9), '599.9 s');
  equal(duration(601e9), '10.02 min');
  equal(duration(3 * 3600e9), '3.00 h');
  equal(duration(116 * 86400e9), '116.00 d');
});

test('moments have every nanosecond, also those that a double does not hold', () => {
  equal(moment(31536000000000001n), '31536000.000000001 s');
  equal(moment(-1n), '-0.000000001 s');
});

test('shares are of a whole, and the least is not nothing', () => {
  equal(share(1, 3), '33.3%');
  equal(share(1, 1e9), '<0.1%');
  equal(share(0, 5), '0%');
  equal(share(5, 0), '');
});

test('counts are grouped', () => {
  equal(count(1234567), '1,234,567');
  equal(count(12), '12');
});

test('ticks are 1, 2 or 5 times a power of ten, and there are not too many', () => {
  for (const span of [20, 137, 5e3, 9.9e6, 8.9e9, 3.6e12, 3.2e16]) {
    const step = tickStep(span, 9);
    equal(span / step <= 9.0001, true);
    if (step <= 1e9) equal(['1', '2', '5'].includes(String(step).replace(/0|e\+\d+/g, '')), true);
  }
});

test('from seconds on, ticks divide time as clocks and calendars do', () => {
  equal([20e9, 100e9, 600e9, 3600e9, 7200e9, 86400e9, 5 * 86400e9, 200 * 86400e9].map((span) => tickStep(span, 9) / 1e9), [5, 20, 120, 600, 1200, 10800, 86400, 50 * 86400]);
  equal(tickLabel(320000000000n, 20e9), '5m 20s');
  equal(tickLabel(300000000000n, 20e9), '5m 00s');
  equal(tickLabel(9960000000000n, 120e9), '2h 46m');
  equal(tickLabel(9957600000000000n, 21600e9), '115d 06h');
  equal(tickLabel(9936000000000000n, 86400e9), '115d');
  equal(tickLabel(9957600123456789n, 1000), '115d 06h 00m 00.123456s');
  equal(tickLabel(40000000000n, 20e9), '40 s');
  equal([clock(59999999999n), clock(872400000000000n)], ['', '10d 02h 20m 00s']);
});

test('a logarithmic axis has powers of ten, minutes, hours and days', () => {
  equal(logTicks(1e6, 5e12).map(logLabel), ['1 ms', '10 ms', '100 ms', '1 s', '10 s', '1 m', '10 m', '1 h']);
  equal(logTicks(1e9, 70e9, 0.2).map(logLabel), ['1 s', '2 s', '5 s', '10 s', '20 s', '50 s', '1 m']);
  equal(logTicks(3600e9, 50 * 86400e9, 0.2).map(logLabel), ['1 h', '2 h', '5 h', '10 h', '20 h', '1 d', '2 d', '5 d', '10 d', '20 d', '50 d']);
});

test('a tick has as many digits as its step', () => {
  equal(tickLabel(1500000n, 500000), '1.5 ms');
  equal(tickLabel(12000000000n, 1000000), '12.000 s');
  equal(tickLabel(40n, 20), '40 ns');
  equal(tickLabel(0n, 100000000), '0 ms');
});

test('ticks have no labels where another text stands, where they would overlap, or behind the end', () => {
  const drawn: string[] = [], context = { measureText: (text: string) => ({ width: 10 * text.length }) as TextMetrics, fillText: (text: string) => { drawn.push(text); } };
  const ticks: [number, string][] = [[0, 'aaa'], [20, 'bbb'], [50, 'ccc'], [100, 'ddd'], [150, 'eee']];
  const labels = (...rest: [number?, [number, number]?]): string => {
    drawn.length = 0;
    tickLabels(context, ticks, 0, ...rest);
    return drawn.join(' ');
  };
  equal(labels(), 'aaa ccc ddd eee');
  equal(labels(170), 'aaa ccc ddd');
  equal(labels(Infinity, [79, 120]), 'aaa eee');
  equal(labels(Infinity, [80, 100]), 'aaa ccc ddd eee');
});
