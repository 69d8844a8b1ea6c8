#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a C file of text files: `embed.py OUT.c NAME=FILE[+FILE]...` gives `const char NAME[]` and `const size_t NAME_len`.

Comments that stand on lines of their own and indentation are left out, for what is embedded is also written into
every picture; the sources stay readable. The page's script is embedded as it is: esbuild has made it small, and writes
a line break in a string as a line break, so that a blank line may be part of a string. So are files of TOML: krait prints
them for people to read and copy.
"""
import os
import sys


def is_kept(path):
    return os.path.basename(path) == 'app.js' or path.endswith('.toml')


def squeeze(text):
    """Drops whole-line comments (// and /* */), indentation and empty lines."""
    out, in_comment = [], False
    for line in text.splitlines():
        line = line.strip()
        if in_comment:
            in_comment = '*/' not in line
        elif line.startswith('/*'):
            in_comment = '*/' not in line
        elif line and not line.startswith('//'):
            out.append(line)
    return '\n'.join(out) + '\n'


def c_array(name, data):
    rows = [', '.join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    body = ',\n    '.join(rows)
    return (f'extern const char {name}[];\nextern const size_t {name}_len;\n'
            f'const char {name}[] = {{\n    {body}, 0\n}};\nconst size_t {name}_len = {len(data)};\n')


def read(path):
    with open(path, encoding='ascii') as f:
        return f.read()


def main(argv):
    parts = ['/* Made by tools/embed.py. */\n#include <stddef.h>\n']
    for item in argv[2:]:
        name, paths = item.split('=', 1)
        text = ''.join(map(read, paths.split('+')))
        # What would end a CDATA section or a script element early has no place in what goes into one; a page is a file
        # of its own.
        for bad in () if paths.endswith('.html') else (']]>', '</script', '</style', '<!--'):
            if bad in text.lower():
                sys.exit(f'{paths}: contains {bad!r}, which cannot be embedded')
        parts.append(c_array(name, (text if is_kept(paths) else squeeze(text)).encode('ascii')))
    with open(argv[1], 'w', encoding='ascii') as f:
        f.write('\n'.join(parts))


if __name__ == '__main__':
    main(sys.argv)
