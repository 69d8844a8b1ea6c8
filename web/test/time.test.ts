// SPDX-License-Identifier: Apache-2.0
import { count, duration, moment, share, tickLabel, tickStep } from '../src/time';
import { equal, test } from './harness';

test('durations have four digits and the unit that fits', () => {
  equal(duration(0), '0 ns');
  equal(duration(999), '999 ns');
  equal(duration(1000), '1.000 us');
  equal(duration(12345), '12.35 us');
  equal(duration(999999.99), '1.000 ms');
  equal(duration(123456789), '123.5 ms');
  equal(duration(61e9), '61.00 s');
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
  for (const span of [20, 137, 5e3, 9.9e6, 3.6e12, 3.2e16]) {
    const step = tickStep(span, 9);
    equal(span / step <= 9.0001, true);
    equal(['1', '2', '5'].includes(String(step).replace(/0|e\+\d+/g, '')), true);
  }
});

test('a tick has as many digits as its step', () => {
  equal(tickLabel(1500000n, 500000), '1.5 ms');
  equal(tickLabel(12000000000n, 1000000), '12.000 s');
  equal(tickLabel(40n, 20), '40 ns');
  equal(tickLabel(0n, 100000000), '0 ms');
});
