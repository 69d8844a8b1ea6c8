/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/line.h"

#include <stdlib.h>

const char *const krait_line_text_scopes[KRAIT_SCOPES] = { "stream.packet.context", "stream.event.context",
                                                           "event.context", "event.fields" };

void krait_lines_done(struct krait_lines *lines)
{
    for (uint32_t i = 0; i < lines->context_count; i++)
        krait_buf_done(&lines->contexts[i].text);
    free(lines->contexts);
    krait_map_done(&lines->heads);
    krait_map_done(&lines->packets);
    krait_map_done(&lines->texts);
    krait_arena_done(&lines->arena);
}

KRAIT_COLD int krait_line_failed(struct krait_ctf_cursor *cursor, struct krait_buf *out, size_t before)
{
    out->len = before;
    return cursor->err.code ? cursor->err.code : krait_err_set(&cursor->err, -ENOMEM, "out of memory");
}

/* -- heads -- */

/* How some of the scopes of the cursor's event are printed, of which the program is. NULL: memory is out. */
static const struct krait_print *new_print(struct krait_lines *lines, const struct krait_line_form *form,
                                           const void *self, const struct krait_ctf_cursor *cursor,
                                           const struct krait_program *program, enum krait_scope first,
                                           enum krait_scope last)
{
    struct krait_words_plan plan = { .program = program,
                                     .event = cursor->event,
                                     .first = first,
                                     .last = last,
                                     .flags = form->text_flags(self),
                                     .scope_names = form->scope_names };
    struct krait_print *print = program ? KRAIT_ARENA_NEW(&lines->arena, struct krait_print) : NULL;
    return print && !krait_print_compile(print, &lines->arena, &plan, &lines->texts) ? print : NULL;
}

static struct krait_line_head *new_head(struct krait_lines *lines, const struct krait_line_form *form,
                                        void *self, struct krait_ctf_cursor *cursor)
{
    KRAIT_AUTO_BUF text = { 0 };
    form->add_head(self, cursor, &text);
    struct krait_line_head *head = KRAIT_ARENA_NEW(&lines->arena, struct krait_line_head);
    if (!head || text.failed)
        return NULL;
    head->event = cursor->event;
    char *all = krait_arena_alloc(&lines->arena, text.len + KRAIT_TEXT_LINE);
    if (!all)
        return NULL;
    if (text.len) /* a form may have no head */
        memcpy(all, text.data, text.len);
    head->text = all;
    head->len = text.len;
    head->print = new_print(lines, form, self, cursor, krait_ctf_event_program(cursor),
                            KRAIT_SCOPE_COMMON_CONTEXT, KRAIT_SCOPE_PAYLOAD);
    if (!head->print || krait_map_put(&lines->heads, (uintptr_t)cursor->event, (uintptr_t)head))
        return NULL;
    head->room = head->len + 2 * KRAIT_TEXT_BLOCK + head->print->steps_room;
    return head;
}

KRAIT_COLD const struct krait_line_head *krait_line_find_head(struct krait_lines *lines,
                                                              const struct krait_line_form *form, void *self,
                                                              struct krait_ctf_cursor *cursor,
                                                              struct krait_line_head *recent)
{
    const uint64_t *known = krait_map_get(&lines->heads, (uintptr_t)cursor->event);
    const struct krait_line_head *head =
        known ? (const struct krait_line_head *)(uintptr_t)*known : new_head(lines, form, self, cursor);
    if (!head)
        return NULL;
    *recent = *head;
    return recent;
}

/* -- contexts -- */

static const struct krait_print *packet_print(struct krait_lines *lines, const struct krait_line_form *form,
                                              const void *self, const struct krait_ctf_cursor *cursor)
{
    const uint64_t *known = krait_map_get(&lines->packets, (uintptr_t)cursor->cls);
    if (known)
        return (const struct krait_print *)(uintptr_t)*known;
    const struct krait_print *print = new_print(lines, form, self, cursor, &cursor->code->packet_context,
                                                KRAIT_SCOPE_PACKET_CONTEXT, KRAIT_SCOPE_PACKET_CONTEXT);
    return print && !krait_map_put(&lines->packets, (uintptr_t)cursor->cls, (uintptr_t)print) ? print : NULL;
}

/* Prints it from where it begins, and leaves the decoder where it was. Memory alone can be short: the cursor
 * was through it. */
static int print_packet(struct krait_lines *lines, const struct krait_line_form *form, const void *self,
                        struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    const struct krait_print *print = packet_print(lines, form, self, cursor);
    struct krait_decoder before = cursor->d, *d = &cursor->d;
    if (!print)
        return -ENOMEM;
    d->at = cursor->context_at;
    d->bits_be = cursor->context_be;
    char *to = krait_line_begin(lines, cursor, out, 0, print->steps_room);
    to = to ? krait_print_from(d, print, 0, to) : NULL;
    *d = before;
    if (!to)
        return -ENOMEM;
    out->len = (size_t)(to - out->data);
    if (out->len)
        krait_text_add(out, form->packet_end, form->packet_end_len);
    return krait_buf_room(out, KRAIT_TEXT_LINE) ? 0 : -ENOMEM;
}

KRAIT_COLD struct krait_line_context *krait_line_new_packet(struct krait_lines *lines,
                                                            const struct krait_line_form *form, void *self,
                                                            struct krait_ctf_cursor *cursor)
{
    uint32_t count = cursor->reader->stream_count;
    if (!lines->contexts) {
        lines->contexts = calloc(count, sizeof(*lines->contexts));
        if (!lines->contexts)
            return NULL;
        lines->context_count = count;
    }
    struct krait_line_context *context = &lines->contexts[cursor->stream->index];
    context->packet = NULL;
    context->size = KRAIT_LINE_UNKNOWN;
    krait_buf_clear(&context->text);
    if (print_packet(lines, form, self, cursor, &context->text))
        return NULL;
    context->packet = cursor->packet;
    context->packet_len = context->text.len;
    return context;
}

/* Keeps the text of an event's context, which is what its bytes at `p` make. */
static void keep(struct krait_line_context *context, const struct krait_print *print, const uint8_t *p,
                 const char *text, size_t len)
{
    size_t bytes = print->context_size;
    context->size = KRAIT_LINE_UNKNOWN; /* until all of it is kept */
    context->text.len = context->packet_len;
    if (!krait_buf_room(&context->text, len + KRAIT_TEXT_LINE))
        return;
    krait_text_add(&context->text, text, len);
    context->size = bytes * 8;
    context->align = print->context_align;
    context->word_count = (uint32_t)(bytes + 7) / 8;
    context->last_mask = 0;
    memset(&context->last_mask, 0xff, (bytes + 7) % 8 + 1);
    memcpy(context->words, p, context->word_count * 8);
}

/* Prints from the event's context on, and keeps its text. All classes of a stream have the same context: one
 * that they do not have, or whose text cannot be kept, is 0 bytes that never change. */
KRAIT_APART char *krait_line_new_context(struct krait_ctf_cursor *cursor, const struct krait_print *print,
                                         struct krait_line_context *context, char *to)
{
    struct krait_decoder *d = &cursor->d;
    struct krait_printer *printer = krait_printer_of(d);
    size_t from = (size_t)(to - printer->out->data);
    uint64_t align = print->context_align, at = (d->at + align - 1) & ~(align - 1);
    printer->context_end = from;
    to = krait_print_from(d, print, 0, to);
    if (to)
        keep(context, print, d->bytes + at / 8, printer->out->data + from, printer->context_end - from);
    return to;
}
