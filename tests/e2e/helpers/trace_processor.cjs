// SPDX-License-Identifier: Apache-2.0
//
// node trace_processor.cjs ENGINE_BUNDLE.JS: Perfetto's trace processor, as its page has it. It takes requests and gives replies,
// each behind its length (four bytes, little endian), until its input ends.
//
// The bundle is what the page runs as a web worker: it loads the WebAssembly beside it, and speaks the remote procedure
// calls of trace_processor.proto (TraceProcessorRpcStream) over a message port. Here is as much of a worker's world as
// it looks at; its own world has no `process`, or it would take this for node, for which it was not built.
'use strict'
const fs = require('fs')
const path = require('path')
const vm = require('vm')

const bundle = process.argv[2]

class XMLHttpRequest {
  open(_method, url) {
    this.file = path.join(path.dirname(bundle), path.basename(url))
  }
  send() {
    this.response = fs.readFileSync(this.file)
  }
}

const quiet = { log() {}, warn() {}, error() {} }
const worker = vm.createContext({
  console: quiet,
  importScripts() {},
  location: { href: `file://${bundle}` },
  performance,
  setTimeout,
  TextDecoder,
  WorkerGlobalScope: class {},
  XMLHttpRequest,
})
worker.self = worker
vm.runInContext(fs.readFileSync(bundle, 'utf8'), worker, { filename: bundle })

let replies = []
const port = { postMessage: reply => replies.push(Buffer.from(reply)) }
worker.onmessage({ data: port })
const Bytes = vm.runInContext('Uint8Array', worker)

function read(length) {
  const buffer = Buffer.alloc(length)
  let at = 0
  for (let n; at < length && (n = fs.readSync(0, buffer, at, length - at, null)); at += n);
  return at === length ? buffer : process.exit()
}

function write(buffer) {
  for (let at = 0; at < buffer.length; at += fs.writeSync(1, buffer, at));
}

function serve() {
  for (;;) {
    port.onmessage({ data: Bytes.from(read(read(4).readUInt32LE())) })
    const all = Buffer.concat(replies), length = Buffer.alloc(4)
    replies = []
    length.writeUInt32LE(all.length)
    write(length)
    write(all)
  }
}

setTimeout(serve) // the module is ready when the promises of its loading were kept
