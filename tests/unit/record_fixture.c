/* SPDX-License-Identifier: Apache-2.0 */
#include "record_fixture.h"

#include "ctf/read/cursor.h"
#include "ctf/read/loss.h"
#include "ctf/read/reader.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

/* ---- a recording in a folder of its own ---- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

void remove_folder(const char *path)
{
    nftw(path, remove_entry, 10, FTW_DEPTH | FTW_PHYS);
}

int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    strcpy(f->root, "/tmp/krait-record-XXXXXX");
    if (!mkdtemp(f->root))
        return -1;
    snprintf(f->dir, sizeof(f->dir), "%s/r", f->root);
    *state = f;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *f = *state;
    krait_collector_free(f->collector);
    remove_folder(f->root);
    free(f);
    return 0;
}

const char *own_comm(void)
{
    static char comm[16];
    prctl(PR_GET_NAME, comm);
    return comm;
}

void collect(struct fixture *f, const struct krait_collector_options *options)
{
    struct krait_collector_options all = options ? *options : (struct krait_collector_options){ 0 };
    struct krait_err err = { 0 };
    all.dir = f->dir;
    all.flags |= KRAIT_RECORD_CHILDREN;
    if (krait_collector_new(&f->collector, &all, &err))
        fail_msg("%s", err.text);
}

void join(struct fixture *f, struct krait_writer *writer)
{
    assert_int_equal(krait_writer_map(writer, krait_collector_session(f->collector)), 0);
    assert_int_equal(krait_writer_join(writer), 0);
}

struct krait_collector_summary finish(struct fixture *f)
{
    struct krait_collector_summary summary;
    krait_collector_finish(f->collector, &summary);
    return summary;
}

void leave(struct krait_writer *writer)
{
    atomic_store(&writer->proc->state, KRAIT_SLOT_CLOSED);
    krait_writer_unmap(writer);
}

/* ---- writing, as the agent does ---- */

enum krait_ring_room put_at(struct krait_writer *writer, struct krait_ring *ring, uint64_t t, uint32_t code)
{
    if (krait_ring_has_room(ring, t)) {
        krait_ring_put_code(ring, t, KRAIT_EVENT_python_call, code);
        return KRAIT_ROOM_OK;
    }
    enum krait_ring_room room = krait_writer_room(writer, ring, t, sizeof(struct krait_event_extended) + 4);
    if (room == KRAIT_ROOM_NONE)
        return room;
    if (krait_ring_has_room(ring, t))
        krait_ring_put_code(ring, t, KRAIT_EVENT_python_call, code);
    else
        krait_writer_put_extended(ring, t, KRAIT_EVENT_python_call, &code, sizeof(code));
    return room;
}

enum krait_ring_room put(struct krait_writer *writer, struct krait_ring *ring, uint32_t code)
{
    return put_at(writer, ring, krait_writer_now(writer), code);
}

bool put_event_at(struct krait_writer *writer, struct krait_ring *ring, uint64_t t, uint32_t event,
                  const void *payload, size_t n)
{
    if (krait_writer_room(writer, ring, t, sizeof(struct krait_event_extended) + n) == KRAIT_ROOM_NONE)
        return false;
    krait_writer_put_extended(ring, t, event, payload, n);
    return true;
}

bool define_at(struct krait_writer *writer, struct krait_ring *ring, uint64_t t, uint32_t id,
               const char *name)
{
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    size_t n =
        krait_put_code_define(payload, &(struct krait_payload_code_define){ .id = id,
                                                                            .kind = KRAIT_code_kind_python,
                                                                            .line = 1,
                                                                            .module = "mod",
                                                                            .qualname = name,
                                                                            .file = "file.py" });
    return put_event_at(writer, ring, t, KRAIT_EVENT_code_define, payload, n);
}

bool define(struct krait_writer *writer, struct krait_ring *ring, uint32_t id, const char *name)
{
    return define_at(writer, ring, krait_writer_now(writer), id, name);
}

/* ---- reading back ---- */

static void see_event(struct seen *seen, const struct krait_ctf_cursor *cursor, uint32_t *code)
{
    seen->events++;
    seen->defines += strcmp(cursor->event->name, "code:define") == 0;
    bool is_end = strcmp(cursor->event->name, "process:exit") == 0;
    seen->ends += is_end;
    seen->end = is_end ? cursor->ticks : seen->end;
    if (strcmp(cursor->event->name, "python:call") != 0)
        return;
    seen->calls++;
    seen->times += cursor->ticks;
    memcpy(&seen->last, cursor->d.bytes + cursor->d.at / 8, sizeof(seen->last));
    seen->out_of_turn += *code && seen->last != *code + 1;
    *code = seen->last;
}

static void see_stream(struct seen *seen, struct krait_ctf_reader *reader,
                       const struct krait_ctf_stream *stream)
{
    struct krait_ctf_cursor cursor;
    uint64_t before = 0;
    uint32_t code = 0;
    assert_int_equal(krait_ctf_cursor_init(&cursor, reader, stream), 0);
    while (krait_ctf_next(&cursor) > 0) {
        see_event(seen, &cursor, &code);
        seen->back |= cursor.ticks < before;
        before = cursor.ticks;
        assert_int_equal(krait_ctf_event_skip(&cursor), 0);
    }
    assert_string_equal(cursor.err.text, "");
    krait_ctf_cursor_done(&cursor);
    for (uint32_t i = 0; i < stream->packet_count; i++) {
        struct krait_ctf_loss losses[2];
        unsigned n = krait_ctf_losses(stream, i, losses);
        for (unsigned k = 0; k < n; k++)
            *(losses[k].kind[0] == 'e' ? &seen->losses : &seen->packet_gaps) += losses[k].count;
    }
}

struct seen look(const struct fixture *f)
{
    struct krait_ctf_reader *reader;
    struct krait_err err = { 0 };
    const char *path = f->dir;
    struct seen seen = { 0 };
    if (krait_ctf_open(&reader, &path, 1, &(struct krait_ctf_options){ 0 }, &err))
        fail_msg("%s", err.text);
    assert_string_equal(reader->damage.text, "");
    for (uint32_t i = 0; i < reader->stream_count; i++)
        see_stream(&seen, reader, reader->streams[i]);
    krait_ctf_close(reader);
    return seen;
}

/* ---- a child process that writes ---- */

struct shared *share(void)
{
    void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

void child_writer(const struct fixture *f, struct krait_writer *writer, struct krait_ring **ring)
{
    if (krait_writer_map(writer, krait_collector_session(f->collector)) || krait_writer_join(writer))
        _exit(99);
    *ring = krait_writer_ring_new(writer, KRAIT_RING_THREAD, (uint32_t)getpid());
    if (!*ring)
        _exit(98);
}

void collect_until_dead(struct fixture *f, pid_t pid)
{
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0)
        krait_collector_round(f->collector);
    krait_collector_round(f->collector);
}

int wait_status(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}
