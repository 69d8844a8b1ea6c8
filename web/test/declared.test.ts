// SPDX-License-Identifier: Apache-2.0
import { conditionsText, conditionsToml } from '../src/conditions';
import { Definition, Key, complaintOf, definitionText, fileText, formOf, freeName, messageOf, missingIn, patternsOf, readFile, tidied, withDefinition, without, wrongIn } from '../src/declared';
import { wordsOf } from '../src/lane_forms';
import { fullName } from '../src/model';
import { fieldNames } from '../src/said';
import { quoted, readPairs } from '../src/toml';
import { equal, test, throws } from './harness';

const ORDER: Definition = { kind: 'interval', source: 'messages', name: 'order', values: { start: 'order (?P<key>\\d+) is taken', stop: "it's \"sent\"\t", pairing: 'nested' } };
const OVEN: Definition = { kind: 'state', source: 'messages', name: 'the oven', values: { message: 'oven is (\\w+)' } };

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
  equal(freeName(readFile(''), 'app.f'), 'app.f');
  equal(quoted('a\\d'), "'a\\d'");
  equal(quoted("'"), '"\'"');
});

test('a complaint is about a key', () => {
  equal(complaintOf("definition:2: interval.a.b.start: 'or(der' is no regular expression: missing closing parenthesis, at byte 7"), { name: 'a.b', key: 'start', text: 'no regular expression: missing closing parenthesis, at byte 7' });
  equal(complaintOf('definition:1: state.x: it needs a state'), { name: 'x', key: null, text: 'it needs a state' });
  equal(complaintOf("definition:3: state.x.state: '{a' has a brace that is not closed, or is empty"), { name: 'x', key: 'state', text: "'{a' has a brace that is not closed, or is empty" });
  equal(complaintOf("definition:3: state.state: '{a' has a brace"), { name: 'state', key: 'state', text: "'{a' has a brace" });
  equal(complaintOf("no function 'nobody' in the trace; `krait report --filter TEXT` looks for names"), { key: 'call', text: "no function 'nobody' in the trace" });
  equal(complaintOf('out of memory'), { key: null, text: 'out of memory' });
});

/* What the form says, and the lines of the file. */
const FORMS: [Omit<Definition, 'name'>, string][] = [
  [{ kind: 'interval', source: 'calls', values: { call: 'app.Cart.<locals>.add' } }, "call = 'app.Cart.<locals>.add'\n"],
  [{ kind: 'interval', source: 'spans', values: { span: 'serve', key: 'order' } }, "span = 'serve'\nkey = 'order'\n"],
  [{ kind: 'interval', source: 'messages', values: { start: 'a', stop: 'b', key: 'x, y', by: 'x' } }, "start = 'a'\nstop = 'b'\nkey = ['x', 'y']\nby = 'x'\n"],
  [{ kind: 'interval', source: 'events', values: { event: 'sched_wakeup, sched_wakeup_new', stopEvent: 'sched_switch', stopWhere: 'next_tid != 0', key: 'tid', stopKey: 'next_tid', by: 'comm', pairing: 'latest' } },
    "start = { event = ['sched_wakeup', 'sched_wakeup_new'] }\nstop = { event = 'sched_switch', where = { next_tid = '!= 0' }, key = 'next_tid' }\nkey = 'tid'\nby = 'comm'\npairing = 'latest'\n"],
  [{ kind: 'state', source: 'events', values: { event: 'sched_switch', where: 'next_tid = 0', state: '{next_comm} on {$cpu}', key: '$cpu' } },
    "event = 'sched_switch'\nwhere = { next_tid = 0 }\nstate = '{next_comm} on {$cpu}'\nkey = '$cpu'\n"],
  [{ kind: 'signal', source: 'events', values: { event: 'net_*', value: 'len', key: 'name' } }, "event = 'net_*'\nvalue = 'len'\nkey = 'name'\n"],
];

test('each form has its lines in the file, and is read from them', () => {
  for (const [form, lines] of FORMS) {
    const made = { ...form, name: 'own' }, text = definitionText(made), { made: read } = readFile(text).sections[0];
    equal(text, `[${form.kind}.own]\n${lines}`);
    equal([read?.source, new Map(Object.entries(read?.values ?? {}).sort()), read && definitionText(read)], [made.source, new Map(Object.entries(made.values).sort()), text]);
    equal([missingIn(made), wrongIn(made), formOf(form.kind, form.source).keys.every((key) => wordsOf(form.kind, form.source, key).label)], [null, null, true]);
  }
});

/* Written by hand; the values in the dialog. */
const HAND: [string, Definition['values'] | null][] = [
  ["[interval.a]\nstart = { event = \"a\", key = \"tid\" }\nstop = { where = { n = [1, 'x*'] }, event = [\"b\"], key = 'next_tid' }\n", { event: 'a', stopEvent: 'b', stopWhere: 'n = 1 | x*', key: 'tid', stopKey: 'next_tid' }],
  ["[interval.a]\nstart = { event = 'a' }\nstop = { event = 'b', key = 't' }\nkey = [ 't',\n 'u' ]\n", { event: 'a', stopEvent: 'b', key: 't, u', stopKey: 't' }],
  ["[interval.a]\nstart = { event = 'a' }\nstop = { event = 'b', key = 't' }\n", null], // the start has the thread as its key
  ["[interval.a]\nstart = { event = 'a', message = 'x' }\nstop = { event = 'b' }\n", null],
  ["[interval.a]\nstart = { event = 'a' }\nstop = 'b'\n", null],
  ["[interval.a]\ncall = 'f'\nwithin = 'b'\n", null],
  ["[interval.a]\ncall = 'f' # mine\n", null],
  ["[interval.a]\ncall = '''f'''\n", null],
  ["[interval.a]\nstart.event = 'a'\nstop.event = 'b'\n", null],
  ["[interval.a]\nstart = 'x'\n", null],
  ["[state.s]\nevent = 'a, b'\nstate = 'x'\n", null],
  ["[state.s]\nevent = 'a'\n", null],
  ["[state.s]\nevent = 'a'\nstate = 'x'\n[state.s.where]\nb = 1\n", null],
  ["[[signal.s]]\nevent = 'a'\nvalue = 'x'\n", null],
  ["[signal.s]\nevent = 'a'\nvalue = 'x'\nby = 'y'\nafter = { event = 'b' }\n", null],
];

test('what was written by hand can be changed if the form has all of it', () => {
  for (const [text, values] of HAND) {
    const file = readFile(text);
    equal([file.sections.length, file.sections[0].made?.values ?? null, fileText(file)], [1, values, text]);
  }
});

test('conditions are typed as they are read', () => {
  const same: [string, string][] = [
    ['prio < 100, comm = python* | "the, cook"', "{ prio = '< 100', comm = ['python*', 'the, cook'] }"],
    ['n != 0 | 1', "{ n = ['!= 0', 1] }"],
    ['$cpu = 0, extra.order >= -1.5', "{ '$cpu' = 0, 'extra.order' = '>= -1.5' }"],
    ['name = "<lambda>", size = 007', "{ name = '==<lambda>', size = '007' }"],
    ['name = ""', "{ name = '' }"],
  ];
  for (const [typed, toml] of same) {
    equal(conditionsToml(typed), toml);
    equal(conditionsText(readPairs(`where = ${toml}`)?.get('where') ?? []), typed);
  }
  equal(conditionsToml(' a==1 ,b = x y '), "{ a = 1, b = 'x y' }");
  equal(conditionsText(readPairs('where = { a = "<5", b = true, c = 1_000 }')?.get('where') ?? []), 'a < 5, b = 1, c = 1000');
  for (const wrong of ['prio', 'prio <', 'prio < 1 | 2', 'prio < x', 'a = 1, a = 2', 'a = 1 b = 2', 'a = 1,', '= 1', 'a != " b"', 'a = "\\x"']) throws(() => conditionsToml(wrong));
});

test('what is wrong with an event is said at its field', () => {
  const of = (values: Definition['values']): Definition => ({ kind: 'interval', source: 'events', name: 'a', values });
  const keys = [missingIn(of({ event: 'a' })), wrongIn(of({ where: 'a <' })), wrongIn(of({ where: 'a < 1', stopWhere: 'b' })), wrongIn(of({ stopKey: 'tid' }))].map((found) => found?.key);
  equal(keys, ['stopEvent', 'where', 'stopWhere', 'key'] as Key[]);
  equal([tidied('event', ' a ,, b,'), tidied('event', ','), tidied('start', ' a,')], ['a, b', '', ' a,']);
});

test('names of functions and fields are as files have them', () => {
  equal([fullName({ module: 'app', name: 'C.f', kind: 0 }), fullName({ module: 'libc.so', name: 'read', kind: 2 })], ['app.C.f', 'read']);
  equal(fieldNames({ payload: { level: { label: 'INFO', value: 20 }, extra: { order: 1, of: { a: [1] } } }, common_context: { vtid: 3 } }), ['level', 'extra.order', 'extra.of.a', 'vtid']);
});

test('two messages make two patterns', () => {
  equal(patternsOf('order 17 (of 3) is taken', 'order 17 is sent in 5 s.'), { start: 'order (?P<key>\\d+) \\(of \\d+\\) is taken', stop: 'order (?P<key>\\d+) is sent in \\d+ s\\.' });
  equal(patternsOf('tick 1', 'tick 2'), { start: 'tick \\d+', stop: 'tick \\d+' });
  equal(patternsOf('Start', 'Stop'), { start: 'Start', stop: 'Stop' });
  equal([messageOf({ level: 20, msg: 'hello' }), messageOf({ fd: 3 }), messageOf(undefined)], ['hello', undefined, undefined]);
});
