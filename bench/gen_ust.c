/* SPDX-License-Identifier: Apache-2.0
 *
 * gen_ust OUTDIR EVENTS [CPUS]: writes what LTTng-UST would have recorded of a server that does not exist,
 * always the same: OUTDIR/ctf1 with metadata in TSDL as LTTng 2.13 writes it, OUTDIR/ctf2 with JSON as LTTng
 * 2.16 does. The streams are the same files: two channels for each CPU, one with LTTng's compact event header
 * and one with the large one. What events there are is said in ust_events.c.
 */
#include "lttng_packet.h"
#include "ust_events.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENT_BYTES = 2048, DEPTH = 64, WHEEL = 4096, THREADS = 6, PROCESS = 4711 };

static const uint8_t UUID[16] = { 0x2c, 0x6b, 0xf1, 0x5a, 0x6b, 0x29, 0x4d, 0x2a,
                                  0x9c, 0x3f, 0x8d, 0x1a, 0x0f, 0x6b, 0x7e, 0x55 };

struct stream {
    const struct ust_channel *channel;
    FILE *file;
    uint64_t seed, now, last, count, packets;
    uint64_t stack[DEPTH];
    unsigned depth, cpu, thread;
    uint8_t wheel[WHEEL]; /* classes, each as often as its weight says */
    size_t n, event_n;
    struct packet_head head;
    uint8_t event[EVENT_BYTES];
    uint8_t *packet;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "gen_ust: %s: %s\n", what, why);
    exit(1);
}

static uint32_t dice(struct stream *s)
{
    s->seed = s->seed * 6364136223846793005ull + 1442695040888963407ull; /* Knuth's MMIX generator */
    return (uint32_t)(s->seed >> 33);
}

static void put(struct stream *s, const void *bytes, size_t n)
{
    memcpy(s->event + s->event_n, bytes, n);
    s->event_n += n;
}

/* ---- values ---- */

static uint64_t enter(struct stream *s)
{
    uint32_t a = dice(s) % 3000, b = dice(s) % 3000; /* low ones are called more often */
    uint64_t address = 0x55d0c0401000u + 64ull * (a < b ? a : b);
    s->stack[s->depth % DEPTH] = address;
    s->depth++;
    return address;
}

static uint64_t leave(struct stream *s)
{
    if (!s->depth)
        return 0x55d0c0400ff0u;
    return s->stack[--s->depth % DEPTH];
}

static uint64_t integer(struct stream *s, const struct ust_field *f)
{
    uint64_t span = f->words ? f->words->count : (uint64_t)(f->high - f->low) + 1;
    switch (f->source) {
    case UST_POINTER:
        return 0x7f31a0000000u + 16ull * (dice(s) & 0xfffff);
    case UST_COUNT:
        return s->count;
    case UST_CALL:
        return enter(s);
    case UST_RETURN:
        return leave(s);
    case UST_THREAD:
        return PROCESS + s->thread;
    case UST_PROCESS:
        return PROCESS;
    default:
        return (uint64_t)f->low + dice(s) % span;
    }
}

static void put_integer(struct stream *s, const struct ust_field *f)
{
    uint64_t value = integer(s, f);
    put(s, &value, f->bits / 8);
}

static void put_float(struct stream *s, const struct ust_field *f)
{
    double value = (double)dice(s) / (1u << 31) * (double)f->high;
    float narrow = (float)value;
    put(s, f->bits == 32 ? (const void *)&narrow : &value, f->bits / 8);
}

static void put_string(struct stream *s, const struct ust_field *f)
{
    unsigned words = 1 + dice(s) % f->length;
    for (unsigned i = 0; i < words; i++) {
        const char *word = f->words->word[dice(s) % f->words->count];
        if (i)
            put(s, " ", 1);
        put(s, word, strlen(word));
    }
    put(s, "", 1);
}

static void put_text(struct stream *s, const struct ust_field *f)
{
    char text[64] = { 0 };
    if (f->source == UST_NAME)
        snprintf(text, f->length, s->thread ? "worker-%u" : "server", s->thread);
    else
        snprintf(text, f->length, "%s", f->words->word[dice(s) % f->words->count]);
    put(s, text, f->length);
}

static void put_integers(struct stream *s, const struct ust_field *f, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        put_integer(s, f);
}

static void put_array(struct stream *s, const struct ust_field *f)
{
    put_integers(s, f, f->length);
}

static void put_sequence(struct stream *s, const struct ust_field *f)
{
    uint64_t count = dice(s) % (f->length + 1u);
    put(s, &count, sizeof(count));
    put_integers(s, f, count);
}

static void (*const PUT[])(struct stream *s, const struct ust_field *f) = {
    [UST_UNSIGNED] = put_integer,  [UST_SIGNED] = put_integer, [UST_FLOAT] = put_float,
    [UST_STRING] = put_string,     [UST_TEXT] = put_text,      [UST_ARRAY] = put_array,
    [UST_SEQUENCE] = put_sequence,
};

static void put_fields(struct stream *s, const struct ust_field *f, size_t most)
{
    for (size_t i = 0; i < most && f[i].name; i++)
        PUT[f[i].kind](s, &f[i]);
}

/* ---- events and packets ---- */

static void put_whole_header(struct stream *s, uint32_t id)
{
    put(s, &id, sizeof(id));
    put(s, &s->now, sizeof(s->now));
}

static void put_compact_header(struct stream *s, uint32_t id)
{
    uint32_t word = (uint32_t)(s->now << 5) | id;
    if (s->now >> 27 == s->last >> 27) {
        put(s, &word, sizeof(word));
        return;
    }
    put(s, &(uint8_t){ 31 }, 1);
    put_whole_header(s, id);
}

static void put_large_header(struct stream *s, uint32_t id)
{
    bool whole = s->now >> 32 != s->last >> 32;
    put(s, &(uint16_t){ whole ? 65535 : (uint16_t)id }, 2);
    if (whole)
        put_whole_header(s, id);
    else
        put(s, &(uint32_t){ (uint32_t)s->now }, 4);
}

static void flush(struct stream *s)
{
    size_t size = (s->n + 4095) / 4096 * 4096;
    if (!s->n)
        return;
    s->head.timestamp_end = s->last;
    s->head.content_size = 8 * s->n;
    s->head.packet_size = 8 * size;
    s->head.packet_seq_num = s->packets++;
    memcpy(s->packet, &s->head, sizeof(s->head));
    memset(s->packet + s->n, 0, size - s->n);
    if (fwrite(s->packet, 1, size, s->file) != size)
        die(s->channel->name, strerror(errno));
    s->n = 0;
}

static void commit(struct stream *s)
{
    if (s->n + s->event_n > s->channel->packet)
        flush(s);
    if (!s->n) {
        s->n = sizeof(s->head);
        s->head.timestamp_begin = s->now;
    }
    memcpy(s->packet + s->n, s->event, s->event_n);
    s->n += s->event_n;
    s->last = s->now;
}

/* Bursts of some hundred ns an event, waits of some ms, and another thread after each wait. */
static void step(struct stream *s)
{
    uint32_t r = dice(s);
    s->now += 100 + r % 500;
    if (r % 701 == 0) {
        s->now += dice(s) % 3000000;
        s->thread = dice(s) % THREADS;
    }
    if (r % 99991 == 0)
        s->now += dice(s) % 400000000;
}

static void one_event(struct stream *s)
{
    uint32_t id = s->wheel[dice(s) % WHEEL];
    const struct ust_channel *channel = s->channel;
    step(s);
    s->count++;
    s->event_n = 0;
    (channel->large ? put_large_header : put_compact_header)(s, id);
    put_fields(s, channel->context, sizeof(channel->context) / sizeof(*channel->context));
    put_fields(s, channel->events[id].fields, UST_FIELDS);
    commit(s);
}

static void fill_wheel(struct stream *s)
{
    unsigned sum = 0, at = 0;
    for (unsigned i = 0; i < s->channel->count; i++)
        sum += s->channel->events[i].weight;
    for (unsigned i = 0, so_far = 0; i < s->channel->count; i++) {
        so_far += s->channel->events[i].weight;
        while (at < so_far * WHEEL / sum)
            s->wheel[at++] = (uint8_t)i;
    }
}

/* ---- files ---- */

static void run_stream(const char *dir, unsigned channel, unsigned cpu, uint64_t events)
{
    static struct stream s;
    char from[4096], to[4096];
    const struct ust_channel *c = &ust_channels[channel];
    snprintf(from, sizeof(from), "%s/ctf1/%s_%u", dir, c->name, cpu);
    snprintf(to, sizeof(to), "%s/ctf2/%s_%u", dir, c->name, cpu);
    s = (struct stream){
        .channel = c,
        .seed = channel * 100 + cpu,
        .now = 1000000000 + cpu * 777,
        .head = { .magic = 0xc1fc1fc1, .stream_id = channel, .stream_instance_id = cpu, .cpu_id = cpu },
        .packet = malloc(c->packet + 4096),
        .file = fopen(from, "wb")
    };
    memcpy(s.head.uuid, UUID, sizeof(UUID));
    if (!s.file || !s.packet)
        die(from, strerror(errno));
    fill_wheel(&s);
    for (uint64_t i = 0; i < events; i++)
        one_event(&s);
    flush(&s);
    free(s.packet);
    if (fclose(s.file))
        die(from, strerror(errno));
    unlink(to);
    if (link(from, to))
        die(to, strerror(errno));
}

static void write_metadata(const char *dir, const char *version, void (*write)(struct krait_buf *))
{
    KRAIT_AUTO_BUF text = { 0 };
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s/metadata", dir, version);
    write(&text);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(text.data, 1, text.len, file) != text.len || fclose(file))
        die(path, strerror(errno));
}

static void make_folder(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s%s", dir, name);
    if (mkdir(path, 0777) && errno != EEXIST)
        die(path, strerror(errno));
}

int main(int argc, char **argv)
{
    uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    unsigned cpus = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 4;
    if (!events || !cpus)
        die("usage", "gen_ust OUTDIR EVENTS [CPUS]");
    ust_channels_complete();
    make_folder(argv[1], "");
    make_folder(argv[1], "/ctf1");
    make_folder(argv[1], "/ctf2");
    write_metadata(argv[1], "ctf1", ust_metadata_tsdl);
    write_metadata(argv[1], "ctf2", ust_metadata_json);
    for (unsigned i = 0; i < cpus * UST_CHANNELS; i++) {
        uint64_t first = events * i / (cpus * UST_CHANNELS), end = events * (i + 1) / (cpus * UST_CHANNELS);
        run_stream(argv[1], i % UST_CHANNELS, i / UST_CHANNELS, end - first);
    }
    return 0;
}
