// SPDX-License-Identifier: Apache-2.0
import { fieldsText, valueText } from '../src/panels/events';
import { equal, test } from './harness';

test('fields are names and values, enumerations their labels', () => {
  equal(fieldsText({ fd: 3, name: 'a"b', list: [1, 2], of: { x: true } }), 'fd = 3, name = "a\\"b", list = [1, 2], of = { x = true }');
  equal(valueText({ value: 1139, label: 'app.main' }), 'app.main');
  equal(valueText({ value: 7, label: null }), '7');
  equal(valueText('-960000000000000000'), '-960000000000000000');
  equal(fieldsText(undefined), '');
});
