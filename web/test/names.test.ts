// SPDX-License-Identifier: Apache-2.0
import { fittingWidth } from '../src/names';
import { Named } from '../src/lanes';
import { equal, test } from './harness';

const lane = (width: number): Named => ({ title: 'x'.repeat(width), hint: '', level: 1 }), width = ({ title }: Named): number => title.length;

test('the column is as wide as its widest name, but neither narrow nor a great share of the page', () => {
  equal(fittingWidth([lane(300), lane(350)], 2560, width), 350);
  equal(fittingWidth([lane(30)], 2560, width), 220);
  equal(fittingWidth([], 2560, width), 220);
  equal(fittingWidth([lane(900)], 2560, width), 512);
  equal(fittingWidth([lane(900)], 800, width), 220);
});
