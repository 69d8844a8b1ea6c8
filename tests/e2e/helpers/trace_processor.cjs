// SPDX-License-Identifier: Apache-2.0
//
// node trace_processor.cjs ENGINE_BUNDLE.JS <requests >replies: Perfetto's trace processor, as its page has it.
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

const port = { postMessage: reply => fs.writeSync(1, reply) }
worker.onmessage({ data: port })
const requests = vm.runInContext('Uint8Array', worker).from(fs.readFileSync(0))
setTimeout(() => port.onmessage({ data: requests })) // the module is ready when the promises of its loading were kept
