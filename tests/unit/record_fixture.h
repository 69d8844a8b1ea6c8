/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of recording share: a recording in a folder of its own, writers as the agent has them, and what is on
 * disk at the end.
 */
#ifndef KRAIT_TESTS_RECORD_FIXTURE_H
#define KRAIT_TESTS_RECORD_FIXTURE_H

#include "record/collector.h"
#include "record/writer.h"

struct fixture {
    char root[32]; /* removed at the end, with all that is in it */
    char dir[48];  /* of the recording */
    struct krait_collector *collector;
};

/* What is on disk. */
struct seen {
    uint64_t events, calls, defines, ends;
    uint64_t losses;      /* events, as the packets tell */
    uint64_t packet_gaps; /* packets, by their sequence numbers */
    uint64_t out_of_turn; /* calls whose code is not that of the one before in the stream plus one */
    uint32_t last;        /* code */
    uint64_t times;       /* of all calls, added up */
    uint64_t end;         /* of the process that is read last */
    bool back;            /* a time went back in a stream */
};

/* Private to a test and its child. */
struct shared {
    _Atomic uint64_t published;
    _Atomic int go;
};

int set_up(void **state);
int tear_down(void **state);
void remove_folder(const char *path);
/* This program's name as the kernel has it, which it cuts: what its trace folder is called. */
const char *own_comm(void);
/* Begins the recording; NULL: with the default options. */
void collect(struct fixture *f, const struct krait_collector_options *options);
/* A writer as the agent of a process has it. */
void join(struct fixture *f, struct krait_writer *writer);
/* Ends the recording; whoever writes has ended or closed its slot. */
struct krait_collector_summary finish(struct fixture *f);
void leave(struct krait_writer *writer);
/* Writes a call of the code, at a time or now. */
enum krait_ring_room put_at(struct krait_writer *writer, struct krait_ring *ring, uint64_t t, uint32_t code);
enum krait_ring_room put(struct krait_writer *writer, struct krait_ring *ring, uint32_t code);
/* Writes an event in the long form. */
bool put_event_at(struct krait_writer *writer, struct krait_ring *ring, uint64_t t, uint32_t event,
                  const void *payload, size_t n);
/* Names a function, at a time or now. */
bool define_at(struct krait_writer *writer, struct krait_ring *ring, uint64_t t, uint32_t id,
               const char *name);
bool define(struct krait_writer *writer, struct krait_ring *ring, uint32_t id, const char *name);
/* All that is on disk; everything must be whole. */
struct seen look(const struct fixture *f);
struct shared *share(void);
/* In a child: a writer and its ring; the child ends if there is none. */
void child_writer(const struct fixture *f, struct krait_writer *writer, struct krait_ring **ring);
/* Collects until the child has ended, and once more. */
void collect_until_dead(struct fixture *f, pid_t pid);
int wait_status(pid_t pid);

#define RECORD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
