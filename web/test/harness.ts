// SPDX-License-Identifier: Apache-2.0
// node's own test runner, without its types: the page is checked without node's.
declare const require: (name: string) => { test: (name: string, body: () => void | Promise<void>) => void; deepStrictEqual: (a: unknown, b: unknown) => void; throws: (body: () => void) => void };

export const test = require('node:test').test;
export const equal = require('node:assert').deepStrictEqual;
export const throws = require('node:assert').throws;
