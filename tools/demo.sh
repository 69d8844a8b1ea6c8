#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The demo: records flake8, the linter, while it checks its own source and that of the libraries that it is made of; then
# shows where the time went.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=build-demo
trace=$out/trace
python=$out/venv/bin/python
mapfile -t sources < <("$python" -c '
import flake8, pycodestyle, pyflakes
print(*(m.__path__[0] if hasattr(m, "__path__") else m.__file__ for m in (flake8, pycodestyle, pyflakes)), sep="\n")')

step() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
[[ -t 1 && -z ${NO_COLOR:-} ]] || step() { printf '\n$ %s\n' "$*"; }

rm -rf "$trace"
step "build/krait record -o $trace -- $out/venv/bin/flake8 --jobs 1 --max-complexity 10 …"
# flake8 exits with 1 when it has found something to say, which it does.
build/krait record -o "$trace" -- "$out/venv/bin/flake8" --jobs 1 --max-complexity 10 --quiet --count \
    "${sources[@]}" >"$out/flake8.txt" || [[ $? -eq 1 ]]

step "build/krait report $trace --limit 15"
build/krait report "$trace" --limit 15

step "build/krait flame $trace -o $out/flame.svg"
build/krait flame "$trace" -o "$out/flame.svg"
printf '\nThe flame graph is %s: open it in a browser, click a frame, press / to search.\n' "$PWD/$out/flame.svg"
printf 'The recording is %s; go on with: build/krait report %s --tree\n' "$trace" "$trace"
