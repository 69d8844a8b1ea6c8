/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/meta/shape.h"

static bool is_plain_int(const struct krait_fc_member *member, enum krait_meaning meaning, unsigned bits,
                         uint32_t align, bool clock)
{
    const struct krait_fc *fc = member->fc;
    return fc->kind == KRAIT_FC_INT && fc->meanings == krait_meaning_bit(meaning) && !fc->is_leb &&
           !fc->is_reversed && fc->bits == bits && fc->align == align && !fc->is_signed &&
           fc->byte_order == KRAIT_BO_LE && !!fc->clock == clock && fc->slot == KRAIT_NO_SLOT;
}

static bool is_struct(const struct krait_fc *fc, uint32_t members, uint32_t align)
{
    return fc->kind == KRAIT_FC_STRUCT && fc->count == members && fc->align == align;
}

/* The tag's highest value alone stands for the second option, all others for the first. */
static bool splits_at_top(const struct krait_fc *variant, uint64_t top)
{
    const struct krait_fc_choice *choices = variant->choices;
    return variant->choice_count == 2 && choices[0].lo == 0 && choices[0].hi == top - 1 &&
           choices[1].lo == top && choices[1].hi == top && choices[0].option == 0 && choices[1].option == 1;
}

static bool has_shape(const struct krait_fc *header, unsigned tag_bits, unsigned time_bits, uint32_t align)
{
    const struct krait_fc *tag = header->members[0].fc, *variant = header->members[1].fc;
    if (tag->meanings != krait_meaning_bit(KRAIT_MEANING_EVENT_ID) || !krait_fc_is_int(tag) ||
        tag->bits != tag_bits || tag->align != align || tag->is_signed || tag->is_leb || tag->is_reversed ||
        tag->byte_order != KRAIT_BO_LE || tag->clock)
        return false;
    if (variant->kind != KRAIT_FC_VARIANT || variant->count != 2 || variant->ref_slot != tag->slot ||
        !splits_at_top(variant, ((uint64_t)1 << tag_bits) - 1))
        return false;
    const struct krait_fc *small = variant->members[0].fc, *large = variant->members[1].fc;
    return is_struct(small, 1, align) &&
           is_plain_int(small->members, KRAIT_MEANING_NONE, time_bits, align, true) &&
           is_struct(large, 2, 8) && is_plain_int(&large->members[0], KRAIT_MEANING_EVENT_ID, 32, 8, false) &&
           is_plain_int(&large->members[1], KRAIT_MEANING_NONE, 64, 8, true);
}

enum krait_header_shape krait_header_shape(const struct krait_fc *header)
{
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || !header || !is_struct(header, 2, 8))
        return KRAIT_SHAPE_OTHER;
    if (has_shape(header, 5, 27, 1))
        return KRAIT_SHAPE_COMPACT;
    return has_shape(header, 16, 32, 8) ? KRAIT_SHAPE_LARGE : KRAIT_SHAPE_OTHER;
}

/* -- flat headers -- */

static uint32_t align_up(uint32_t at, uint32_t align)
{
    return (at + align - 1) & ~(align - 1);
}

/* Takes an integer at bit `at`; false where it is not whole and plain. */
static bool take_flat_int(struct krait_header_form *form, const struct krait_fc *fc, uint32_t at)
{
    bool is_id = fc->meanings & krait_meaning_bit(KRAIT_MEANING_EVENT_ID);
    if (!krait_fc_is_whole(fc) || at % 8 || fc->is_leb || fc->is_reversed || fc->is_signed ||
        (fc->byte_order != KRAIT_BO_LE && fc->bits > 8) || (is_id && form->id_bits) ||
        (fc->clock && form->time_bits))
        return false;
    if (is_id) {
        form->id_at = at / 8;
        form->id_bits = fc->bits;
    }
    if (fc->clock) {
        form->time_at = at / 8;
        form->time_bits = fc->bits;
    }
    return true;
}

static bool take_flat(struct krait_header_form *form, const struct krait_fc *fc, uint32_t *at)
{
    *at = align_up(*at, fc->align);
    if (krait_fc_is_int(fc)) {
        bool ok = take_flat_int(form, fc, *at);
        *at += fc->bits;
        return ok;
    }
    bool ok = fc->kind == KRAIT_FC_STRUCT;
    for (uint32_t i = 0; ok && i < fc->count; i++)
        ok = take_flat(form, fc->members[i].fc, at);
    return ok;
}

void krait_header_form(struct krait_header_form *form, const struct krait_stream_class *cls)
{
    const struct krait_fc *header = cls->event_header;
    uint32_t at = 0;
    *form = (struct krait_header_form){ .shape = krait_header_shape(header), .align = 1 };
    if (form->shape != KRAIT_SHAPE_OTHER || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || !header ||
        header->align < 8 || header->align > 64 || !take_flat(form, header, &at) || !at)
        return;
    if (!form->id_bits && cls->event_count != 1)
        return;
    form->only_id = form->id_bits ? 0 : cls->events[0]->id;
    form->align = header->align / 8;
    form->size = at / 8;
    form->shape = KRAIT_SHAPE_FLAT;
}
