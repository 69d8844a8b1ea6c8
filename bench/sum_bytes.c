/* SPDX-License-Identifier: Apache-2.0
 *
 * sum_bytes THREADS TRACE: adds up the 64-bit words of a trace's stream files, mapped as readers map them: what no
 * reader can be faster than on this machine. Threads share each file by equal parts. Prints one line of JSON.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { THREADS = 64, FILES = 1024 };

struct span {
    const uint64_t *words;
    size_t count;
};

static struct span files[FILES];
static unsigned file_count, thread_count;
static uint64_t sums[THREADS], bytes;

static void die(const char *what)
{
    fprintf(stderr, "sum_bytes: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void map(int dir, const char *name)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        die(name);
    if (!S_ISREG(st.st_mode) || !st.st_size)
        return;
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED || file_count == FILES)
        die(name);
    madvise(at, (size_t)st.st_size, MADV_SEQUENTIAL);
    files[file_count++] = (struct span){ at, (size_t)st.st_size / sizeof(uint64_t) };
    bytes += (uint64_t)st.st_size;
}

static uint64_t sum(const uint64_t *words, size_t count)
{
    uint64_t result = 0;
    for (size_t i = 0; i < count; i++)
        result += words[i];
    return result;
}

static void *run(void *argument)
{
    size_t thread = (size_t)(uintptr_t)argument;
    for (unsigned i = 0; i < file_count; i++) {
        size_t begin = files[i].count * thread / thread_count;
        size_t end = files[i].count * (thread + 1) / thread_count;
        sums[thread] += sum(files[i].words + begin, end - begin);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    uint64_t result = 0;
    thread_count = argc == 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    if (!thread_count || thread_count > THREADS)
        die("usage: sum_bytes THREADS TRACE");
    DIR *dir = opendir(argv[2]);
    if (!dir)
        die(argv[2]);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "metadata") != 0)
            map(dirfd(dir), entry->d_name);
    for (uintptr_t i = 0; i < thread_count; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i))
            die("a thread");
    for (unsigned i = 0; i < thread_count; i++) {
        pthread_join(threads[i], NULL);
        result += sums[i];
    }
    printf("{\"bytes\": %" PRIu64 ", \"words\": %" PRIu64 "}\n", bytes, result);
    return 0;
}
