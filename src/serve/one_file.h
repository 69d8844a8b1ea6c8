/* SPDX-License-Identifier: Apache-2.0
 *
 * One file for a page of another origin, at http://127.0.0.1:PORT/TOKEN.NAME: how Perfetto's page takes a trace from
 * the machine that it is shown on (perfetto.dev, "Deep linking to the Perfetto UI"; its tools/open_trace_in_ui).
 *
 * Pages of that origin alone may read the answer (CORS), and who asks has to know the token. Other hosts, origins and
 * paths get nothing.
 */
#ifndef KRAIT_SERVE_ONE_FILE_H
#define KRAIT_SERVE_ONE_FILE_H

#include "base/err.h"

struct krait_one_file {
    int fd;             /* not owned; must outlive the server */
    const char *name;   /* of the file, for the address: letters, digits and dots */
    const char *origin; /* "https://ui.perfetto.dev" */
    uint16_t port;
};

/* Begins to answer, in threads of its own; there is one such server in a process, or the page's. `url` is where the file
 * is. Returns 0, or a negative errno with err set. */
int krait_one_file_serve(const struct krait_one_file *file, char *url, size_t size, struct krait_err *err);
void krait_one_file_end(void);

#endif
