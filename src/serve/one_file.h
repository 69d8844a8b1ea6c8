/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves one file to a page of another origin, at http://127.0.0.1:PORT/TOKEN.NAME. Perfetto's page takes a trace from
 * the local machine in this way (perfetto.dev, "Deep linking to the Perfetto UI"; its tools/open_trace_in_ui).
 *
 * Only pages of that origin may read the answer (CORS), and a request has to contain the token. Other hosts, origins
 * and paths get nothing.
 */
#ifndef KRAIT_SERVE_ONE_FILE_H
#define KRAIT_SERVE_ONE_FILE_H

#include "base/err.h"

struct krait_one_file {
    int fd;             /* not owned; must outlive the server */
    const char *name;   /* the file's name in the address: letters, digits and dots */
    const char *origin; /* "https://ui.perfetto.dev" */
    uint16_t port;
};

/* Starts to answer, in threads of its own. A process has one server: this one or the page's. `url` is the address of
 * the file. Returns 0, or a negative errno with err set. */
int krait_one_file_serve(const struct krait_one_file *file, char *url, size_t size, struct krait_err *err);
void krait_one_file_end(void);

#endif
