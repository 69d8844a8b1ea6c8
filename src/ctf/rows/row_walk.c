/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows by the steps, on any machine.
 */
#include "ctf/rows/row.h"
#include "ctf/scalar/bits.h"

#include <string.h>

/* Where a walk is. */
struct walk {
    const uint8_t *base;
    const uint8_t *packet, *end;
    uint64_t *cells;
};

static uint64_t load(const uint8_t *p, unsigned bits, bool swap)
{
    uint64_t v = krait_bytes_le(p, bits / 8);
    bool be = swap == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    return be ? __builtin_bswap64(v) >> (64 - bits) : v;
}

static void set_number(const struct walk *w, const struct krait_row_step *step, uint64_t value)
{
    w->cells[step->cell] = step->flags & KRAIT_ROWF_SIGNED ? krait_sign_extend(value, step->bits) : value;
}

static void set_view(const struct walk *w, const struct krait_row_step *step, const uint8_t *from, uint64_t n)
{
    if (step->cell == KRAIT_ROW_NOWHERE)
        return;
    w->cells[step->cell] = (uintptr_t)from;
    w->cells[step->cell + 1] = n;
}

static bool do_room(struct walk *w, const struct krait_row_step *step)
{
    return step->n <= (size_t)(w->end - w->base);
}

static bool do_int(struct walk *w, const struct krait_row_step *step)
{
    set_number(w, step, load(w->base + step->off, step->bits, step->flags & KRAIT_ROWF_SWAP));
    return true;
}

static bool do_bits(struct walk *w, const struct krait_row_step *step)
{
    bool be = step->flags & KRAIT_ROWF_BE;
    set_number(w, step,
               be ? krait_bits_be(w->base, step->off, step->bits)
                  : krait_bits_le(w->base, step->off, step->bits));
    return true;
}

static bool do_float(struct walk *w, const struct krait_row_step *step)
{
    uint32_t raw = (uint32_t)load(w->base + step->off, 32, step->flags & KRAIT_ROWF_SWAP);
    float single;
    memcpy(&single, &raw, sizeof(single));
    double number = single;
    memcpy(&w->cells[step->cell], &number, sizeof(number));
    return true;
}

static bool do_text(struct walk *w, const struct krait_row_step *step)
{
    const uint8_t *from = w->base + step->off;
    set_view(w, step, from, strnlen((const char *)from, step->n));
    return true;
}

static bool do_view(struct walk *w, const struct krait_row_step *step)
{
    set_view(w, step, w->base + step->off, step->n);
    return true;
}

static bool do_string(struct walk *w, const struct krait_row_step *step)
{
    const uint8_t *from = w->base + step->off;
    const uint8_t *nul = memchr(from, 0, (size_t)(w->end - from));
    if (!nul)
        return false;
    set_view(w, step, from, (uint64_t)(nul - from));
    w->base = nul + 1;
    return true;
}

static bool do_sequence(struct walk *w, const struct krait_row_step *step)
{
    const uint8_t *from = w->base + step->off;
    uint64_t n = w->cells[step->length];
    if (n > (uint64_t)(w->end - from) / (step->bits / 8))
        return false;
    bool is_text = step->code == KRAIT_ROW_TEXT_SEQ;
    set_view(w, step, from, is_text ? strnlen((const char *)from, n) : n);
    w->base = from + n * (step->bits / 8);
    return true;
}

static bool do_align(struct walk *w, const struct krait_row_step *step)
{
    uint64_t at = (uint64_t)(w->base - w->packet) + step->off;
    at = (at + step->n - 1) & ~(uint64_t)(step->n - 1);
    w->base = w->packet + at;
    return at <= (uint64_t)(w->end - w->packet);
}

const uint8_t *krait_row_walk(const struct krait_row_class *row, const uint8_t *fields, const uint8_t *packet,
                              const uint8_t *end, uint64_t *cells)
{
    static bool (*const actions[])(struct walk *, const struct krait_row_step *) = {
        [KRAIT_ROW_ROOM] = do_room,         [KRAIT_ROW_INT] = do_int,
        [KRAIT_ROW_BITS] = do_bits,         [KRAIT_ROW_FLOAT] = do_float,
        [KRAIT_ROW_TEXT] = do_text,         [KRAIT_ROW_VIEW] = do_view,
        [KRAIT_ROW_STRING] = do_string,     [KRAIT_ROW_TEXT_SEQ] = do_sequence,
        [KRAIT_ROW_VIEW_SEQ] = do_sequence, [KRAIT_ROW_ALIGN] = do_align,
    };
    struct walk w = { .base = fields, .packet = packet, .end = end, .cells = cells };
    const struct krait_row_step *step = row->steps;
    for (; step->code != KRAIT_ROW_END; step++) {
        if (!actions[step->code](&w, step))
            return NULL;
    }
    return w.base + step->off;
}

/* -- irregular classes -- */

static void locate_field(const struct krait_row_field *field, struct krait_ctf_cursor *cursor,
                         uint64_t *cells)
{
    struct krait_value value;
    memset(cells, 0, field->count * sizeof(*cells));
    if (krait_locator_value(field->locator, cursor, &value))
        return;
    if (krait_fc_is_int(field->fc)) {
        cells[0] = krait_value_int(&value);
    } else if (field->fc->kind == KRAIT_FC_FLOAT) {
        double number = krait_value_float(&value);
        memcpy(cells, &number, sizeof(number));
    } else if (krait_node_is_text(value.node)) {
        size_t size;
        cells[0] = (uintptr_t)krait_value_text(&value, &size);
        cells[1] = size;
    } else if (value.at % 8 == 0) {
        cells[0] = (uintptr_t)(cursor->d.bytes + value.at / 8);
        cells[1] = value.count;
    }
}

void krait_row_locate(const struct krait_row_class *row, struct krait_ctf_cursor *cursor, uint64_t *cells)
{
    for (uint32_t i = 0; i < row->field_count; i++)
        locate_field(&row->fields[i], cursor, cells + row->fields[i].cell);
}
