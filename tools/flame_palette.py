#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the flame graph's colours as CSS: `flame_palette.py OUT.css`.

Colours are chosen in OKLCH (Bjoern Ottosson, 2020), where equal steps look equal: all frames of a scheme are equally
light, so that none shouts and one text colour is readable on all. The differential scale goes from blue over grey to
orange-red, which people with any of the common colour deficiencies tell apart, and gets darker to both ends.
"""
import math
import sys

HUES, SHADES = 12, 3
LAYER_HUES = {'p': 245, 'c': 70}
BLUE, RED = 250, 38


def srgb(light, chroma, hue):
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    l3 = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m3 = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s3 = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (4.0767416621 * l3 - 3.3077115913 * m3 + 0.2309699292 * s3,
              -1.2684380046 * l3 + 2.6097574011 * m3 - 0.3413193965 * s3,
              -0.0041960863 * l3 - 0.7034186147 * m3 + 1.7076147010 * s3)
    out = '#'
    for x in linear:
        x = min(max(x, 0.0), 1.0)
        x = 12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055
        out += f'{round(x * 255):02x}'
    return out


def diff_color(step, dark):
    size = abs(step) / 4
    light = 0.40 + 0.13 * size if dark else 0.90 - 0.24 * size
    chroma = 0.02 + (0.11 if dark else 0.117) * size if step else 0.003
    return srgb(light, chroma, RED if step > 0 else BLUE)


def rules(dark):
    light, spread, chroma = (0.435, 0.03, 0.072) if dark else (0.86, 0.022, 0.078)
    for shade in range(SHADES):
        level = light + (shade - 1) * spread
        for hue in range(HUES):
            yield f'.bm .m{hue}.s{shade}{{fill:{srgb(level, chroma, 20 + hue * 360 / HUES)}}}'
        yield f'.bm .m{HUES}.s{shade}{{fill:{srgb(level, 0.012, 90)}}}'
        for layer, hue in LAYER_HUES.items():
            yield f'.bl .l{layer}.s{shade}{{fill:{srgb(level, chroma, hue)}}}'
    yield f'.bm .lg,.bl .lg{{fill:{srgb(light - 0.02 if dark else light + 0.03, 0.008, 90)}}}'
    yield f'.lr{{fill:{srgb(0.30 if dark else 0.93, 0.004, 90)}}}'
    for step in range(-4, 5):
        yield f'.bd .d{step + 4}{{fill:{diff_color(step, dark)}}}'


def main():
    text = '\n'.join(rules(dark=False))
    text += '\n@media screen and (prefers-color-scheme:dark){\n' + '\n'.join(rules(dark=True)) + '\n}\n'
    with open(sys.argv[1], 'w', encoding='ascii') as f:
        f.write(text)


if __name__ == '__main__':
    main()
