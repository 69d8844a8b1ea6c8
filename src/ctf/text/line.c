/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/line.h"

#include <stdlib.h>

void krait_lines_done(struct krait_lines *lines)
{
    for (uint32_t i = 0; i < lines->context_count; i++)
        krait_buf_done(&lines->contexts[i].text);
    free(lines->contexts);
    krait_map_done(&lines->heads);
    krait_map_done(&lines->texts);
    krait_arena_done(&lines->arena);
}

KRAIT_COLD int krait_line_failed(struct krait_ctf_cursor *cursor, struct krait_buf *out, size_t before)
{
    out->len = before;
    return cursor->err.code ? cursor->err.code : krait_err_set(&cursor->err, -ENOMEM, "out of memory");
}

/* -- heads -- */

static const struct krait_program *event_program(struct krait_lines *lines,
                                                 const struct krait_line_form *form, void *self,
                                                 struct krait_ctf_cursor *cursor)
{
    struct krait_program *program = form->event_program(self, cursor);
    if (program && !program->steps && krait_print_compile(program, &cursor->reader->arena, &lines->texts))
        return NULL;
    return program;
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
    head->text = memcpy(all, text.data, text.len);
    head->len = text.len;
    head->program = event_program(lines, form, self, cursor);
    if (!head->program || krait_map_put(&lines->heads, (uintptr_t)cursor->event, (uintptr_t)head))
        return NULL;
    head->room = head->len + 2 * KRAIT_TEXT_BLOCK + head->program->steps_room;
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

/* Prints it from where it begins, and leaves the decoder where it was. Memory alone can be short: the cursor
 * was through it. */
static int print_packet(struct krait_lines *lines, const struct krait_line_form *form, void *self,
                        struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    struct krait_program *program = form->packet_program(self, cursor);
    struct krait_decoder before = cursor->d, *d = &cursor->d;
    if (!program)
        return -ENOMEM;
    if (!program->steps && krait_print_compile(program, &cursor->reader->arena, &lines->texts))
        return -ENOMEM;
    d->out = out;
    d->at = cursor->context_at;
    d->bits_be = cursor->context_be;
    char *to = krait_print_room(d, 0, program->steps_room);
    to = to ? krait_print(d, program, 0, to) : NULL;
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
static void keep(struct krait_line_context *context, const struct krait_program *program, const uint8_t *p,
                 const char *text, size_t len)
{
    size_t bytes = program->context_size;
    context->size = KRAIT_LINE_UNKNOWN; /* until all of it is kept */
    context->text.len = context->packet_len;
    if (!krait_buf_room(&context->text, len + KRAIT_TEXT_LINE))
        return;
    krait_text_add(&context->text, text, len);
    context->size = bytes * 8;
    context->align = program->context_align;
    context->word_count = (uint32_t)(bytes + 7) / 8;
    context->last_mask = 0;
    memset(&context->last_mask, 0xff, (bytes + 7) % 8 + 1);
    memcpy(context->words, p, context->word_count * 8);
}

/* Prints from the event's context on, and keeps its text. All classes of a stream have the same context: one
 * that they do not have, or whose text cannot be kept, is 0 bytes that never change. */
KRAIT_APART char *krait_line_new_context(struct krait_ctf_cursor *cursor, const struct krait_program *program,
                                         struct krait_line_context *context, char *to)
{
    struct krait_decoder *d = &cursor->d;
    size_t from = (size_t)(to - d->out->data);
    uint64_t align = program->context_align, at = (d->at + align - 1) & ~(align - 1);
    d->context_end = from;
    to = krait_print(d, program, 0, to);
    if (to)
        keep(context, program, d->bytes + at / 8, d->out->data + from, d->context_end - from);
    return to;
}
