/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads traces by the public interface in every way it has, and compares them: each value that is reached by stepping
 * through structs and arrays with the same one by its handle, events by time with events by stream and by packet.
 */
#ifndef KRAIT_TESTS_READ_ALL_H
#define KRAIT_TESTS_READ_ALL_H

#include "krait/trace_read.h"

struct read_all {
    uint64_t events, values, lost;
    uint64_t by_stream, by_packet;
    uint64_t wrong;                  /* differences; the first few are said on stderr */
    struct krait_reader_error error; /* of opening or reading; code 0 when none */
};

/* Returns 0, or error.code. */
int read_all(struct read_all *all, const char *const *paths, size_t count);

#endif
