/* SPDX-License-Identifier: Apache-2.0
 *
 * What a traced program maps of a recording, for writer.c alone: control page, rings, chunks. krait_writer_map and its
 * counterparts are in writer.h. All that can be is mapped when the process joins, as a seccomp filter may forbid it later.
 */
#ifndef KRAIT_RECORD_WRITER_MAP_H
#define KRAIT_RECORD_WRITER_MAP_H

#include "record/writer.h"

/* The bytes of ring i, which this thread has taken; NULL where they cannot be mapped. They are mapped once and kept: the
 * ring is likely to be taken here again. krait_writer_unmap unmaps them. */
uint8_t *krait_writer_map_ring(struct krait_writer *writer, uint32_t i);

/* A page that the kernel fills with zeros in the child of every fork, also of one that libc knows nothing of
 * (madvise(2), since Linux 4.14). NULL where there is none: such children are not noticed. */
uint32_t *krait_writer_map_own(void);

#endif
