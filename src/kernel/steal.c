/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/steal.h"

#include "base/buf.h"

#include <string.h>

static const struct krait_kernel_field fields[] = { { "cpu", KRAIT_KTYPE_U32 },
                                                    { "total_ns", KRAIT_KTYPE_U64 } };

/* "cpu0 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...": proc(5). The line "cpu" is their sum. */
static void parse_line(const char *line, uint64_t hz,
                       void (*each)(void *ctx, uint32_t cpu, uint64_t total_ns), void *ctx)
{
    unsigned cpu;
    unsigned long long steal;
    if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %llu", &cpu, &steal) == 2)
        each(ctx, cpu, (uint64_t)((unsigned __int128)steal * KRAIT_NS_PER_S / hz));
}

void krait_steal_parse(const char *text, uint64_t hz,
                       void (*each)(void *ctx, uint32_t cpu, uint64_t total_ns), void *ctx)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "cpu", 3) == 0 && line[3] >= '0' && line[3] <= '9')
            parse_line(line, hz, each, ctx);
    }
}

int krait_steal_declare(struct krait_kernel_classes *classes)
{
    return krait_kernel_classes_declare(classes, "krait_steal", fields, KRAIT_ARRAY_LEN(fields));
}

struct writer {
    uint16_t id;
    struct krait_kernel_stream *stream;
    uint64_t time;
    int rc;
};

static void write_one(void *ctx, uint32_t cpu, uint64_t total_ns)
{
    struct writer *w = ctx;
    int rc = 0;
    uint8_t *to = krait_kernel_stream_begin(w->stream, w->id, w->time, KRAIT_KERNEL_NO_TID,
                                            sizeof(cpu) + sizeof(total_ns), &rc);
    w->rc = w->rc ? w->rc : to ? rc : -ENOMEM;
    if (!to)
        return;
    memcpy(to, &cpu, sizeof(cpu));
    memcpy(to + sizeof(cpu), &total_ns, sizeof(total_ns));
    krait_kernel_stream_end(w->stream, sizeof(cpu) + sizeof(total_ns));
}

int krait_steal_write(uint16_t id, struct krait_kernel_stream *stream, const struct krait_clock *clock)
{
    KRAIT_AUTO_BUF text = { 0 };
    struct writer w = { .id = id, .stream = stream };
    long hz = sysconf(_SC_CLK_TCK);
    int rc = krait_buf_read_file(&text, "/proc/stat");
    if (rc || hz <= 0 || !text.data)
        return text.failed ? -ENOMEM : 0;
    w.time = krait_clock_now(clock);
    krait_steal_parse(text.data, (uint64_t)hz, write_one, &w);
    int flushed = krait_kernel_stream_flush(stream);
    return w.rc ? w.rc : flushed;
}
