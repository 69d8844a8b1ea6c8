// SPDX-License-Identifier: Apache-2.0
import { shorten, shortenMiddle } from '../src/shorten';
import { equal, test } from './harness';

const short = (text: string, width: number): string => shortenMiddle(text, width, (part) => [...part].length);

test('a name that is too long keeps its begin and its end', () => {
  equal(short('oven', 4), 'oven');
  equal(short('the state of the oven 1', 11), 'the s\u2026ven 1');
  equal(short('the state of the oven 2', 11), 'the s\u2026ven 2');
  equal(short('the oven of the state', 10), 'the\u2026state'); // no blank beside the dots
});

test('a name is not cut within a letter, and keeps something however narrow its place is', () => {
  equal(short('\u{1f525}'.repeat(9), 5), `${'\u{1f525}'.repeat(2)}\u2026${'\u{1f525}'.repeat(2)}`);
  equal(short('the state', 1), 't\u2026e');
});

test('a function keeps what says most of its name', () => {
  equal(shorten('json.encoder.JSONEncoder.default', 7), 'default');
  equal(shorten('json.encoder.JSONEncoder.default', 5), 'defa\u2026');
  equal(shorten('libz.so.1.2.13+0x5d80', 20), 'libz+0x5d80');
  equal(shorten('libz.so.1.2.13+0x5d80 (C)', 20), 'libz+0x5d80 (C)');
  equal(shorten('libz.so.1.2.13+0x5d80', 8), 'libz+0x\u2026');
  equal(shorten('libpython3.11.so.1.0+0x4970', 21), 'libpython3.11+0x4970');
  equal(shorten('_multiarray_umath.cpython-311-x86_64-linux-gnu.so+0x1f0', 30), '_multiarray_umath+0x1f0');
  equal(shorten('long_add.isra.0', 10), 'long_add.\u2026');
  equal(shorten('_PyEval_EvalFrameDefault.cold', 10), '_PyEval_E\u2026');
});
