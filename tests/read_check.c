/* SPDX-License-Identifier: Apache-2.0
 *
 * read_check TRACE...: read_all.h, and what there was:
 *
 *   events N / values N / lost EVENTS / by_stream N / by_packet N / error CODE OFFSET FILE
 *
 * Exit status 1: something differed, said on stderr.
 */
#include "read_all.h"

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct read_all all;
    int rc = read_all(&all, (const char *const *)argv + 1, (size_t)argc - 1);
    printf("events %" PRIu64 "\nvalues %" PRIu64 "\nlost %" PRIu64 "\n", all.events, all.values, all.lost);
    printf("by_stream %" PRIu64 "\nby_packet %" PRIu64 "\n", all.by_stream, all.by_packet);
    if (rc)
        printf("error %d %" PRId64 " %s\n", rc, (int64_t)all.error.offset, all.error.file);
    return all.wrong > 0;
}
