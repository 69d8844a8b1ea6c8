/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/pythons.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "python/compat/versions.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ANSWER_MS = 5000, ANSWER_MAX = 16384 };

/* A library that cannot be there: ld.so then says so on stderr, by this name, and goes on (ld.so(8),
 * LD_PRELOAD). Its silence says that it does not heed the variable. */
#define PRELOAD_PROBE "krait-doctor-preload-probe"

/* Runs on every version since 2.6. Shared is what the running image says: Debian's executable is linked
 * statically, and its configuration says otherwise. */
static const char question[] = "import sys, platform\n"
                               "try:\n"
                               "    from sysconfig import get_config_var as var\n"
                               "except ImportError:\n"
                               "    var = lambda name: 0\n"
                               "v = sys.version_info\n"
                               "shared = 'libpython' in open('/proc/self/maps').read()\n"
                               "sys.stdout.write('\\nkrait-python %s %d %d %d %s %d %d\\n' % "
                               "(platform.python_implementation(), v[0], v[1],\n"
                               "    v[2], v[3], shared, bool(var('Py_GIL_DISABLED'))))\n";

/* ---- asking one ---- */

static pid_t spawn_python(const char *path, int out)
{
    char *argv[] = { (char *)path, "-E", "-s", "-S", "-c", (char *)question, NULL };
    char *env[] = { "LD_PRELOAD=/" PRELOAD_PROBE ".so", "LC_ALL=C", "PATH=/usr/bin:/bin", NULL };
    posix_spawn_file_actions_t files;
    pid_t pid = -1;
    if (posix_spawn_file_actions_init(&files))
        return -1;
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
    if (posix_spawn(&pid, path, &files, NULL, argv, env))
        pid = -1;
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

/* Reads what the child says until it ends, for at most ANSWER_MS and ANSWER_MAX bytes. */
static void read_answer(int fd, struct krait_buf *answer)
{
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + ANSWER_MS * KRAIT_NS_PER_MS;
    while (answer->len < ANSWER_MAX) {
        uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        if (now >= end || poll(&poll_fd, 1, (int)((end - now) / KRAIT_NS_PER_MS) + 1) <= 0)
            return;
        char *room = krait_buf_room(answer, 4096);
        ssize_t n = room ? read(fd, room, 4096) : 0;
        if (n <= 0)
            return;
        answer->len += (size_t)n;
        answer->data[answer->len] = '\0';
    }
}

static int ask(const char *path, struct krait_buf *answer)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    KRAIT_AUTO_CLOSE int in = ends[0];
    pid_t pid = spawn_python(path, ends[1]);
    close(ends[1]);
    if (pid < 0)
        return -ENOEXEC;
    read_answer(in, answer);
    kill(pid, SIGKILL); /* no more than a wait when it has ended by itself */
    waitpid(pid, NULL, 0);
    return 0;
}

static void parse_answer(struct krait_python *python, const char *answer)
{
    const char *line = strstr(answer, "\nkrait-python ");
    int shared;
    int free_threaded;
    python->preload = strstr(answer, PRELOAD_PROBE) != NULL;
    if (!line)
        return;
    int n = sscanf(line, " krait-python %31s %d %d %d %15s %d %d", python->implementation, &python->major,
                   &python->minor, &python->micro, python->release, &shared, &free_threaded);
    python->answered = n == 7;
    python->shared = n == 7 && shared;
    python->free_threaded = n == 7 && free_threaded;
}

/* ---- finding them ---- */

struct search {
    struct krait_pythons *pythons;
    bool failed; /* memory is out */
};

static bool is_elf(const char *path)
{
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    char magic[4];
    return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) && memcmp(magic, "\177ELF", 4) == 0;
}

static bool is_venv(const char *bin)
{
    char cfg[PATH_MAX];
    int n = snprintf(cfg, sizeof(cfg), "%s/../pyvenv.cfg", bin);
    return n < (int)sizeof(cfg) && access(cfg, R_OK) == 0;
}

/* The folder that a path lies in, links followed. */
static bool real_folder(const char *path, char *to)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return realpath(folder[0] ? folder : "/", to) != NULL;
}

/* The same interpreter: one file, and both or neither started out of one and the same venv. */
static bool same_python(const char *a, const char *b)
{
    char file_a[PATH_MAX], file_b[PATH_MAX], folder_a[PATH_MAX], folder_b[PATH_MAX];
    if (!realpath(a, file_a) || !realpath(b, file_b) || strcmp(file_a, file_b) != 0)
        return false;
    if (!real_folder(a, folder_a) || !real_folder(b, folder_b))
        return true;
    return strcmp(folder_a, folder_b) == 0 || (!is_venv(folder_a) && !is_venv(folder_b));
}

static bool is_known(const struct krait_pythons *pythons, const char *path)
{
    for (size_t i = 0; i < pythons->count; i++) {
        if (same_python(pythons->items[i].path, path))
            return true;
    }
    return false;
}

static void add_python(struct search *search, const char *path, const char *found)
{
    struct krait_pythons *pythons = search->pythons;
    if (access(path, X_OK) || !is_elf(path) || is_known(pythons, path))
        return;
    char *copy = strdup(path);
    if (!copy || !KRAIT_GROW(pythons->items, pythons->cap, pythons->count + 1)) {
        free(copy);
        search->failed = true;
        return;
    }
    pythons->items[pythons->count++] = (struct krait_python){ .path = copy, .found = found };
}

/* python, python3, python3.12, python3.13t: not python3-config. */
static bool is_python_name(const char *name)
{
    const char *p = name + strlen("python");
    return p[strspn(p, "0123456789.td")] == '\0';
}

static void add_matches(struct search *search, const char *pattern, const char *found)
{
    glob_t matches;
    if (glob(pattern, 0, NULL, &matches))
        return;
    for (size_t i = 0; i < matches.gl_pathc; i++) {
        if (is_python_name(strrchr(matches.gl_pathv[i], '/') + 1))
            add_python(search, matches.gl_pathv[i], found);
    }
    globfree(&matches);
}

static void add_folder(struct search *search, const char *folder, const char *below, const char *found)
{
    char pattern[PATH_MAX];
    if (folder && snprintf(pattern, sizeof(pattern), "%s%s/python*", folder, below) < (int)sizeof(pattern))
        add_matches(search, pattern, found);
}

static void add_path(struct search *search)
{
    const char *path = getenv("PATH");
    KRAIT_AUTO_FREE char *copy = path ? strdup(path) : NULL;
    char *rest;
    for (char *folder = copy ? strtok_r(copy, ":", &rest) : NULL; folder; folder = strtok_r(NULL, ":", &rest))
        add_folder(search, folder, "", is_venv(folder) ? "venv" : "PATH");
}

static void add_known_places(struct search *search)
{
    add_folder(search, getenv("VIRTUAL_ENV"), "/bin", "venv");
    add_folder(search, ".", "/.venv/bin", "venv");
    add_folder(search, ".", "/venv/bin", "venv");
    add_folder(search, "/usr/bin", "", "system");
    add_folder(search, "/usr/local/bin", "", "system");
    const char *pyenv = getenv("PYENV_ROOT");
    if (pyenv)
        add_folder(search, pyenv, "/versions/*/bin", "pyenv");
    else
        add_folder(search, getenv("HOME"), "/.pyenv/versions/*/bin", "pyenv");
    add_folder(search, getenv("HOME"), "/.local/share/uv/python/*/bin", "uv");
}

static int by_version(const void *a, const void *b)
{
    const struct krait_python *x = a;
    const struct krait_python *y = b;
    int order = x->major - y->major;
    order = order ? order : x->minor - y->minor;
    order = order ? order : x->micro - y->micro;
    return order ? order : strcmp(x->path, y->path);
}

int krait_pythons_find(struct krait_pythons *pythons, struct krait_err *err)
{
    struct search search = { .pythons = pythons };
    add_path(&search);
    add_known_places(&search);
    for (size_t i = 0; i < pythons->count; i++) {
        KRAIT_AUTO_BUF answer = { 0 };
        if (!ask(pythons->items[i].path, &answer) && answer.data)
            parse_answer(&pythons->items[i], answer.data);
    }
    if (pythons->count)
        qsort(pythons->items, pythons->count, sizeof(*pythons->items), by_version);
    return search.failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

void krait_pythons_done(struct krait_pythons *pythons)
{
    for (size_t i = 0; i < pythons->count; i++)
        free(pythons->items[i].path);
    free(pythons->items);
    *pythons = (struct krait_pythons){ 0 };
}

/* ---- judging them ---- */

const char *krait_python_refusal(const struct krait_python *python)
{
    if (!python->answered)
        return "does not start: run it by hand to see why";
    if (strcmp(python->implementation, "CPython") != 0)
        return "not CPython: install CPython " KRAIT_PYTHON_SPAN;
    if (krait_python_age(python->major, python->minor) < 0)
        return "too old: install CPython " KRAIT_PYTHON_SPAN;
    if (krait_python_age(python->major, python->minor) > 0)
        return "newer than this krait knows: update krait, or use CPython " KRAIT_PYTHON_SPAN;
    if (python->free_threaded)
        return "free-threaded: use the build with the GIL";
    if (!python->preload)
        return "ignores LD_PRELOAD (static, setuid or not glibc): use a dynamically linked build";
    return NULL;
}

const char *krait_python_hook(const struct krait_python *python)
{
    return krait_python_hook_name(python->minor);
}
