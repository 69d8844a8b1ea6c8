// SPDX-License-Identifier: Apache-2.0
//
// node speedscope_read.cjs FILE: prints what speedscope made of a profile, in its own format.
//
// The package has no entry for programs: its page is run with a document that is never drawn, given the file as its
// command line would, and told to save. What it saves is written from its model, not from our bytes.
'use strict'
const fs = require('fs')
const path = require('path')
const { createRequire } = require('module')

const packages = createRequire(path.join(__dirname, '..', 'package.json'))
const { JSDOM, VirtualConsole } = packages('jsdom')

const LIMIT_MS = 60000
const dist = path.join(path.dirname(packages.resolve('speedscope/package.json')), 'dist', 'release')
const page = fs.readFileSync(path.join(dist, fs.readdirSync(dist).find(name => /^speedscope-.*\.js$/.test(name))), 'utf8')
const file = process.argv[2]

const said = []
const log = new VirtualConsole()
for (const kind of ['log', 'warn', 'error']) log.on(kind, (...words) => said.push(words.join(' ')))

function fail(why) {
  process.stderr.write(`${why}\n${said.join('\n')}\n`)
  process.exit(1)
}

// There is no WebGL here, so drawing fails after the import; that is of no concern.
process.on('uncaughtException', error => error.message === 'Setup failure' || fail(error.stack))

const options = { url: 'http://localhost/#localProfilePath=none', runScripts: 'outside-only', pretendToBeVisual: true, virtualConsole: log }
const { window } = new JSDOM('<!DOCTYPE html><body></body>', options)
window.matchMedia = () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {}, removeEventListener() {} })
window.Element.prototype.scrollIntoView = () => {}
window.TextDecoder = TextDecoder
window.TextEncoder = TextEncoder
let saving
window.URL.createObjectURL = blob => {
  clearInterval(saving)
  const reader = new window.FileReader()
  reader.onload = () => {
    const odd = said.filter(line => /Tried to end|still open|discard/i.test(line))
    if (odd.length) fail('speedscope repaired the profile:\n' + odd.join('\n'))
    process.stdout.write(reader.result, () => process.exit(0))
  }
  reader.readAsText(blob)
  return 'blob:profile'
}

window.eval(page)
const save = () => {
  if (said.some(line => line.startsWith('Failed to load'))) fail(`speedscope cannot load ${file}`)
  window.dispatchEvent(new window.KeyboardEvent('keydown', { key: 's', ctrlKey: true }))
}
const load = () => {
  if (!window.speedscope) return setTimeout(load, 10)
  window.speedscope.loadFileFromBase64(path.basename(file), fs.readFileSync(file).toString('base64'))
  saving = setInterval(save, 100)
}
load()
setTimeout(() => fail(`speedscope did not save ${file} in ${LIMIT_MS} ms`), LIMIT_MS)
