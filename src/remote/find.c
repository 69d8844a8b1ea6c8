/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the interpreter is. Its symbols are in libpython or in the executable; /proc/PID/maps says where these lie. The
 * files are opened as the process sees them, so that it may be in a container, and may have been replaced on disk.
 */
#include "python/compat/versions.h"
#include "remote/called.h"
#include "remote/maps.h"
#include "remote/memory.h"
#include "remote/native.h"
#include "remote/stack.h"

#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

/* -- reasons -- */

enum { YAMA_NOBODY = 3 };

/* Yama's rule, where the kernel has it: Documentation/admin-guide/LSM/Yama.rst. */
static int yama_scope(void)
{
    KRAIT_AUTO_FILE FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    int scope = 0;
    return file && fscanf(file, "%d", &scope) == 1 ? scope : 0;
}

/* Where root is refused, or nobody can attach: to become root is no remedy. */
static int refuse_root(pid_t pid, struct krait_err *err)
{
    if (yama_scope() >= YAMA_NOBODY)
        return krait_err_set(
            err, -EPERM,
            "the kernel lets nobody read process %d until the next boot (kernel.yama.ptrace_scope is %d); set that to 0 "
            "where it is set at boot (/etc/sysctl.d), and boot again",
            pid, yama_scope());
    return krait_err_set(
        err, -EPERM,
        "krait may not read process %d, though it runs as root: a seccomp filter, or a missing CAP_SYS_PTRACE, forbids "
        "it; in a container, start that with docker run --cap-add SYS_PTRACE --security-opt seccomp=unconfined",
        pid);
}

static int refuse_permission(pid_t pid, struct krait_err *err)
{
    char path[64];
    struct stat stat_;
    snprintf(path, sizeof(path), "/proc/%d", pid);
    uid_t owner = stat(path, &stat_) ? geteuid() : stat_.st_uid;
    struct passwd *user = getpwuid(owner);
    const char *name = user ? user->pw_name : "another user";
    if (geteuid() == 0 || yama_scope() >= YAMA_NOBODY)
        return refuse_root(pid, err);
    if (owner && owner != geteuid())
        return krait_err_set(err, -EPERM, "process %d belongs to %s; run krait as %s or as root (sudo)", pid,
                             name, user ? name : "that user");
    if (owner != geteuid())
        return krait_err_set(err, -EPERM, "process %d belongs to root; run krait as root (sudo)", pid);
    if (yama_scope())
        return krait_err_set(
            err, -EPERM,
            "the kernel lets only root read process %d (kernel.yama.ptrace_scope is %d); run krait as "
            "root (sudo), or allow it: sudo sysctl kernel.yama.ptrace_scope=0",
            pid, yama_scope());
    return krait_err_set(
        err, -EPERM,
        "process %d may not be read (it has changed its user, or runs in a container or a user namespace); run krait as root (sudo)",
        pid);
}

/* The state letter and the parent's PID, of proc(5); 0 if there is no such process. */
static char process_state(pid_t pid, int *parent)
{
    char path[64], text[512], state = '\0';
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[n] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && sscanf(name_end + 1, " %c %d", &state, parent) == 2 ? state : '\0';
}

static int refuse_absence(pid_t pid, struct krait_err *err)
{
    enum { KERNEL = 2 }; /* kthreadd, the parent of all threads of the kernel */
    int parent = 0;
    char state = process_state(pid, &parent);
    if (state == 'Z' || state == 'X')
        return krait_err_set(err, -ESRCH, "process %d has ended, but its parent has not waited for it yet",
                             pid);
    if (state && (pid == KERNEL || parent == KERNEL))
        return krait_err_set(err, -ENOEXEC, "process %d is a kernel thread, which runs no Python", pid);
    if (state)
        return krait_err_set(err, -ESRCH, "process %d is ending", pid);
    return krait_err_set(err, -ESRCH, "no process %d; it has ended, or is in another PID namespace", pid);
}

int krait_remote_refusal(pid_t pid, int rc, struct krait_err *err)
{
    if (rc == -EPERM || rc == -EACCES)
        return refuse_permission(pid, err);
    if (rc == -ESRCH || rc == -ENOENT)
        return refuse_absence(pid, err);
    if (rc == -ENOMEM)
        return krait_err_set(err, rc, "out of memory");
    if (rc == -EFAULT)
        return krait_err_set(
            err, rc,
            "cannot find CPython's state in process %d (is it starting or ending, or is it a debug build?)",
            pid);
    return krait_err_set(err, rc, "cannot read the memory of process %d: %s", pid, strerror(-rc));
}

/* -- the files that it may be in -- */

static bool is_library(const struct krait_mapped *mapped)
{
    const char *slash = strrchr(mapped->path, '/');
    return slash && strncmp(slash + 1, "libpython", strlen("libpython")) == 0;
}

/* -- the interpreter in a file -- */

struct symbols {
    uint64_t runtime, version, code_type;
    unsigned by_symbol; /* the version that the symbols show; 0: none */
    bool old;           /* it is a Python before 3.8 */
};

static bool has_symbol(const void *elf, const char *symbol)
{
    uint64_t unused;
    return krait_elf_symbol(elf, symbol, &unused);
}

static bool find_symbols(const struct krait_elf *elf, struct symbols *found)
{
    *found = (struct symbols){ 0 };
    bool has_runtime = krait_elf_symbol(elf, "_PyRuntime", &found->runtime) ||
                       krait_elf_section(elf, ".PyRuntime", &found->runtime);
    krait_elf_symbol(elf, "Py_Version", &found->version);
    krait_elf_symbol(elf, "PyCode_Type", &found->code_type);
    for (const struct krait_version_symbol *v = krait_version_symbols; v->symbol && !found->by_symbol; v++) {
        if (has_symbol(elf, v->symbol))
            found->by_symbol = v->number;
    }
    found->old = !found->by_symbol && !found->version && krait_python_is_too_old(has_symbol, elf);
    return has_runtime;
}

/* From addresses in the file to addresses in the process. */
static void move_symbols(struct symbols *found, const struct krait_elf *elf,
                         const struct krait_mapped *mapped)
{
    uint64_t moved = mapped->begin - elf->base;
    found->runtime += moved;
    found->version += found->version ? moved : 0;
    found->code_type += found->code_type ? moved : 0;
}

static int read_version(struct krait_remote *remote, const struct symbols *found, unsigned *number)
{
    uint64_t hex = 0;
    *number = found->by_symbol;
    if (!found->version && !found->by_symbol) /* 3.13 and later have it in the table of offsets too */
        return krait_memory_read(remote->pid, found->runtime + KRAIT_TABLE_VERSION, &hex, sizeof(hex));
    int rc = found->version ? krait_memory_read(remote->pid, found->version, &hex, sizeof(hex)) : 0;
    *number = hex ? krait_version_number(hex) : *number;
    snprintf(remote->version, sizeof(remote->version), hex ? "%u.%u.%u" : "%u.%u", *number >> 8,
             *number & 255, krait_version_micro(hex));
    return rc;
}

static int take_layout(struct krait_remote *remote, const struct symbols *found, struct krait_err *err)
{
    char table[KRAIT_TABLE_SIZE];
    unsigned number;
    const char *why;
    int rc = read_version(remote, found, &number);
    if (!rc)
        rc = krait_memory_read(remote->pid, found->runtime, table, sizeof(table));
    if (rc)
        return krait_remote_refusal(remote->pid, rc, err);
    const struct krait_layout_of *version = krait_layout_find(number);
    if (!version)
        return krait_err_set(err, -ENOTSUP,
                             "process %d runs Python %s; krait reads CPython " KRAIT_PYTHON_SPAN, remote->pid,
                             remote->version);
    if (krait_layout_fill(&remote->layout, version, table, &why))
        return krait_err_set(err, -ENOTSUP, "cannot read process %d: %s", remote->pid, why);
    remote->runtime = found->runtime;
    remote->code_type = found->code_type;
    return 0;
}

struct search {
    struct krait_remote *remote;
    bool old, stripped; /* what was met that cannot be read */
    char path[PATH_MAX];
    int why; /* why a file that may be it could not be opened */
};

/* Returns 1 if it is in that file, 0 if not, or an error. */
static int look_in(struct search *search, const struct krait_mapped *mapped, struct krait_err *err)
{
    struct krait_remote *remote = search->remote;
    struct symbols found;
    KRAIT_CLEANUP(krait_elf_done) struct krait_elf elf = { 0 };
    int rc = krait_maps_open(remote->pid, mapped, &elf);
    if (rc)
        search->why = rc == -ENOEXEC ? search->why : rc;
    if (rc || !*search->path)
        snprintf(search->path, sizeof(search->path), "%s", mapped->path);
    if (rc)
        return 0;
    if (!find_symbols(&elf, &found)) {
        search->old |= found.old;
        search->stripped |= is_library(mapped) || strstr(mapped->path, "/python");
        return 0;
    }
    if (found.old) {
        search->old = true;
        return 0;
    }
    move_symbols(&found, &elf, mapped);
    remote->file = strdup(mapped->path);
    if (!remote->file)
        return krait_err_set(err, -ENOMEM, "out of memory");
    rc = take_layout(remote, &found, err);
    return rc ? rc : 1;
}

static int refuse_files(const struct search *search, struct krait_err *err)
{
    pid_t pid = search->remote->pid;
    if (search->old)
        return krait_err_set(err, -ENOTSUP,
                             "process %d runs a Python before " KRAIT_PYTHON_MIN
                             "; krait reads CPython " KRAIT_PYTHON_SPAN,
                             pid);
    if (search->why)
        return krait_err_set(err, search->why,
                             "cannot open %s, the program of process %d: %s; run krait as root", search->path,
                             pid, strerror(-search->why));
    if (search->stripped)
        return krait_err_set(
            err, -ENOTSUP,
            "%s, the Python of process %d, has no symbols (they were stripped); run the program with a "
            "Python that has them",
            search->path, pid);
    return krait_err_set(
        err, -ENOEXEC,
        "process %d runs %s, which is not Python; if its children run Python, name one of them, or use --children",
        pid, search->path[0] ? search->path : "no file that can be read");
}

/* The library comes first: an executable that is linked with it has none of the symbols. Then the executable, which is the first
 * file that is mapped. */
static int find_python(struct krait_remote *remote, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_maps_done) struct krait_maps list = { 0 };
    struct search search = { .remote = remote };
    int rc = krait_maps_read(remote->pid, &list);
    if (rc)
        return krait_remote_refusal(remote->pid, rc, err);
    for (int libraries = 1; libraries >= 0; libraries--) {
        for (uint32_t i = 0; i < list.count && !rc; i++) {
            if (is_library(&list.items[i]) == (libraries == 1) && (libraries || i == 0))
                rc = look_in(&search, &list.items[i], err);
        }
    }
    return rc < 0 ? rc : rc ? 0 : refuse_files(&search, err);
}

int krait_find_section(const struct krait_remote *remote, const char *prefix, const char *section,
                       uint64_t *address)
{
    KRAIT_CLEANUP(krait_maps_done) struct krait_maps list = { 0 };
    int rc = krait_maps_read(remote->pid, &list);
    bool found = false;
    for (uint32_t i = 0; i < list.count && !rc && !found; i++) {
        KRAIT_CLEANUP(krait_elf_done) struct krait_elf elf = { 0 };
        const struct krait_mapped *mapped = &list.items[i];
        const char *slash = strrchr(mapped->path, '/');
        bool wanted =
            strcmp(mapped->path, remote->file) == 0 || strncmp(slash + 1, prefix, strlen(prefix)) == 0;
        found = wanted && !krait_maps_open(remote->pid, mapped, &elf) &&
                krait_elf_section(&elf, section, address);
        if (found)
            *address += mapped->begin - elf.base;
    }
    return rc ? rc : found ? 0 : -ENOENT;
}

int krait_remote_open(struct krait_remote **out, pid_t pid, struct krait_err *err)
{
    struct krait_remote *remote = calloc(1, sizeof(*remote));
    if (!remote)
        return krait_err_set(err, -ENOMEM, "out of memory");
    remote->pid = pid;
    remote->image =
        krait_executed_read(pid); /* before: if it executes another one meanwhile, that is noticed */
    int rc = find_python(remote, err);
    if (rc)
        krait_remote_free(remote);
    else
        *out = remote;
    return rc;
}

bool krait_remote_has_executed(const struct krait_remote *remote)
{
    return krait_executed_is_other(remote->image, krait_executed_read(remote->pid));
}

void krait_remote_free(struct krait_remote *remote)
{
    if (!remote)
        return;
    free(remote->file);
    krait_natives_free(remote->natives);
    krait_callees_free(remote->callees);
    krait_c_stacks_done(&remote->c_stacks);
    krait_still_done(&remote->still);
    krait_map_done(&remote->late);
    krait_map_done(&remote->running);
    krait_codes_done(&remote->codes);
    krait_map_done(&remote->kernel);
    krait_arena_done(&remote->arena);
    free(remote);
}
