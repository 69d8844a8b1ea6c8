// SPDX-License-Identifier: Apache-2.0
import { stepWords } from '../src/model';
import { countTicks } from '../src/panels/histogram';
import { foundText } from '../src/panels/finder';
import { leastWidth } from '../src/table';
import { equal, test } from './harness';

test('the finder says that it has steps of generators, not whole lives', () => {
  const calls = [1, 2, 3];
  equal(foundText({ matched: 3, cut: 0, resumed: 0, calls }, false, null), '3 calls in the range. Drag over the histogram to choose a part.');
  equal(foundText({ matched: 2000, cut: 0, resumed: 1999, calls }, true, [1000, 2000]), '2,000 steps of 1.000 us to 2.000 us in the range; the 3 slowest are listed. Each is a step of a generator or coroutine, '
    + 'from its call or a resume to the next yield or its end, not its whole life; 1 of them is a first step. Drag over the histogram to choose a part.');
});

test('a step has the words of its begin and end, a call none', () => {
  equal([stepWords({ begins: 0, ends: 4 }), stepWords({ begins: 0, ends: 5 }), stepWords({ begins: 1, ends: 5 }), stepWords({ begins: 2, ends: 6 })], ['', 'call to yield', 'resume to yield', 'throw to exception']);
});

test('the histogram says how many its bars are', () => {
  equal(countTicks(6340, 106), [6340, 1000, 100, 10]);
  equal(countTicks(1, 70), [1]);
  equal(countTicks(6, 70), [6, 1]);
});

test('a table knows how wide its columns are at least', () => {
  equal(leastWidth(['80px', 'minmax(120px, 1fr)', 'minmax(60px, 110px)']), 80 + 120 + 60 + 20 + 24);
});
