/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks, spans, counters and flows for C and C++ code that is part of a recorded Python program, as krait.mark and the
 * others are for Python code. This header is all that you need; there is no library to link.
 *
 *   #include <krait/annotate.h>
 *
 *   krait_annotate_mark("order", "{\"id\":7}");         the fields are a JSON object, or NULL
 *   krait_annotate_counter("queue", length);
 *   krait_annotate_flow(order_id);
 *   uint64_t span = krait_annotate_span_begin("load", NULL);
 *   ...
 *   krait_annotate_span_end(span, NULL);
 *
 * While nobody records, each call costs one load and a branch that is not taken.
 *
 * Call them on any thread, with or without the GIL, but not from signal handlers. They change neither errno nor any state
 * of Python. Texts are UTF-8. krait cuts the text of a mark at 1 KiB, and leaves out fields of more than 1.5 KiB. Use few
 * different names for spans and counters: after some thousand, krait does not record new ones.
 *
 * The recorder sets krait_annotate_recorder: `krait record` in everything that is loaded, krait.start() in the shared
 * objects that are loaded at that moment. An executable that embeds Python must export it: link with -rdynamic.
 *
 * The struct only grows; `size` is the size that the recorder knows.
 */
#ifndef KRAIT_ANNOTATE_H
#define KRAIT_ANNOTATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct krait_annotate_functions {
    size_t size;
    void (*mark)(const char *text, const char *fields);
    uint64_t (*span_begin)(const char *name, const char *fields);
    void (*span_end)(uint64_t span, const char *fields);
    void (*counter)(const char *name, double value);
    void (*flow)(uint64_t id);
};

/* NULL: nobody records. All files that include this header share one, which the dynamic linker finds. */
__attribute__((weak, visibility("default"))) const struct krait_annotate_functions *krait_annotate_recorder;

static inline const struct krait_annotate_functions *krait_annotate_now(void)
{
    return __atomic_load_n(&krait_annotate_recorder, __ATOMIC_ACQUIRE);
}

static inline void krait_annotate_mark(const char *text, const char *fields)
{
    const struct krait_annotate_functions *now = krait_annotate_now();
    if (__builtin_expect(now != NULL, 0))
        now->mark(text, fields);
}

/* Returns 0 while nobody records; krait_annotate_span_end(0) does nothing. A span may end on another thread. */
static inline uint64_t krait_annotate_span_begin(const char *name, const char *fields)
{
    const struct krait_annotate_functions *now = krait_annotate_now();
    return __builtin_expect(now != NULL, 0) ? now->span_begin(name, fields) : 0;
}

static inline void krait_annotate_span_end(uint64_t span, const char *fields)
{
    const struct krait_annotate_functions *now = span ? krait_annotate_now() : NULL;
    if (__builtin_expect(now != NULL, 0))
        now->span_end(span, fields);
}

static inline void krait_annotate_counter(const char *name, double value)
{
    const struct krait_annotate_functions *now = krait_annotate_now();
    if (__builtin_expect(now != NULL, 0))
        now->counter(name, value);
}

static inline void krait_annotate_flow(uint64_t id)
{
    const struct krait_annotate_functions *now = krait_annotate_now();
    if (__builtin_expect(now != NULL, 0))
        now->flow(id);
}

#ifdef __cplusplus
}

namespace krait
{
/* A span that lasts until the end of the block: krait::span span("load"); */
class span
{
  public:
    explicit span(const char *name, const char *fields = nullptr)
        : id(krait_annotate_span_begin(name, fields))
    {
    }
    ~span()
    {
        krait_annotate_span_end(id, nullptr);
    }
    span(const span &) = delete;
    span &operator=(const span &) = delete;

  private:
    uint64_t id;
};
} // namespace krait
#endif

#endif
