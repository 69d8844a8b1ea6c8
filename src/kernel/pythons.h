/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the Python interpreters of this machine in the usual places, and runs each once to ask for its version.
 */
#ifndef KRAIT_KERNEL_PYTHONS_H
#define KRAIT_KERNEL_PYTHONS_H

#include "base/err.h"

struct krait_python {
    char *path;        /* owned; as the user would type it */
    const char *found; /* PATH, pyenv, venv, uv, system; static */
    char implementation[32];
    int major, minor, micro;
    char release[16]; /* "final", "beta" ... */
    bool answered;    /* else the rest is unset: it did not start, or not within seconds */
    bool shared;      /* libpython is a shared object */
    bool free_threaded;
    bool preload; /* the dynamic linker heeds LD_PRELOAD when this one starts */
};

struct krait_pythons {
    struct krait_python *items;
    size_t count, cap;
};

/* Looks in PATH, /usr/bin, /usr/local/bin, $VIRTUAL_ENV, .venv and venv, pyenv's and uv's versions. Each file
 * once, but a venv's python counts beside the one that it links to. Scripts that only forward (pyenv's shims)
 * are left out. Runs every interpreter, some ten milliseconds each; sorted by version. Returns 0 or -ENOMEM.
 */
int krait_pythons_find(struct krait_pythons *pythons, struct krait_err *err);
void krait_pythons_done(struct krait_pythons *pythons);

/* Why krait cannot record it and what would help, or NULL when it can. Static text. */
const char *krait_python_refusal(const struct krait_python *python);
/* The hook that calls are recorded with: "sys.monitoring" or "PyEval_SetProfile". */
const char *krait_python_hook(const struct krait_python *python);

#endif
