/* SPDX-License-Identifier: Apache-2.0
 *
 * gen_trace OUTDIR EVENTS [FUNCTIONS] [THREADS]: writes a large recording of a program that does not exist,
 * always the same, by the code that real recordings are written with. For measuring what reads them.
 *
 * The program: each function, Python or C, calls a few others again and again, the popular ones most (Zipf);
 * stacks are some twenty deep with deeper excursions; a call takes about 100 ns and now and then much longer.
 */
#include "event/payload.h"
#include "record/tracedir.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { PACKET = 64 * 1024, DEPTH = 400, CALLEES = 8 };

#define EPOCH_NS 1767225600000000000ull

struct gen {
    struct krait_tracedir *dir;
    struct krait_stream *stream;
    uint64_t seed, t, last;
    uint32_t functions;
    uint32_t *callees; /* CALLEES of each function */
    bool *is_c;
    size_t n;
    uint8_t bytes[PACKET + 64];
};

static uint32_t dice(struct gen *g)
{
    g->seed = g->seed * 6364136223846793005ull + 1442695040888963407ull; /* Knuth's MMIX generator */
    return (uint32_t)(g->seed >> 33);
}

static void die(const char *why)
{
    fprintf(stderr, "gen_trace: %s\n", why);
    exit(1);
}

static void flush(struct gen *g)
{
    struct krait_err err;
    struct krait_packet_head *head = (struct krait_packet_head *)g->bytes;
    if (g->n <= sizeof(*head))
        return;
    head->timestamp_end = g->last;
    if (krait_tracedir_write(g->dir, g->stream, head, head + 1, g->n - sizeof(*head), &err))
        die(err.text);
    g->n = 0;
}

static void put(struct gen *g, uint32_t id, const void *payload, size_t n)
{
    if (g->n + n + 16 > PACKET)
        flush(g);
    if (!g->n) {
        struct krait_packet_head head = { .timestamp_begin = g->t };
        memcpy(g->bytes, &head, sizeof(head));
        g->n = sizeof(head);
        g->last = g->t;
    }
    if (g->t >> KRAIT_CTF_TS_BITS != g->last >> KRAIT_CTF_TS_BITS || n > 8) {
        g->n += krait_head_extend(g->bytes + g->n, id, g->t);
    } else {
        uint32_t word = krait_head_pack(id, g->t);
        memcpy(g->bytes + g->n, &word, sizeof(word));
        g->n += sizeof(word);
    }
    memcpy(g->bytes + g->n, payload, n);
    g->n += n;
    g->last = g->t;
}

static void define(struct gen *g, uint32_t id)
{
    char module[64], name[64], file[64] = "";
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    snprintf(module, sizeof(module), "package.module%u", id % 97);
    snprintf(name, sizeof(name), "Class%u.method_%u", id % 31, id);
    if (!g->is_c[id])
        snprintf(file, sizeof(file), "/usr/lib/python3/package/module%u.py", id % 97);
    size_t n =
        krait_put_code_define(payload, &(struct krait_payload_code_define){
                                           .id = id,
                                           .kind = g->is_c[id] ? KRAIT_code_kind_c : KRAIT_code_kind_python,
                                           .line = g->is_c[id] ? 0 : id * 7,
                                           .module = module,
                                           .qualname = name,
                                           .file = file,
                                       });
    put(g, KRAIT_EVENT_code_define, payload, n);
    uint64_t first, last;
    n += sizeof(struct krait_event_extended);
    krait_tracedir_define(g->dir, g->bytes + g->n - n, n, &first, &last);
}

static void define_all(struct gen *g)
{
    for (uint32_t id = 1; id <= g->functions; id++) {
        g->is_c[id] = dice(g) % 3 == 0;
        for (uint32_t i = 0; i < CALLEES; i++) { /* few are called from everywhere */
            double u = (dice(g) % 1000000 + 1) / 1000000.0;
            g->callees[id * CALLEES + i] = 1 + (uint32_t)(pow(u, 3) * (g->functions - 1));
        }
        define(g, id);
    }
    flush(g);
}

static void step(struct gen *g)
{
    uint32_t r = dice(g);
    g->t += 20 + r % 60;
    if (r % 997 == 0)
        g->t += dice(g) % 200000;
}

/* One thread's run: up or down by chance, drawn to a depth of some twenty. */
static void run_thread(struct gen *g, uint64_t events)
{
    uint32_t stack[DEPTH];
    uint32_t depth = 0;
    while (events) {
        step(g);
        bool in_c = depth && g->is_c[stack[depth - 1]];
        bool call = depth == 0 ||
                    (depth < DEPTH && dice(g) % 100 < (depth < 20 ? 60u : 40u) && !(in_c && dice(g) % 8));
        events--;
        if (!call) {
            depth--;
            put(g, g->is_c[stack[depth]] ? KRAIT_EVENT_c_return : KRAIT_EVENT_python_return, NULL, 0);
            continue;
        }
        uint32_t code = depth ? g->callees[stack[depth - 1] * CALLEES + dice(g) % CALLEES] : 1 + dice(g) % 3;
        stack[depth++] = code;
        put(g, g->is_c[code] ? KRAIT_EVENT_c_call : KRAIT_EVENT_python_call, &code, sizeof(code));
    }
    flush(g);
}

int main(int argc, char **argv)
{
    static struct gen g = { .seed = 1 };
    uint64_t events = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    g.functions = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 3000;
    uint32_t threads = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 1;
    if (!events || !g.functions || !threads || (mkdir(argv[1], 0777) < 0 && errno != EEXIST))
        die("usage: gen_trace OUTDIR EVENTS [FUNCTIONS] [THREADS]");
    struct krait_clock clock = { .freq = KRAIT_NS_PER_S, .first = { .realtime_ns = EPOCH_NS } };
    struct krait_tracedir_options options = {
        .parent = argv[1], .name = "python3", .pid = 1000, .command = "python3 app.py", .clock = &clock
    };
    struct krait_err err;
    g.callees = calloc((size_t)g.functions + 1, CALLEES * sizeof(*g.callees));
    g.is_c = calloc((size_t)g.functions + 1, sizeof(*g.is_c));
    if (!g.callees || !g.is_c)
        die("out of memory");
    if (krait_tracedir_new(&g.dir, &options, &err) || krait_tracedir_stream(g.dir, 0, &g.stream, &err))
        die(err.text);
    define_all(&g);
    for (uint32_t i = 0; i < threads; i++) {
        g.t = i * 1000;
        if (krait_tracedir_stream(g.dir, 1000 + i, &g.stream, &err))
            die(err.text);
        run_thread(&g, events / threads);
    }
    if (krait_tracedir_write_metadata(g.dir, &err))
        die(err.text);
    krait_tracedir_free(g.dir);
    free(g.callees);
    free(g.is_c);
    return 0;
}
