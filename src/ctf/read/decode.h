/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program over a packet's bits to skip a scope. Everything is checked against the size of the packet's content;
 * nothing is allocated.
 */
#ifndef KRAIT_CTF_READ_DECODE_H
#define KRAIT_CTF_READ_DECODE_H

#include "ctf/read/program.h"

enum { KRAIT_BITS_ANY = 2 };

struct krait_decoder {
    const uint8_t *bytes; /* the packet's first */
    uint64_t at;          /* bits from there */
    uint64_t end;         /* of the content, bits */
    uint64_t run;         /* where the fields of the current run begin, bits */
    uint64_t clock;       /* ticks, as of the last field that is mapped to it */
    uint64_t *slots;      /* krait_ctf_metadata.slot_count */
    uint64_t meanings[KRAIT_MEANING_COUNT];
    uint32_t meanings_set; /* bit per meaning */
    uint8_t bits_be; /* byte order of the last field that ended inside a byte; KRAIT_BITS_ANY: not known */
    uint64_t empty;  /* elements without bits in the scope so far */
    void *ctx;       /* for who does more with a packet's bits than skip them; not used here */
    const char *why; /* of a failure: a static text */
};

/* Both return 0, or -EBADMSG with `why` and `at` set. */
int krait_decode_skip(struct krait_decoder *d, const struct krait_program *program);
/* The instructions from `op` to its block's END. */
int krait_decode_block(struct krait_decoder *d, const struct krait_program *program,
                       const struct krait_op *op);
/* One instruction, with those of its block. */
int krait_decode_op(struct krait_decoder *d, const struct krait_program *program, const struct krait_op *op);

/* The option of a variant that a tag chooses; KRAIT_NO_ID: none. */
uint32_t krait_decode_option(const struct krait_fc *fc, uint64_t tag);

/* The next time of the clock at which its low bits, those of the mask, equal the value's. They wrap at most once
 * between two values (CTF 1.8.3, 8). */
static inline uint64_t krait_clock_follow(uint64_t clock, uint64_t value, uint64_t mask)
{
    return clock + ((value - clock) & mask);
}

/* The clock after a value of `bits` bits. */
static inline uint64_t krait_clock_update(uint64_t clock, uint64_t value, unsigned bits)
{
    return bits >= 64 ? value : krait_clock_follow(clock, value, ((uint64_t)1 << bits) - 1);
}

#endif
