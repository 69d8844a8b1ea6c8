/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/file.h"

#include "base/growing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* With pages behind the file's that can be read: nobody has to look at a text's end before each step. */
static size_t mapped_size(const struct krait_ctf_file *file)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (file->size + page - 1) / page * page + page;
}

/* Address space for the file and its guard; NULL when there is none. */
static uint8_t *reserve(const struct krait_ctf_file *file)
{
    size_t size = mapped_size(file), more = file->size >= KRAIT_CTF_HUGE_PAGE ? KRAIT_CTF_HUGE_PAGE : 0;
    uint8_t *room = mmap(NULL, size + more, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED || !more)
        return room == MAP_FAILED ? NULL : room;
    size_t before = -(uintptr_t)room % KRAIT_CTF_HUGE_PAGE;
    if (before)
        munmap(room, before);
    if (before < more)
        munmap(room + before + size, more - before);
    return room + before;
}

static const uint8_t *map_guarded(const struct krait_ctf_file *file, int fd)
{
    uint8_t *room = reserve(file);
    if (!room)
        return NULL;
    if (mmap(room, file->size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(room, mapped_size(file));
        return NULL;
    }
    madvise(room, file->size, MADV_HUGEPAGE); /* what is read from the disk comes in such pieces; a wish */
    return room;
}

void krait_ctf_map_small(const struct krait_ctf_file *file)
{
    if (file->bytes)
        madvise((void *)file->bytes, file->size, MADV_NOHUGEPAGE);
}

int krait_ctf_map(struct krait_ctf_file *file, struct krait_err *err)
{
    KRAIT_AUTO_CLOSE int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    file->growing = fd >= 0 && krait_growing(fd);
    if (fd < 0 || fstat(fd, &st))
        return krait_err_errno(err, "%s", file->path);
    file->size = (uint64_t)st.st_size;
    if (file->size >> KRAIT_CTF_SIZE_BITS)
        return krait_err_set(err, -EFBIG, "%s: too large to be mapped", file->path);
    if (!file->size)
        return 0;
    file->bytes = map_guarded(file, fd);
    return file->bytes ? 0 : krait_err_errno(err, "%s: cannot be mapped", file->path);
}

/* A fault maps what is around it too, in blocks of this size (fault_around_bytes): some of what was let go of
 * came back. */
enum { FAULT_BLOCK = 64 * 1024 };

void krait_ctf_let_go(const struct krait_ctf_file *file, uint64_t from, uint64_t to)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    from -= KRAIT_MIN(from, (uint64_t)FAULT_BLOCK);
    from &= ~(page - 1);
    to = KRAIT_MIN(to, file->size) & ~(page - 1);
    if (to > from)
        madvise((void *)(file->bytes + from), to - from, MADV_DONTNEED);
}

/* Bytes before those that were not let go of yet, at least: who reads ahead looks at pages again, which
 * brings them back. */
enum { REACH = 4 << 20 };

static void let_go_of_way(const struct krait_ctf_way *way, uint64_t to, uint64_t holds)
{
    uint64_t reach = KRAIT_MAX(holds, (uint64_t)REACH);
    krait_ctf_let_go(way->file, way->from - KRAIT_MIN(way->from, reach), to);
}

void krait_ctf_way_to(struct krait_ctf_way *way, const struct krait_ctf_file *file, uint64_t offset,
                      uint64_t holds)
{
    bool goes_on = way->file == file && offset >= way->from;
    if (goes_on && offset - way->from < holds)
        return;
    if (way->file)
        let_go_of_way(way, goes_on ? offset : way->file->size, holds);
    *way = (struct krait_ctf_way){ file, offset };
}

void krait_ctf_way_done(struct krait_ctf_way *way)
{
    if (way->file)
        let_go_of_way(way, way->file->size, 0);
    way->file = NULL;
}

void krait_ctf_unmap(struct krait_ctf_file *file)
{
    if (file->bytes)
        munmap((void *)file->bytes, mapped_size(file));
    file->bytes = NULL;
}
