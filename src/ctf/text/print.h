/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled printing. A program (program.h) is turned into steps once; printing an event of its class is a walk over
 * the steps. A step is one value with the text before it, and its code says how to print the value. So width, sign,
 * base, byte order and encoding, which the metadata decides, are not decided again for each event.
 *
 *   struct { u32 a; u16 b; string s; }      STRETCH 48 bits, aligned to 8
 *                                           U32     "{ a = "      at byte 0
 *                                           U16     ", b = "      at byte 4
 *                                           STRING  ", s = \""
 *                                           END     " }"
 *
 * What makes it fast (a step of ordinary kernel events takes some 20 to 40 instructions):
 *
 * - A step is one cache line. It contains its text, of which 32 bytes are always copied, whatever its length.
 * - Steps do not ask for room one by one. Each block of the program asks for all that its fixed steps can take
 *   (`room`), and so does each step whose text has no fixed length (strings, arrays, enumerations, ...), for the fixed
 *   steps after it. In between, text is written without a check. Copies of whole blocks may reach up to
 *   KRAIT_PRINT_SLACK bytes further, which are always there.
 * - The stream's event context (process, thread, ...) mostly has the same bytes as in the event before. A caller may
 *   keep the text of a context of fixed size and begin at the step after it.
 * - Numbers become digits without loops (digits.h). Strings are searched for characters to escape, and copied, 16 bytes
 *   at a time.
 *
 * JSON and CSV are printed by the same walk: their programs have other texts between the values (words.h), and other
 * steps for values that look different.
 *
 * Values that are rare in traces (octal, flags, bits at any place, other byte orders) take one general step each. The
 * decoder (decode.h) skips values that are not printed. Steps are in print_steps.def.
 */
#ifndef KRAIT_CTF_TEXT_PRINT_H
#define KRAIT_CTF_TEXT_PRINT_H

#include "base/buf.h"
#include "base/map.h"
#include "ctf/read/decode.h"
#include "ctf/text/words.h"

enum { KRAIT_STEP_TEXT_MAX = 32, KRAIT_PRINT_SLACK = 64, KRAIT_PRINT_CONTEXT_MAX = 64 }; /* bytes */

enum krait_step_code {
#define STEP(code, most, print)  KRAIT_STEP_##code,
#define BLOCK(code, most, print) KRAIT_STEP_##code,
#include "ctf/text/print_steps.def"
    KRAIT_STEP_END,
};

struct krait_step {
    uint8_t code;
    uint8_t text_len;
    uint8_t unused;     /* ENUM: of 64 bits */
    uint8_t form : 2;   /* enum krait_form */
    bool is_signed : 1; /* ENUM */
    bool is_named : 1;  /* ARRAY, SEQUENCE: elements are printed with their index */
    union {
        uint32_t at;     /* integers, PLACED_TEXT: bytes from the beginning of their run or stretch */
        uint32_t align;  /* RUN, STRETCH: bits */
        uint32_t behind; /* BLOCK: how many steps are its own */
        uint32_t len;    /* LONG_TEXT */
    };
    uint32_t room;   /* of steps that ask: maximum bytes of the steps after it, up to the next that asks */
    uint32_t inside; /* ARRAY, VARIANT: the same for an element or option */
    union {
        uint64_t size;                        /* RUN, STRETCH: bits; ARRAY, TEXT_ARRAY: length */
        const uint32_t *options;              /* VARIANT: steps from here to each */
        const struct krait_enum_map *labels;  /* ENUM */
        const struct krait_label_text *texts; /* DATA_* of an enumeration: for each piece */
        const char *long_text;                /* LONG_TEXT */
    };
    const struct krait_op *op;
    char text[KRAIT_STEP_TEXT_MAX]; /* before the value */
};

/* A piece of an enumeration as data: the whole text if it has only one value, else the text after the value. */
struct krait_label_text {
    const char *text; /* in an arena */
    uint32_t len;
    bool is_whole;
};

/* How a program's events are printed. */
struct krait_print {
    const struct krait_program *program;
    const struct krait_step *steps;
    uint32_t steps_room;     /* maximum bytes of the steps before the first that asks */
    uint32_t behind_context; /* the step after those of the first scope; 0: its text cannot be kept */
    uint32_t context_align;  /* of the first scope, bits */
    uint32_t context_size;   /* bytes */
    bool has_text;           /* any step prints something */
};

/* All memory comes from the arena, and the program must live as long. `texts` keeps the texts of labels, which classes
 * share: use one map for all programs of the arena, zeroed at first. Returns 0 or -ENOMEM. */
int krait_print_compile(struct krait_print *print, struct krait_arena *arena,
                        const struct krait_words_plan *plan, struct krait_map *texts);

/* Where a decoder's text goes. */
struct krait_printer {
    struct krait_buf *out;
    char *limit;        /* where the room ends */
    size_t context_end; /* length of `out` after the event's context, once that is printed */
};

/* Of a decoder whose packet is printed: its ctx. */
static inline struct krait_printer *krait_printer_of(const struct krait_decoder *d)
{
    return d->ctx;
}

/* krait_print_room if there is not enough. */
char *krait_print_more_room(struct krait_decoder *d, size_t n);

/* Where the printer's text continues after its first len bytes, with room for n more and KRAIT_PRINT_SLACK; NULL, with
 * `why` set, when memory is out. */
static inline char *krait_print_room(struct krait_decoder *d, size_t len, size_t n)
{
    struct krait_buf *out = krait_printer_of(d)->out;
    out->len = len;
    if (KRAIT_UNLIKELY(out->cap - len <= n + KRAIT_PRINT_SLACK))
        return krait_print_more_room(d, n);
    krait_printer_of(d)->limit = out->data + out->cap - KRAIT_PRINT_SLACK;
    return out->data + len;
}

/* Runs the steps. They print to `to`, which is in the printer's buffer and has room for print->steps_room bytes; the
 * buffer may move. If the event's context is printed and its text can be kept, the printer's context_end is set.
 * Returns where the text ends, or NULL with `why` and `at` set; the length of the buffer is then meaningless. Hot
 * path. */
char *krait_print_steps(struct krait_decoder *d, const struct krait_program *program,
                        const struct krait_step *steps, char *to);

/* The same for a compiled print, from a step on that is not inside another: the first, or print->behind_context. */
static inline char *krait_print_from(struct krait_decoder *d, const struct krait_print *print, uint32_t from,
                                     char *to)
{
    d->empty = 0;
    return krait_print_steps(d, print->program, print->steps + from, to);
}

#endif
