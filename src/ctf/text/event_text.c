/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/event_text.h"

static void add_no_head(void *self, const struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
}

static unsigned text_flags(const void *self)
{
    return KRAIT_TEXT_FIELD_NAMES | KRAIT_TEXT_CONTEXT_NAMES;
}

static const struct krait_line_form form = { .add_head = add_no_head,
                                             .text_flags = text_flags,
                                             KRAIT_LINE_TEXT };

int krait_event_text(struct krait_lines *lines, struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    size_t before = out->len;
    const struct krait_line_head *head = krait_line_head(lines, &form, NULL, cursor);
    struct krait_line_context *context = krait_line_context(lines, &form, NULL, cursor);
    if (!head || !context)
        return krait_line_failed(cursor, out, before);
    char *to = krait_line_begin(lines, cursor, out, before, head->room + context->text.len);
    to = to ? krait_line_fields(cursor, head->print, context, to, KRAIT_LINE_TEXT_END) : NULL;
    if (!to)
        return krait_line_failed(cursor, out, before);
    out->len = (size_t)(to - out->data);
    return 0;
}
