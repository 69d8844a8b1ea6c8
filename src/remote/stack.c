/* SPDX-License-Identifier: Apache-2.0
 *
 * A stack is a chain of frames, from the thread state to the outermost one. Following it with a system call for each frame
 * takes microseconds, in which calls end and others begin. So the chain is followed once to learn where the frames
 * lie; then the kernel copies the head of the chain and all these places with one system call, and the chain is
 * followed in the copy. Frames of 3.11 and later lie side by side; a copy of them takes some 10 ns.
 *
 * The head may be older than the rest by the time that the kernel needs to find the next page. Then it may point to
 * a place whose function has returned, above a function that has not called anything yet:
 *
 *     head ──> d (returned) ──> a (was c when the head was read)
 *
 * A frame that runs differs from one that has called (enum krait_link): `a` runs, so nothing is above it, and the copy is
 * thrown away. The link is missing where C code is between two frames; what remains is found by a second copy. The outermost
 * frame has to be the one that was learnt: a chain that ends early was cut.
 *
 * A thread that does not run (remote/still.h) needs no copies: its chain is followed once, in the pages that it lies in.
 */
#include "remote/stack.h"

#include "base/array.h"
#include "remote/memory.h"

#include <string.h>
#include <time.h>

struct krait_stack_region {
    uint64_t begin, end;
    size_t at; /* where its bytes are in a copy */
};

enum { MERGE_GAP = 512, HEAD_SIZE = 8, COPIES = 2 };

/* One copy of a stack. */
struct copy {
    const struct krait_remote *remote;
    const struct krait_stack_reader *reader;
    uint64_t head[2]; /* the thread state's pointer, and where there is a _PyCFrame what that points to */
    const char *bytes;
};

void krait_stack_reader_done(struct krait_stack_reader *reader)
{
    free(reader->frames);
    free(reader->second);
    free(reader->known);
    free(reader->regions);
    free(reader->bytes);
}

static uint64_t field(const struct krait_remote *remote, const char *frame, enum krait_at at, size_t size)
{
    return krait_memory_number(frame + remote->layout.at[at], size);
}

static bool has(const struct krait_remote *remote, enum krait_at at)
{
    return remote->layout.at[at] != KRAIT_NOWHERE;
}

/* Bytes of a frame that are looked at. */
static size_t frame_size(const struct krait_remote *remote)
{
    static const enum krait_at used[] = { KRAIT_AT_FRAME_CODE,        KRAIT_AT_FRAME_BACK,
                                          KRAIT_AT_FRAME_INSTRUCTION, KRAIT_AT_FRAME_STACK,
                                          KRAIT_AT_FRAME_OWNER,       KRAIT_AT_FRAME_ENTRY,
                                          KRAIT_AT_FRAME_GENERATOR };
    size_t size = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(used); i++) {
        if (has(remote, used[i]))
            size = KRAIT_MAX(size, remote->layout.at[used[i]] + sizeof(uint64_t));
    }
    return size;
}

/* -- where the frames lie -- */

/* Whether the interpreter's loop has begun, and not written down which frame it runs (3.11 and 3.12). Only the _PyCFrame in
 * the thread state, of no loop, may have no frame (_PyEval_EvalFrameDefault in Python/ceval.c). */
static bool is_beginning(const struct krait_remote *remote, uint64_t thread, const uint64_t head[2])
{
    enum { THREAD_STATE_MAX = 1024 };
    return has(remote, KRAIT_AT_CFRAME_FRAME) && !head[1] && head[0] - thread >= THREAD_STATE_MAX;
}

static int read_head(const struct krait_remote *remote, uint64_t thread, uint64_t head[2])
{
    const uint32_t *at = remote->layout.at;
    int rc = krait_memory_read(remote->pid, thread + at[KRAIT_AT_THREAD_FRAME], &head[0], HEAD_SIZE);
    head[1] = head[0];
    if (!rc && has(remote, KRAIT_AT_CFRAME_FRAME))
        rc = krait_memory_read(remote->pid, head[0] + at[KRAIT_AT_CFRAME_FRAME], &head[1], HEAD_SIZE);
    return rc;
}

static int add_known(struct krait_stack_reader *reader, uint64_t addr)
{
    if (reader->known_count == KRAIT_DEPTH_MAX || addr % sizeof(void *))
        return -EAGAIN;
    if (!KRAIT_GROW(reader->known, reader->known_cap, reader->known_count + 1))
        return -ENOMEM;
    reader->known[reader->known_count++] = addr;
    return 0;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Makes regions of the known addresses, each of which is then there once. */
static int make_regions(const struct krait_remote *remote, struct krait_stack_reader *reader)
{
    size_t size = frame_size(remote), at = 0;
    uint32_t count = 0;
    qsort(reader->known, reader->known_count, sizeof(*reader->known), by_address);
    reader->region_count = 0;
    for (uint32_t i = 0; i < reader->known_count; i++) {
        uint64_t begin = reader->known[i];
        bool joins =
            reader->region_count && begin <= reader->regions[reader->region_count - 1].end + MERGE_GAP;
        if (i && begin == reader->known[i - 1])
            continue;
        reader->known[count++] = begin;
        if (!KRAIT_GROW(reader->regions, reader->region_cap, reader->region_count + 1))
            return -ENOMEM;
        struct krait_stack_region *last = &reader->regions[reader->region_count - joins];
        at -= joins ? last->end - last->begin : 0;
        *last = (struct krait_stack_region){ joins ? last->begin : begin, begin + size, at };
        at += last->end - last->begin;
        reader->region_count += !joins;
    }
    reader->known_count = count;
    return KRAIT_GROW(reader->bytes, reader->byte_cap, at * COPIES + 1) ? 0 : -ENOMEM;
}

/* Frames lie on Python's own stack, those of generators in them, and from 3.11 on some on the C stack. */
enum { PAGE = 4096, PAGES = 8, FRAME_MAX = 512 };

/* What was read while a chain was followed. */
struct pages {
    uint64_t at[PAGES];
    uint32_t next;
    char bytes[PAGES][PAGE];
    char split[FRAME_MAX]; /* what lies in two of them */
};

/* `size` bytes at `addr`, at most FRAME_MAX; many frames lie in one page, which is read once. Valid until the next call. */
static int bytes_at(const struct krait_remote *remote, struct pages *pages, uint64_t addr, size_t size,
                    const char **bytes)
{
    uint64_t page = addr & ~(uint64_t)(PAGE - 1);
    uint32_t i = 0;
    int rc = 0;
    *bytes = pages->split;
    if (addr - page > PAGE - size)
        return krait_memory_read(remote->pid, addr, pages->split, size);
    while (i < PAGES && pages->at[i] != page)
        i++;
    if (i == PAGES) {
        i = pages->next++ % PAGES;
        rc = krait_memory_read(remote->pid, page, pages->bytes[i], PAGE);
        pages->at[i] = rc ? 0 : page;
    }
    *bytes = pages->bytes[i] + (addr - page);
    return rc;
}

/* The frame that called the one at `frame`. */
static int read_back(const struct krait_remote *remote, struct pages *pages, uint64_t frame, uint64_t *back)
{
    const char *bytes;
    int rc = bytes_at(remote, pages, frame + remote->layout.at[KRAIT_AT_FRAME_BACK], sizeof(*back), &bytes);
    if (!rc)
        memcpy(back, bytes, sizeof(*back));
    return rc;
}

/* Follows the chain frame by frame, and adds what it finds to what earlier tries have found. What was read in between may
 * have moved: the copies show it. Then the chain may also bite its tail: `trap` is one of its frames, set anew after 1, 2, 4, 8...
 * steps (Brent's algorithm; Knuth, TAOCP 2, 3.1, exercise 7). */
static int learn(const struct krait_remote *remote, struct krait_stack_reader *reader, uint64_t thread,
                 uint64_t head[2])
{
    struct pages pages;
    int rc = read_head(remote, thread, head);
    rc = !rc && is_beginning(remote, thread, head) ? -EAGAIN : rc;
    uint64_t frame = head[1], trap = 0;
    memset(pages.at, 0, sizeof(pages.at));
    pages.next = 0;
    reader->root = 0;
    for (uint32_t step = 1, next = 1; !rc && frame; step++) {
        rc = frame == trap ? -EAGAIN : add_known(reader, frame);
        if (step == next) {
            trap = frame;
            next *= 2;
        }
        reader->root = frame;
        if (!rc)
            rc = read_back(remote, &pages, frame, &frame);
    }
    return rc ? rc : make_regions(remote, reader);
}

/* -- copies -- */

static size_t copy_size(const struct krait_stack_reader *reader)
{
    if (!reader->region_count)
        return 0;
    const struct krait_stack_region *last = &reader->regions[reader->region_count - 1];
    return last->at + (last->end - last->begin);
}

/* Copies head and regions, head and regions. `known_head` is where the _PyCFrame was. */
static int take(const struct krait_remote *remote, struct krait_stack_reader *reader, uint64_t thread,
                const uint64_t known_head[2], struct copy copies[COPIES])
{
    bool has_cframe = has(remote, KRAIT_AT_CFRAME_FRAME);
    size_t size = copy_size(reader), n = 0;
    KRAIT_AUTO_FREE struct krait_memory_piece *pieces =
        calloc(COPIES * (reader->region_count + 2), sizeof(*pieces));
    if (!pieces)
        return -ENOMEM;
    for (int c = 0; c < COPIES; c++) {
        struct copy *copy = &copies[c];
        *copy = (struct copy){ remote, reader, { 0 }, reader->bytes + c * size };
        pieces[n++] = (struct krait_memory_piece){ thread + remote->layout.at[KRAIT_AT_THREAD_FRAME],
                                                   &copy->head[0], HEAD_SIZE };
        if (has_cframe)
            pieces[n++] =
                (struct krait_memory_piece){ known_head[0] + remote->layout.at[KRAIT_AT_CFRAME_FRAME],
                                             &copy->head[1], HEAD_SIZE };
        for (uint32_t i = 0; i < reader->region_count; i++) {
            const struct krait_stack_region *r = &reader->regions[i];
            pieces[n++] =
                (struct krait_memory_piece){ r->begin, reader->bytes + c * size + r->at, r->end - r->begin };
        }
    }
    int rc = krait_memory_pieces(remote->pid, pieces, n);
    for (int c = 0; c < COPIES && !rc; c++) {
        if (!has_cframe)
            copies[c].head[1] = copies[c].head[0];
        else if (copies[c].head[0] != known_head[0])
            rc = -EAGAIN;
    }
    return rc;
}

static const char *frame_in(const struct copy *copy, uint64_t addr)
{
    const struct krait_stack_region *regions = copy->reader->regions;
    uint32_t count = copy->reader->region_count;
    size_t i = KRAIT_PARTITION_POINT(at, count, regions[at].end <= addr);
    bool is_whole =
        i < count && addr >= regions[i].begin && regions[i].end - addr >= frame_size(copy->remote);
    return is_whole ? copy->bytes + regions[i].at + (addr - regions[i].begin) : NULL;
}

/* Whether a frame is what its place in the chain wants: enum krait_link. */
static bool is_linked(const struct krait_remote *remote, const char *frame, bool calls)
{
    static const struct {
        uint8_t size;
        int64_t least, least_on_top;
    } links[] = { [KRAIT_LINK_REFERENCE] = { 8, 2, 1 },
                  [KRAIT_LINK_DEPTH] = { 4, 0, INT64_MIN },
                  [KRAIT_LINK_POINTER] = { 8, 1, INT64_MIN } };
    enum krait_link link = remote->layout.version->link;
    uint64_t stored = field(remote, frame, KRAIT_AT_FRAME_STACK, links[link].size);
    int64_t value = links[link].size == 4 ? (int32_t)stored : (int64_t)stored;
    return value >= (calls ? links[link].least : links[link].least_on_top);
}

/* Whether the frame is no function's, but marks where C code called the interpreter. */
static bool is_mark(const struct krait_remote *remote, const char *frame)
{
    return has(remote, KRAIT_AT_FRAME_OWNER) &&
           field(remote, frame, KRAIT_AT_FRAME_OWNER, 1) >= KRAIT_OWNER_NONE;
}

/* Whether C code called it, so that its caller does not show that it is in a call. */
static bool is_entry(const struct krait_remote *remote, const char *frame)
{
    return is_mark(remote, frame) ||
           (has(remote, KRAIT_AT_FRAME_ENTRY) && field(remote, frame, KRAIT_AT_FRAME_ENTRY, 1));
}

/* Whether a frame can be the outermost. A generator that yields or ends loses its caller before the thread's state
 * does. */
static bool is_root(const struct krait_remote *remote, const char *frame)
{
    if (has(remote, KRAIT_AT_FRAME_GENERATOR))
        return !field(remote, frame, KRAIT_AT_FRAME_GENERATOR, sizeof(uint64_t));
    if (has(remote, KRAIT_AT_FRAME_ENTRY))
        return field(remote, frame, KRAIT_AT_FRAME_OWNER, 1) != KRAIT_OWNER_GENERATOR;
    return is_mark(remote, frame);
}

int64_t krait_frame_offset(const struct krait_remote *remote, uint64_t at, uint64_t code)
{
    static const uint8_t units[] = { [KRAIT_INSTRUCTION_BYTES] = 1, [KRAIT_INSTRUCTION_UNITS] = 2 };
    enum krait_instruction kind = remote->layout.version->instruction;
    return kind == KRAIT_INSTRUCTION_POINTER ? (int64_t)(at - code - remote->layout.at[KRAIT_AT_CODE_BYTES])
                                             : (int64_t)(int32_t)at * units[kind];
}

static struct krait_raw_frame raw_frame(const struct krait_remote *remote, const char *frame, uint64_t addr)
{
    uint64_t code = field(remote, frame, KRAIT_AT_FRAME_CODE, sizeof(code)) & ~KRAIT_REFERENCE_TAGS;
    bool entry = !has(remote, KRAIT_AT_FRAME_OWNER) ||
                 (has(remote, KRAIT_AT_FRAME_ENTRY) && field(remote, frame, KRAIT_AT_FRAME_ENTRY, 1));
    return (struct krait_raw_frame){
        addr, code, krait_frame_offset(remote, field(remote, frame, KRAIT_AT_FRAME_INSTRUCTION, 8), code),
        entry, 0
    };
}

/* A chain that is followed: what its last frame tells of the next. */
struct walk {
    struct krait_raw_frame **frames; /* the result */
    uint32_t *cap, *count;
    uint32_t steps, steps_max;
    bool calls;   /* the next frame has called the last one */
    bool is_root; /* the last one can be the outermost */
};

/* Adds the frame at `addr`, and turns to its caller. -EAGAIN: it is not one that was. */
static int step(const struct krait_remote *remote, struct walk *walk, const char *frame, uint64_t *addr)
{
    if (!frame || walk->steps++ > walk->steps_max || !is_linked(remote, frame, walk->calls))
        return -EAGAIN;
    if (!KRAIT_GROW(*walk->frames, *walk->cap, *walk->count + 1))
        return -ENOMEM;
    struct krait_raw_frame *made = &(*walk->frames)[*walk->count], *above = *walk->count ? made - 1 : NULL;
    bool mark = is_mark(remote, frame);
    *made = raw_frame(remote, frame, *addr);
    if (above && mark && !above->entry) {
        above->entry = true;
        above->mark = *addr;
    }
    *walk->count += !mark;
    walk->calls = !is_entry(remote, frame);
    walk->is_root = is_root(remote, frame);
    *addr = field(remote, frame, KRAIT_AT_FRAME_BACK, sizeof(*addr));
    return 0;
}

/* Follows the chain in a copy. -EAGAIN: it is not one that was. */
static int follow(const struct copy *copy, struct krait_raw_frame **frames, uint32_t *cap, uint32_t *count)
{
    struct walk walk = {
        .frames = frames, .cap = cap, .count = count, .steps_max = copy->reader->known_count, .is_root = true
    };
    uint64_t root = 0;
    int rc = 0;
    *count = 0;
    for (uint64_t addr = copy->head[1]; addr && !rc;) {
        root = addr;
        rc = step(copy->remote, &walk, frame_in(copy, addr), &addr);
    }
    return rc ? rc : root == copy->reader->root && walk.is_root ? 0 : -EAGAIN;
}

static bool are_same(const struct krait_stack_reader *reader, uint32_t second)
{
    bool same = reader->count == second;
    for (uint32_t i = 0; i < second && same; i++)
        same = reader->frames[i].addr == reader->second[i].addr &&
               reader->frames[i].code == reader->second[i].code;
    return same;
}

static int try_once(struct krait_remote *remote, struct krait_stack_reader *reader, uint64_t thread,
                    const uint64_t head[2])
{
    struct copy copies[COPIES];
    uint32_t second = 0;
    int rc = take(remote, reader, thread, head, copies);
    remote->tries++;
    if (!rc)
        rc = follow(&copies[0], &reader->frames, &reader->cap, &reader->count);
    if (!rc)
        rc = follow(&copies[1], &reader->second, &reader->second_cap, &second);
    return rc ? rc : are_same(reader, second) ? 0 : -EAGAIN;
}

/* Reads the head, and with the same system call the pages in which the thread's stack was before. Most heads point to the same
 * _PyCFrame as before, where there is one. */
static int read_first(const struct krait_remote *remote, struct pages *pages, uint64_t thread,
                      const struct krait_stack_places *places, uint64_t head[2])
{
    struct krait_memory_piece pieces[KRAIT_STACK_PLACES + 2] = {
        { thread + remote->layout.at[KRAIT_AT_THREAD_FRAME], &head[0], HEAD_SIZE }
    };
    bool has_cframe = has(remote, KRAIT_AT_CFRAME_FRAME);
    uint64_t frame_at = has_cframe ? remote->layout.at[KRAIT_AT_CFRAME_FRAME] : 0;
    uint32_t n = 0, count = 1;
    if (places->cframe)
        pieces[count++] = (struct krait_memory_piece){ places->cframe + frame_at, &head[1], HEAD_SIZE };
    for (; n < KRAIT_STACK_PLACES && places->pages[n]; n++)
        pieces[count++] = (struct krait_memory_piece){ places->pages[n], pages->bytes[n], PAGE };
    int rc = krait_memory_pieces(remote->pid, pieces, count);
    if (rc)
        return rc == -EFAULT ? read_head(remote, thread, head) : rc;
    memcpy(pages->at, places->pages, n * sizeof(*pages->at));
    pages->next = n;
    if (has_cframe && head[0] != places->cframe)
        return krait_memory_read(remote->pid, head[0] + frame_at, &head[1], HEAD_SIZE);
    head[1] = has_cframe ? head[1] : head[0];
    return 0;
}

static void note_place(struct krait_stack_places *places, uint64_t addr)
{
    uint64_t page = addr & ~(uint64_t)(PAGE - 1);
    uint32_t i = 0;
    while (i < KRAIT_STACK_PLACES && places->pages[i] && places->pages[i] != page)
        i++;
    if (i < KRAIT_STACK_PLACES)
        places->pages[i] = page;
}

/* Keeps what was read of a frame and of what lies behind it: its variables and its stack. */
static void keep_innermost(struct krait_stack_reader *reader, const struct pages *pages, uint64_t addr)
{
    uint64_t page = addr & ~(uint64_t)(PAGE - 1);
    uint32_t i = 0;
    while (i < PAGES && pages->at[i] != page)
        i++;
    reader->innermost_size =
        i < PAGES ? (uint32_t)KRAIT_MIN(page + PAGE - addr, (uint64_t)KRAIT_INNERMOST_MAX) : 0;
    if (reader->innermost_size)
        memcpy(reader->innermost, pages->bytes[i] + (addr - page), reader->innermost_size);
}

bool krait_stack_innermost(const struct krait_remote *remote, const struct krait_stack_reader *reader,
                           uint64_t at, void *to, size_t size)
{
    if (at > reader->innermost_size || reader->innermost_size - at < size)
        return !krait_memory_read(remote->pid, reader->frames[0].addr + at, to, size);
    memcpy(to, reader->innermost + at, size);
    return true;
}

/* The chain of a thread that does not run is followed in what is read, page by page. */
int krait_stack_copy(struct krait_remote *remote, struct krait_stack_reader *reader, uint64_t thread,
                     struct krait_stack_places *places)
{
    struct pages pages;
    struct walk walk = { .frames = &reader->frames,
                         .cap = &reader->cap,
                         .count = &reader->count,
                         .steps_max = KRAIT_DEPTH_MAX,
                         .is_root = true };
    uint64_t head[2] = { 0 };
    size_t size = frame_size(remote);
    memset(pages.at, 0, sizeof(pages.at));
    pages.next = 0;
    int rc = size <= FRAME_MAX ? read_first(remote, &pages, thread, places, head) : -ENOTSUP;
    *places =
        (struct krait_stack_places){ .cframe = rc || !has(remote, KRAIT_AT_CFRAME_FRAME) ? 0 : head[0] };
    rc = !rc && is_beginning(remote, thread, head) ? -EAGAIN : rc;
    reader->count = 0;
    remote->tries++;
    for (uint64_t addr = head[1]; addr && !rc;) {
        const char *frame;
        note_place(places, addr);
        uint64_t at = addr;
        uint32_t count = reader->count;
        rc = bytes_at(remote, &pages, addr, size, &frame);
        rc = rc ? rc : step(remote, &walk, frame, &addr);
        if (!rc && !count && reader->count)
            keep_innermost(reader, &pages, at);
    }
    return rc ? rc : walk.is_root ? 0 : -EAGAIN;
}

int krait_stack_read(struct krait_remote *remote, struct krait_stack_reader *reader, uint64_t thread)
{
    enum {
        TRIES_A_PLACE = 8,
        TRIES_A_NAP = 256
    }; /* before it is learnt anew where the frames lie; before a nap */
    int rc = -EAGAIN;
    reader->known_count = 0;
    for (unsigned try = 0; try < KRAIT_TRIES_MAX && (rc == -EAGAIN || rc == -EFAULT); try += TRIES_A_PLACE) {
        uint64_t head[2];
        if (try && try % TRIES_A_NAP == 0) /* it may have lost its CPU in the middle of a call */
            nanosleep(&(struct timespec){ .tv_nsec = 100 * KRAIT_NS_PER_US }, NULL);
        rc = learn(remote, reader, thread, head);
        if (rc)
            reader->known_count = 0;
        for (unsigned i = 0; i < TRIES_A_PLACE && (i == 0 ? !rc : rc == -EAGAIN); i++)
            rc = try_once(remote, reader, thread, head);
        if (rc == -EFAULT)
            reader->known_count = 0;
    }
    return rc == -EFAULT ? -EAGAIN : rc;
}
