#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing for building, testing or showing krait, and nothing else; says what it does.
#
#   tools/setup.sh build|demo|test|test-all|bench
#
# Works without a network, in well under a second, when nothing is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# bash's <() needs it, and so does krait.
[[ -e /proc/self/fd ]] || die "/proc is not mounted; run: mount -t proc proc /proc"

# What the tests run in: the system's own Python, where there is one. It is optimized by a profile (PGO), which a pyenv's is not,
# and reads recordings in two thirds of the time.
quick=/usr/bin/python3
[[ -x $quick ]] || quick=python3

# is_there HOW WHAT: the third and fourth column of tools/packages.
is_there() {
    case $1 in
    cmd) command -v "$2" >/dev/null ;;
    header) printf '#include <%s>\n' "$2" | cc -E - >/dev/null 2>&1 ;;
    pc) pkg-config --exists "$2" 2>/dev/null ;;
    file) compgen -G "$2" >/dev/null ;;
    module) { python3 -c "import $2" && "$quick" -c "import $2"; } >/dev/null 2>&1 ;;
    *) die "tools/packages: no check named $1" ;;
    esac
}

# missing GROUP...: the packages of these groups that are not there, one a line.
missing() {
    local group package how what
    while read -r group package how what; do
        [[ " $* " == *" $group "* ]] || continue
        is_there "$how" "$what" || printf '%s\n' "$package"
    done < <(grep -v '^#' tools/packages)
}

install_packages() {
    local packages=("$@")
    command -v apt-get >/dev/null ||
        die "missing, and this is no Debian to install them on (these are their Debian names): ${packages[*]}"
    [[ $EUID -eq 0 ]] || die "missing packages; run: sudo apt-get install ${packages[*]}"
    say "installing ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 || say "apt-get update failed; going on with the package lists that are there"
    apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "${packages[@]}" >&2 ||
        die "apt-get install failed; see above"
}

# venv FOLDER REQUIREMENTS PYTHON: makes the virtual environment, or makes it again when what it was made from has changed.
venv() {
    local folder=$1 requirements=$2 python=$3 made_from
    made_from=$({ "$python" -VV; cat "$requirements"; } | cksum)
    if [[ -x $folder/bin/python && -e $folder/made-from && $(<"$folder/made-from") == "$made_from" ]]; then
        return
    fi
    say "making $folder from $requirements"
    rm -rf "$folder"
    "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2 ||
        die "pip could not install $requirements; see above"
    printf '%s\n' "$made_from" >"$folder/made-from"
}

# node_packages FOLDER: what FOLDER/package.json names, and again when that has changed. npm comes with .venv.
node_packages() {
    local folder=$1 made_from
    made_from=$(cksum <"$folder/package.json")
    if [[ -e $folder/node_modules/made-from && $(<"$folder/node_modules/made-from") == "$made_from" ]]; then
        return
    fi
    say "installing the node packages of $folder/package.json"
    rm -rf "$folder/node_modules"
    PATH=$PWD/.venv/bin:$PATH npm install --prefix "$folder" --silent --no-audit --no-fund --no-package-lock >&2 ||
        die "npm could not install $folder/package.json; see above"
    printf '%s\n' "$made_from" >"$folder/node_modules/made-from"
}

case ${1:-} in
build) groups=(build) ;;
demo) groups=(build demo) ;;
test) groups=(build demo test) ;;
test-all) groups=(build demo test test-all) ;;
bench) groups=(build bench) ;;
*) die "usage: tools/setup.sh build|demo|test|test-all|bench" ;;
esac

mapfile -t packages < <(missing "${groups[@]}")
[[ ${#packages[@]} -eq 0 ]] || install_packages "${packages[@]}"

case $1 in
demo) venv build-demo/venv tools/demo-requirements.txt python3 ;;
test | test-all)
    venv .venv tests/requirements.txt "$quick"
    node_packages tests
    tools/pythons make
    tools/vm make
    [[ $1 == test ]] || tools/vm --arch aarch64 make
    ;;
bench) tools/pythons make ;; # and babeltrace2 2.1
esac
