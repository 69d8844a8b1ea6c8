// SPDX-License-Identifier: Apache-2.0
import { palette } from '../src/palette';
import { equal, test } from './harness';

type Three = [number, number, number];

// What readers see who lack one kind of cone: Machado, Oliveira and Fernandes, "A Physiologically-based Model for
// Simulation of Color Vision Deficiency", 2009, severity 1; on linear light.
const EYES: Record<string, Three[]> = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const LEAST = { usual: 0.05, protanopia: 0.05, deuteranopia: 0.05, tritanopia: 0.04 } as Record<string, number>; // the last is rare
const ROLES = ['run', 'system', 'interrupt', 'ready', 'gil', 'lock', 'disk', 'network', 'timer', 'child', 'fault', 'stopped', 'throttled', 'wait'];

function times(matrix: Three[], v: Three): Three {
  return matrix.map((row) => row[0] * v[0] + row[1] * v[1] + row[2] * v[2]) as Three;
}

function light(hex: string): Three {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)) as Three;
}

/** Bjoern Ottosson, "A perceptual color space for image processing", 2020. */
function oklab(rgb: Three): Three {
  const lms = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], rgb).map((x) => Math.cbrt(Math.max(x, 0))) as Three;
  return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], lms);
}

function seen(hex: string, eye: string): Three {
  return oklab(times(EYES[eye], light(hex)).map((c) => Math.min(Math.max(c, 0), 1)) as Three);
}

test('states are told apart by colour-blind readers, on light and on dark', () => {
  const near: string[] = [];
  for (const dark of [false, true]) {
    for (const eye of Object.keys(EYES)) {
      ROLES.forEach((a, i) => ROLES.slice(0, i).forEach((b) => {
        const [x, y] = [a, b].map((role) => seen(palette(dark).state(role), eye)), far = Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
        if (far < LEAST[eye]) near.push(`${dark ? 'dark' : 'light'} ${eye}: ${a} ${b} ${far.toFixed(3)}`);
      }));
    }
  }
  equal(near, []);
});
