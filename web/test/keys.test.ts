// SPDX-License-Identifier: Apache-2.0
import { commands } from '../src/keys';
import { panels } from '../src/panels';
import { equal, test } from './harness';

test('a key does one thing', () => {
  const nothing = (): void => undefined, ui = { search: nothing, help: nothing, palette: nothing, theme: nothing, filter: nothing, declare: nothing };
  const keys = commands(panels, ui).flatMap((command) => command.keys);
  equal(keys.filter((key, i) => keys.indexOf(key) !== i), []);
});
