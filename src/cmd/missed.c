/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/missed.h"

#include "attach/attach.h"
#include "base/array.h"
#include "base/buf.h"
#include "cmd/terminal.h"
#include "record/ctl.h"
#include "record/shm.h"
#include "remote/maps.h"
#include "remote/remote.h"

#include <string.h>
#include <sys/stat.h>

/* A program that a process below the command runs, or has run. */
struct krait_missed_process {
    pid_t pid;
    uint64_t program;           /* krait_collector_image */
    uint64_t begin_ns, next_ns; /* when krait saw it first, and when to look at it next */
    uint64_t python_ns;  /* since when it is a Python that should be part of the recording; 0: it is none */
    bool seen;           /* in this look */
    bool settled;        /* krait need not look at it again */
    bool has_library;    /* it may join still */
    char *command, *why; /* NULL: it is not missed */
};

/* ---- the reason ---- */

/* What the process sees at `path`. */
static bool has_file(pid_t pid, const char *path)
{
    char full[PATH_MAX + 64];
    snprintf(full, sizeof(full), "/proc/%d/root%s", pid, path);
    return access(full, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static void explain_root(struct krait_buf *why, const struct krait_missed *missed, pid_t pid)
{
    char link[64], root[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/%d/root", pid);
    ssize_t n = readlink(link, root, sizeof(root) - 1);
    root[KRAIT_MAX(n, 0)] = '\0';
    bool named = *root && strcmp(root, "/") != 0; /* a container's is "/", seen from outside too */
    krait_buf_fmt(why, "in %s%s, where krait's files are missing: mount %.*s at the same path there",
                  named ? "the root folder " : "a mount namespace of its own", named ? root : "",
                  (int)(strrchr(missed->preload, '/') - missed->preload), missed->preload);
}

static bool is_in_our_network(pid_t pid)
{
    char path[64];
    struct stat theirs, ours;
    snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
    return stat(path, &theirs) || stat("/proc/self/ns/net", &ours) || theirs.st_ino == ours.st_ino;
}

static void explain_unreached(struct krait_buf *why, pid_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d", pid);
    if (stat(path, &st) == 0 && st.st_uid != geteuid())
        krait_buf_fmt(why, "running as user %u, krait as user %u: start krait as that user", st.st_uid,
                      geteuid());
    else
        krait_buf_fmt(
            why, "%s did not reach krait by the file .join in the recording's folder: start krait in there",
            is_in_our_network(pid) ? "with krait's library, which"
                                   : "in another network namespace, from where it");
}

static void explain(struct krait_buf *why, const struct krait_missed *missed,
                    const struct krait_missed_process *process, const struct krait_remote *remote)
{
    krait_buf_fmt(why, "Python %s ", remote->version);
    if (process->has_library)
        explain_unreached(why, process->pid);
    else if (!has_file(process->pid, missed->preload))
        explain_root(why, missed, process->pid);
    else
        krait_buf_str(why,
                      "without krait's library: it is statically linked or set-uid, has another libc, or was "
                      "started without LD_PRELOAD");
}

/* ---- which processes ---- */

/* Whether it was started with another recording's address, or with an empty one, by which it asks not to be recorded. */
static bool is_not_ours(const struct krait_missed *missed, pid_t pid)
{
    static const char name[] = KRAIT_ENV_SESSION "=";
    char path[64];
    KRAIT_AUTO_BUF text = { 0 };
    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    if (krait_buf_read_file(&text, path) || text.failed)
        return true;
    for (const char *at = text.data; at && at < text.data + text.len; at += strlen(at) + 1) {
        if (strncmp(at, name, strlen(name)) == 0)
            return strcmp(at + strlen(name), krait_collector_variable(missed->collector)) != 0;
    }
    return false;
}

/* Whether it maps the memory of a recording, as one that has joined and its forks do. */
static bool has_joined(pid_t pid)
{
    char text[16];
    struct krait_ctl_place place;
    struct krait_err ignored = { 0 };
    snprintf(text, sizeof(text), "%d", pid);
    return krait_ctl_find(text, &place, &ignored) == 0;
}

/* Whether it has said itself why not; where there was no room for all that said so, it may have. */
static bool has_told(const struct krait_collector *collector, pid_t pid)
{
    char why[128];
    uint32_t rows = 0;
    for (int told; (told = krait_collector_refusal(collector, rows, why, sizeof(why))); rows++) {
        if (told == pid)
            return true;
    }
    return krait_collector_refused(collector) > rows;
}

/* A Python loads the agent as soon as its interpreter is there. The agent joins at once: krait answers in each of its rounds. */
static bool is_late(const struct krait_missed_process *process, uint64_t now)
{
    enum { AGENT_NS = 300 * KRAIT_NS_PER_MS };
    uint64_t patience = krait_attach_has_loaded(process->pid, "_agent.abi3") ? AGENT_NS : 3 * KRAIT_NS_PER_S;
    return now - process->python_ns > patience;
}

/* A recording of days may see any number: the first ones are kept, the others counted, but for those that may join still. */
static void name(struct krait_missed *missed, struct krait_missed_process *process,
                 const struct krait_remote *remote)
{
    enum { MOST = 100 };
    KRAIT_AUTO_BUF why = { 0 };
    KRAIT_AUTO_BUF command = { 0 };
    if (missed->named == MOST) {
        missed->more += !process->has_library;
        return;
    }
    explain(&why, missed, process, remote);
    krait_task_command(&command, process->pid);
    if (why.failed || command.failed || !command.len)
        return;
    process->why = strdup(why.data);
    process->command = process->why ? strdup(command.data) : NULL;
    if (process->command) {
        missed->named++;
        return;
    }
    free(process->why);
    process->why = NULL;
}

/* Whether the process runs Python and is not recorded; then it is named, or will be if it stays so. */
static void look_at_python(struct krait_missed *missed, struct krait_missed_process *process,
                           const struct krait_remote *remote, uint64_t now)
{
    process->python_ns = process->python_ns ? process->python_ns : now;
    process->has_library = krait_attach_has_loaded(process->pid, "libkrait-preload");
    process->settled = is_not_ours(missed, process->pid) || has_told(missed->collector, process->pid);
    if (process->settled || (process->has_library && !is_late(process, now)))
        return;
    process->settled = true;
    if (krait_collector_image(process->pid) == process->program)
        name(missed, process, remote);
}

/* Whether it maps a file that is named so: the symbols of other programs, which may have millions, are not searched. A program
 * that Python is a static part of is not found. */
static bool maps_python(pid_t pid)
{
    KRAIT_CLEANUP(krait_maps_done) struct krait_maps list = { 0 };
    bool found = false;
    if (krait_maps_read(pid, &list))
        return false;
    for (uint32_t i = 0; i < list.count && !found; i++) {
        const char *slash = strrchr(list.items[i].path, '/');
        found = slash && strstr(slash, "python");
    }
    return found;
}

/* One that is no Python may be about to be one: krait looks again, the older the program the later. */
static void look_at(struct krait_missed *missed, struct krait_missed_process *process, uint64_t now)
{
    enum { LONGEST_NS = KRAIT_NS_PER_S };
    struct krait_remote *remote = NULL;
    struct krait_err ignored = { 0 };
    process->seen = true;
    if (process->settled || now < process->next_ns)
        return;
    process->next_ns = now + KRAIT_MIN(now - process->begin_ns, (uint64_t)LONGEST_NS);
    process->settled = has_joined(process->pid);
    if (!process->settled && maps_python(process->pid) &&
        krait_remote_open(&remote, process->pid, &ignored) == 0 && krait_remote_has_interpreter(remote))
        look_at_python(missed, process, remote, now);
    krait_remote_free(remote);
}

/* NULL: out of memory. */
static struct krait_missed_process *find(struct krait_missed *missed, pid_t pid, uint64_t program,
                                         uint64_t now)
{
    for (uint32_t i = 0; i < missed->count; i++) {
        if (missed->items[i].pid == pid && missed->items[i].program == program)
            return &missed->items[i];
    }
    if (!KRAIT_GROW(missed->items, missed->cap, missed->count + 1))
        return NULL;
    struct krait_missed_process *process = &missed->items[missed->count++];
    *process = (struct krait_missed_process){ .pid = pid, .program = program, .begin_ns = now };
    missed->new_ns = now;
    return process;
}

/* Those that have ended, or run another program; but for what is to be told. */
static void forget(struct krait_missed *missed)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < missed->count; i++) {
        if (missed->items[i].seen || missed->items[i].why)
            missed->items[kept++] = missed->items[i];
    }
    missed->count = kept;
    for (uint32_t i = 0; i < kept; i++)
        missed->items[i].seen = false;
}

static void look_at_pid(struct krait_missed *missed, pid_t pid, uint64_t now)
{
    uint64_t program = krait_collector_image(pid); /* 0: it may not be read, or has ended */
    struct krait_missed_process *process = program ? find(missed, pid, program, now) : NULL;
    if (process)
        look_at(missed, process, now);
}

/* A look goes from the root to its children, and so on. */
static void begin_look(struct krait_missed *missed)
{
    missed->at = missed->pids.count = 0;
    if (!KRAIT_GROW(missed->pids.items, missed->pids.cap, 1))
        return;
    missed->pids.items[missed->pids.count++] = missed->root;
    if (krait_pids_add_direct(&missed->pids, missed->root) == -ENOSYS)
        krait_pids_add_children(&missed->pids, missed->root);
}

/* So that the collector does not leave the rings alone for long. Returns whether all has been looked at. */
static bool look_for_a_while(struct krait_missed *missed, uint64_t now)
{
    enum { LONGEST_NS = KRAIT_NS_PER_MS };
    while (missed->at < missed->pids.count) {
        pid_t pid = missed->pids.items[missed->at++];
        look_at_pid(missed, pid, now);
        krait_pids_add_direct(&missed->pids, pid);
        if (krait_clock_ns(CLOCK_MONOTONIC) - now > LONGEST_NS)
            return false;
    }
    return true;
}

void krait_missed_look(struct krait_missed *missed)
{
    enum { SOON_NS = 20 * KRAIT_NS_PER_MS, LATER_NS = 200 * KRAIT_NS_PER_MS, SHARE = 100 };
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    missed->new_ns = missed->new_ns ? missed->new_ns : now;
    if (now < missed->next_ns || !krait_collector_is_on(missed->collector) ||
        (missed->first_only && krait_collector_pids(missed->collector, NULL, 0)))
        return;
    uint64_t cpu = krait_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (missed->at == missed->pids.count)
        begin_look(missed);
    bool whole = look_for_a_while(missed, now);
    if (whole)
        forget(missed);
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC);
    uint64_t gap = !whole ? 0 : end - missed->new_ns < KRAIT_NS_PER_S ? SOON_NS : LATER_NS;
    cpu = krait_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu; /* not what others had of the CPU meanwhile */
    missed->next_ns = end + KRAIT_MAX(gap, SHARE * cpu);
}

/* ---- telling ---- */

static bool is_missed(const struct krait_missed *missed, const struct krait_missed_process *process)
{
    return process->why && !(process->has_library && krait_collector_begins(missed->collector, process->pid));
}

uint32_t krait_missed_count(const struct krait_missed *missed)
{
    uint32_t n = missed->more;
    for (uint32_t i = 0; i < missed->count; i++)
        n += is_missed(missed, &missed->items[i]);
    return n;
}

/* Those with the reason of `first`, unless an earlier one has that too. */
static void print_like(const struct krait_missed *missed, uint32_t first)
{
    enum { SHOWN = 5, COMMAND = 60 };
    const struct krait_missed_process *items = missed->items;
    KRAIT_AUTO_BUF list = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < missed->count; i++) {
        if (!is_missed(missed, &items[i]) || strcmp(items[i].why, items[first].why) != 0)
            continue;
        if (i < first)
            return;
        if (count++ < SHOWN)
            krait_buf_fmt(&list, "%s%d (%.*s%s)", count > 1 ? ", " : "", items[i].pid, COMMAND,
                          items[i].command, strlen(items[i].command) > COMMAND ? "..." : "");
    }
    if (count > SHOWN)
        krait_buf_fmt(&list, " and %u more", count - SHOWN);
    if (!list.failed)
        krait_terminal_say(NULL, 2, "Process%s %s %s not recorded: %s. %s", count == 1 ? "" : "es", list.data,
                           count == 1 ? "was" : "were", items[first].why,
                           count == 1 ? "While it runs, krait record --pid may record it"
                                      : "While they run, krait record --pid may record them");
}

void krait_missed_print(const struct krait_missed *missed)
{
    for (uint32_t i = 0; i < missed->count; i++) {
        if (is_missed(missed, &missed->items[i]))
            print_like(missed, i);
    }
    krait_missed_say_more(missed->more);
}

void krait_missed_say_more(uint32_t count)
{
    if (count)
        krait_terminal_say(NULL, 2, "%u process%s more %s not recorded", count, count == 1 ? "" : "es",
                           count == 1 ? "was" : "were");
}

void krait_missed_done(struct krait_missed *missed)
{
    for (uint32_t i = 0; i < missed->count; i++) {
        free(missed->items[i].command);
        free(missed->items[i].why);
    }
    free(missed->items);
    krait_pids_done(&missed->pids);
}
