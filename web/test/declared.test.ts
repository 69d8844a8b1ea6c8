// SPDX-License-Identifier: Apache-2.0
import { Definition, complaintOf, definitionText, fileText, freeName, messageOf, patternsOf, quoted, readFile, withDefinition, without } from '../src/declared';
import { equal, test } from './harness';

const ORDER: Definition = { kind: 'interval', name: 'order', values: { start: 'order (?P<key>\\d+) is taken', stop: "it's \"sent\"\t", pairing: 'nested' } };
const OVEN: Definition = { kind: 'state', name: 'the oven', values: { message: 'oven is (\\w+)' } };

test('a definition is read as it was written', () => {
  equal(definitionText(ORDER), "[interval.order]\nstart = 'order (?P<key>\\d+) is taken'\nstop = \"it's \\\"sent\\\"\\u0009\"\npairing = 'nested'\n");
  const file = withDefinition(withDefinition(readFile(''), ORDER, null), OVEN, null), read = readFile(fileText(file));
  equal(read.sections.map((section) => section.made), [ORDER, OVEN]);
  equal(fileText(read), fileText(file));
});

test('what was written by hand stays, to the letter', () => {
  const text = 'about = "mine" # of us\n\n# the first\n[interval.a]   # here\nstart = { event = "x" }\nstop = \'\'\'\n[interval.no]\n\'\'\'\n\n[[state.s]]\nevent = "a"\n[[state.s]]\nevent = "b"\n[signal.n]\nmessage = \'(\\d+)\'\n# the end\n';
  const file = readFile(text), hand = file.sections[0];
  equal(file.sections.map((section) => [section.kind, section.name, section.made !== null]), [['interval', 'a', false], ['state', 's', false], ['state', 's', false], ['signal', 'n', true], ['', '', false]]);
  equal(hand.lead, '\n# the first\n');
  equal(fileText(file).replace(/\n\n+/g, '\n'), text.replace(/\n\n+/g, '\n'));
  equal(fileText(without(file, file.sections[3])).includes('signal.n'), false);
  equal(fileText(without(file, hand)).startsWith('about = "mine" # of us\n'), true);
});

test('a definition takes the place of another, and an empty file is none', () => {
  const file = withDefinition(withDefinition(readFile(''), ORDER, null), OVEN, null);
  const renamed = withDefinition(file, { ...ORDER, name: 'sale' }, file.sections[0]);
  equal(renamed.sections.map((section) => section.name), ['sale', 'the oven']);
  equal(fileText(without(without(renamed, renamed.sections[0]), renamed.sections[1])), '');
});

test('where a file says which lanes there are, it says so of new ones too', () => {
  const file = readFile("[interval.a]\nstart = 'a'\nstop = 'b'\n[lane.kitchen]\nshow = 'a'\n"), more = withDefinition(file, OVEN, null);
  equal(more.sections.map((section) => `${section.kind}.${section.name}`), ['interval.a', 'lane.kitchen', 'state.the oven', 'lane.the oven']);
  equal(without(more, more.sections[2]).sections.length, 2);
  equal(withDefinition(more, OVEN, more.sections[2]).sections.length, 4);
});

test('names are free, quotes are closed', () => {
  equal(freeName(readFile('[interval.interval]\n[state."interval-2"]\n'), 'interval'), 'interval-3');
  equal(quoted('a\\d'), "'a\\d'");
  equal(quoted("'"), '"\'"');
});

test('a complaint is about a key', () => {
  equal(complaintOf("definition:2: interval.a.b.start: 'or(der' is no regular expression: missing closing parenthesis, at byte 7"), { key: 'start', text: 'no regular expression: missing closing parenthesis, at byte 7' });
  equal(complaintOf('definition:1: state.x: it needs a state'), { key: null, text: 'it needs a state' });
  equal(complaintOf('out of memory'), { key: null, text: 'out of memory' });
});

test('two messages make two patterns', () => {
  equal(patternsOf('order 17 (of 3) is taken', 'order 17 is sent in 5 s.'), { start: 'order (?P<key>\\d+) \\(of \\d+\\) is taken', stop: 'order (?P<key>\\d+) is sent in \\d+ s\\.' });
  equal(patternsOf('tick 1', 'tick 2'), { start: 'tick \\d+', stop: 'tick \\d+' });
  equal(patternsOf('Start', 'Stop'), { start: 'Start', stop: 'Stop' });
  equal([messageOf({ level: 20, msg: 'hello' }), messageOf({ fd: 3 }), messageOf(undefined)], ['hello', undefined, undefined]);
});
