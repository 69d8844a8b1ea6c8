/* SPDX-License-Identifier: Apache-2.0
 *
 * How a stack is written: python:frame for each Python frame, outermost first, then python:stack. If the depth needs
 * more than 16 bits, python:deep_frame and python:deep_stack.
 */
#ifndef KRAIT_RECORD_FRAMES_H
#define KRAIT_RECORD_FRAMES_H

#include "event/payload.h"

/* Room for the payload of any of them. */
enum { KRAIT_FRAME_BYTES = KRAIT_BYTES_python_deep_frame };

/* Writes the payload of a frame with `depth` others below it. Sets *n to its bytes; returns the id of the event. */
static inline uint32_t krait_put_frame(uint8_t *to, uint32_t code, uint32_t depth, size_t *n)
{
    if (KRAIT_UNLIKELY(depth > UINT16_MAX)) {
        *n = krait_put_python_deep_frame(
            to, &(struct krait_payload_python_deep_frame){ .code = code, .depth = depth });
        return KRAIT_EVENT_python_deep_frame;
    }
    *n = krait_put_python_frame(
        to, &(struct krait_payload_python_frame){ .code = code, .depth = (uint16_t)depth });
    return KRAIT_EVENT_python_frame;
}

/* The same for the end of a stack of `depth` frames. */
static inline uint32_t krait_put_depth(uint8_t *to, uint32_t depth, size_t *n)
{
    if (KRAIT_UNLIKELY(depth > UINT16_MAX)) {
        *n = krait_put_python_deep_stack(to, &(struct krait_payload_python_deep_stack){ .depth = depth });
        return KRAIT_EVENT_python_deep_stack;
    }
    *n = krait_put_python_stack(to, &(struct krait_payload_python_stack){ .depth = (uint16_t)depth });
    return KRAIT_EVENT_python_stack;
}

#endif
