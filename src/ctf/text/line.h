/* SPDX-License-Identifier: Apache-2.0
 *
 * Events as lines, in any form: the texts before an event's fields are made once and kept.
 *
 *   TIME | HEAD of the class | CONTEXT of the packet | CONTEXT of the event, | FIELDS | end
 *                              kept for the stream     kept while its bytes
 *                                                      do not change
 *
 * The caller says how to make heads and which texts surround values (struct krait_line_form). It prints the time and
 * the end of the line; the functions here print the rest.
 */
#ifndef KRAIT_CTF_TEXT_LINE_H
#define KRAIT_CTF_TEXT_LINE_H

#include "ctf/read/cursor.h"
#include "ctf/scalar/text.h"
#include "ctf/text/print.h"

/* What is the same for all events of a class. */
struct krait_line_head {
    const struct krait_event_class *event; /* NULL: none is kept here */
    const char *text;                      /* between the time and the fields */
    size_t len;
    size_t room; /* for a line without its time and packet context, up to the first step that asks for room */
    const struct krait_print *print; /* of the fields */
};

/* The beginning of a stream's events: the context of their packet, and their own context while its bytes stay the
 * same. */
struct krait_line_context {
    const struct krait_ctf_packet *packet; /* NULL: none was printed */
    struct krait_buf text;                 /* the packet's; the event's */
    size_t packet_len;                     /* of the text */
    uint64_t size;                         /* of the event's context, bits; KRAIT_LINE_UNKNOWN */
    uint64_t align;                        /* bits */
    uint32_t word_count;
    uint64_t words[KRAIT_PRINT_CONTEXT_MAX / 8]; /* its bytes */
    uint64_t last_mask;                          /* of the last word's */
};

#define KRAIT_LINE_UNKNOWN ((uint64_t)1 << 62) /* more bits than any packet has */

enum { KRAIT_LINE_RECENT = 256 };

/* How lines of a form are made. `self` is the printer. */
struct krait_line_form {
    void (*add_head)(void *self, const struct krait_ctf_cursor *cursor, struct krait_buf *out);
    unsigned (*text_flags)(const void *self); /* enum krait_text_flags */
    const char *const *scope_names;           /* KRAIT_SCOPES */
    const char *packet_end;                   /* after a packet's context that is not empty; */
    size_t packet_end_len;                    /* removed if no field follows */
};

/* The scopes and the packet's end of a form that is text for people. */
enum { KRAIT_LINE_TEXT_END = 2 };
extern const char *const krait_line_text_scopes[KRAIT_SCOPES];
#define KRAIT_LINE_TEXT \
    .scope_names = krait_line_text_scopes, .packet_end = ", ", .packet_end_len = KRAIT_LINE_TEXT_END

/* What is kept from event to event, for one reader. Starts as zeroed memory. */
struct krait_lines {
    struct krait_line_context *contexts; /* by index of the stream */
    uint32_t context_count;
    struct krait_arena arena;
    struct krait_map heads;   /* event class to its head */
    struct krait_map packets; /* stream class to its packet context's struct krait_print */
    struct krait_map texts;   /* krait_print_compile's */
    struct krait_printer printer;
    struct krait_line_head recent[KRAIT_LINE_RECENT]; /* the same by indexes, as far as it goes */
};

void krait_lines_done(struct krait_lines *lines);

/* -- slow paths of the functions below -- */

const struct krait_line_head *krait_line_find_head(struct krait_lines *lines,
                                                   const struct krait_line_form *form, void *self,
                                                   struct krait_ctf_cursor *cursor,
                                                   struct krait_line_head *recent);
struct krait_line_context *krait_line_new_packet(struct krait_lines *lines,
                                                 const struct krait_line_form *form, void *self,
                                                 struct krait_ctf_cursor *cursor);
char *krait_line_new_context(struct krait_ctf_cursor *cursor, const struct krait_print *print,
                             struct krait_line_context *context, char *to);

/* -- an event; hot path, all of them -- */

/* Where text continues after the first len bytes of `out`, with room for n bytes. NULL: memory is out. */
static inline char *krait_line_begin(struct krait_lines *lines, struct krait_ctf_cursor *cursor,
                                     struct krait_buf *out, size_t len, size_t n)
{
    lines->printer.out = out;
    cursor->d.ctx = &lines->printer;
    return krait_print_room(&cursor->d, len, n);
}

/* NULL: memory is out, or cursor->err is set. */
static inline const struct krait_line_head *krait_line_head(struct krait_lines *lines,
                                                            const struct krait_line_form *form, void *self,
                                                            struct krait_ctf_cursor *cursor)
{
    enum { APART = 97 }; /* so that classes of two streams that alternate do not share a place */
    uint32_t place = (cursor->event->index + cursor->cls->index * APART) % KRAIT_LINE_RECENT;
    struct krait_line_head *recent = &lines->recent[place];
    return KRAIT_LIKELY(recent->event == cursor->event)
               ? recent
               : krait_line_find_head(lines, form, self, cursor, recent);
}

/* NULL: memory is out. */
static inline struct krait_line_context *krait_line_context(struct krait_lines *lines,
                                                            const struct krait_line_form *form, void *self,
                                                            struct krait_ctf_cursor *cursor)
{
    uint32_t stream = cursor->stream->index;
    bool known = stream < lines->context_count && lines->contexts[stream].packet == cursor->packet;
    return KRAIT_LIKELY(known) ? &lines->contexts[stream] : krait_line_new_packet(lines, form, self, cursor);
}

/* Whether the event's context, which begins at bit `at`, has the bytes whose text is kept. It may read beyond the
 * packet, up to a page (stream.h). */
static inline bool krait_line_is_same(const struct krait_line_context *context, const struct krait_decoder *d,
                                      uint64_t at)
{
    const uint8_t *p = d->bytes + at / 8;
    if (KRAIT_UNLIKELY(at + context->size > d->end))
        return false;
    for (uint32_t i = 0; i < context->word_count; i++) {
        uint64_t mask = i + 1 == context->word_count ? context->last_mask : UINT64_MAX, word;
        memcpy(&word, p + i * sizeof(word), sizeof(word));
        if ((word ^ context->words[i]) & mask)
            return false;
    }
    return true;
}

/* Prints the packet's context, the event's contexts and fields. `to` has room for everything up to the first step that
 * asks for room; `end` is form->packet_end_len. NULL: cursor->err is set. */
static inline char *krait_line_fields(struct krait_ctf_cursor *cursor, const struct krait_print *print,
                                      struct krait_line_context *context, char *to, size_t end)
{
    struct krait_decoder *d = &cursor->d;
    uint64_t at = (d->at + context->align - 1) & ~(context->align - 1);
    bool same = krait_line_is_same(context, d, at);
    size_t len = same ? context->text.len : context->packet_len;
    krait_text_copy_lines(to, context->text.data, len);
    to += len;
    if (end && KRAIT_UNLIKELY(!print->has_text))
        to -= KRAIT_MIN(len, end);
    if (KRAIT_LIKELY(same)) {
        d->at = at + context->size;
        to = krait_print_from(d, print, print->behind_context, to);
    } else {
        to = krait_line_new_context(cursor, print, context, to);
    }
    return krait_ctf_event_passed(cursor, to != NULL) ? NULL : to;
}

/* Restores `out` to its length before the event. Returns the code of the error, which is in cursor->err. */
int krait_line_failed(struct krait_ctf_cursor *cursor, struct krait_buf *out, size_t before);

#endif
