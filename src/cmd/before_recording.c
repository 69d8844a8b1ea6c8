/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/before_recording.h"

#include "base/shell.h"
#include "python/compat/versions.h"
#include "python/krait/package_dir.h"
#include "record/shm.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* -- the agent's files -- */

#define PRELOAD "libkrait-preload.so"
#define AGENT   "_agent.abi3.so"

/* `hidden`: also where this user may not look, so that the reason is told. */
static bool preload_in(const char *dir, bool hidden, char *path, size_t size)
{
    int n = snprintf(path, size, "%s/" PRELOAD, dir);
    return n > 0 && (size_t)n < size && (access(path, F_OK) == 0 || (hidden && errno == EACCES));
}

/* Of a package: behind the prefix a pattern of folders, and where it is in these. */
struct package_place {
    const char *folders, *below;
};

static bool preload_below(const struct package_place *place, const char *prefix, bool hidden, char *path,
                          size_t size)
{
    char text[PATH_MAX];
    glob_t matches = { 0 };
    bool found = false;
    if (snprintf(text, sizeof(text), "%s%s", prefix, place->folders) >= (int)sizeof(text))
        return false;
    if (glob(text, 0, NULL, &matches) == 0) {
        for (size_t m = 0; m < matches.gl_pathc && !found; m++)
            found =
                snprintf(text, sizeof(text), "%s%s", matches.gl_pathv[m], place->below) < (int)sizeof(text) &&
                preload_in(text, hidden, path, size);
    }
    globfree(&matches);
    return found;
}

/* Installed as a wheel or by meson: in the Python package of some version below the prefix. */
static bool preload_in_packages(const char *prefix, bool hidden, char *path, size_t size)
{
    static const struct package_place places[] = { { "/" KRAIT_PACKAGE_DIR, "" },
                                                   { "/lib/python3*", "/site-packages/krait" },
                                                   { "/lib/python3*", "/dist-packages/krait" },
                                                   { "/lib/python3", "/dist-packages/krait" },
                                                   { "/lib64/python3*", "/site-packages/krait" },
                                                   { "/local/lib/python3*", "/dist-packages/krait" },
                                                   { "/lib/*/krait", "" },
                                                   { "/lib/krait", "" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(places); i++) {
        if (preload_below(&places[i], prefix, hidden, path, size))
            return true;
    }
    return false;
}

static int check_readable(const char *path, struct krait_err *err)
{
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return 0;
    if (errno == ENOENT)
        return krait_err_set(err, -ENOENT,
                             "%s is missing: the installation of krait is incomplete; install "
                             "it again",
                             path);
    return krait_err_set(err, -errno,
                         "cannot read %s: %s; make krait's folder readable for this user (chmod -R a+rX), or "
                         "install krait again",
                         path, strerror(errno));
}

/* `path` is that of the library: what else is needed lies beside it. */
static int check_whole(const char *path, struct krait_err *err)
{
    char agent[PATH_MAX];
    int dir = (int)(strrchr(path, '/') - path);
    int rc = check_readable(path, err);
    if (rc)
        return rc;
    if (snprintf(agent, sizeof(agent), "%.*s/" AGENT, dir, path) >= (int)sizeof(agent))
        return krait_err_set(err, -ENAMETOOLONG, "%s: the path is too long", path);
    rc = check_readable(agent, err);
    if (!rc && strpbrk(path, " :"))
        return krait_err_set(
            err, -ENOTSUP,
            "%s: the loader cannot preload a file whose path has a blank or a colon; install krait"
            " elsewhere",
            path);
    return rc;
}

static bool find(const char *beside, const char *prefix, bool hidden, char *path, size_t size)
{
    return preload_in(beside, hidden, path, size) || preload_in_packages(prefix, hidden, path, size);
}

int krait_before_find_preload(char *path, size_t size, struct krait_err *err)
{
    char command[PATH_MAX], prefix[PATH_MAX], beside[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", command, sizeof(command) - 32);
    if (n < 0)
        return krait_err_errno(err, "cannot read /proc/self/exe");
    command[n] = '\0';
    strcpy(prefix, command);
    *strrchr(prefix, '/') = '\0';
    strcat(strcpy(beside, prefix), "/python/krait"); /* the build folder */
    if (*prefix)
        *strrchr(prefix, '/') = '\0';
    if (find(beside, prefix, false, path, size) || find(beside, prefix, true, path, size))
        return check_whole(path, err);
    return krait_err_set(err, -ENOENT,
                         "%s is alone: " PRELOAD " is neither beside it nor in a Python package below %s; "
                         "install krait whole (make install, or pip install), or link to the command "
                         "instead of copying it",
                         command, *prefix ? prefix : "/");
}

int krait_before_set_environment(const struct krait_collector *collector, const char *preload, bool children,
                                 struct krait_err *err)
{
    const char *before = getenv("LD_PRELOAD");
    KRAIT_AUTO_FREE char *all = NULL;
    if (asprintf(&all, "%s%s%s", before ? before : "", before && *before ? ":" : "", preload) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    setenv(KRAIT_ENV_SESSION, krait_collector_variable(collector), 1);
    if (!children)
        setenv(KRAIT_ENV_NO_CHILDREN, "1", 1);
    setenv("LD_PRELOAD", all, 1);
    return 0;
}

/* -- the command -- */

/* A file of the command's as far as it is looked at. */
struct image {
    const char *bytes;
    size_t size;
};

static struct image image_open(const char *path)
{
    struct image image = { 0 };
    struct stat stat;
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &stat) || !S_ISREG(stat.st_mode) || !stat.st_size)
        return image;
    void *bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes != MAP_FAILED)
        image = (struct image){ bytes, (size_t)stat.st_size };
    return image;
}

static void image_done(struct image *image)
{
    if (image->size)
        munmap((void *)image->bytes, image->size);
}

static const char *image_find(const struct image *image, const char *text)
{
    return memmem(image->bytes, image->size, text, strlen(text));
}

static bool is_elf(const struct image *image)
{
    return image->size >= sizeof(ElfW(Ehdr)) && memcmp(image->bytes, ELFMAG, SELFMAG) == 0 &&
           image->bytes[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
}

/* Without a loader nothing is preloaded. */
static bool has_loader(const struct image *image)
{
    ElfW(Ehdr) head;
    memcpy(&head, image->bytes, sizeof(head));
    for (unsigned i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) part;
        size_t at = head.e_phoff + (size_t)i * head.e_phentsize;
        if (at > image->size || image->size - at < sizeof(part))
            return true;
        memcpy(&part, image->bytes + at, sizeof(part));
        if (part.p_type == PT_INTERP)
            return true;
    }
    return false;
}

static bool mentions(const void *image, const char *text)
{
    return image_find(image, text);
}

/* A Python is linked with its library or holds it. Writes "3.7" to `version` where that is known. */
static bool is_too_old(const struct image *image, char *version, size_t size)
{
    int major = 0, minor = 0;
    const char *library = image_find(image, "libpython");
    size_t room = library ? (size_t)(image->bytes + image->size - library) : 0;
    char name[32] = "";
    memcpy(name, library ? library : "", KRAIT_MIN(room, sizeof(name) - 1));
    if (sscanf(name, "libpython%d.%d", &major, &minor) == 2) {
        snprintf(version, size, " %d.%d", major, minor);
        return krait_python_age(major, minor) < 0;
    }
    *version = '\0';
    return krait_python_is_too_old(mentions, image);
}

static int check_python(const char *path, const struct image *image, struct krait_err *err)
{
    char version[32];
    if (!has_loader(image))
        return krait_err_set(err, -ENOTSUP,
                             "%s is linked statically, so that krait cannot be loaded into it; use a Python "
                             "that is linked dynamically. See: krait doctor",
                             path);
    if (is_too_old(image, version, sizeof(version)))
        return krait_err_set(err, -ENOTSUP,
                             "%s is Python%s; krait records CPython " KRAIT_PYTHON_SPAN ". See: krait doctor",
                             path, *version ? version : " before " KRAIT_PYTHON_MIN);
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The interpreter that the first line names, as the kernel takes it (fs/binfmt_script.c): a line end of another
 * system's is part of the name. "" if there is none. */
static void read_interpreter(const struct image *image, char *to, size_t size)
{
    *to = '\0';
    if (image->size < 3 || memcmp(image->bytes, "#!", 2) != 0)
        return;
    size_t n = 2;
    while (n < image->size && is_blank(image->bytes[n]))
        n++;
    size_t begin = n;
    while (n < image->size && !is_blank(image->bytes[n]) && image->bytes[n] && image->bytes[n] != '\n')
        n++;
    snprintf(to, size, "%.*s", (int)KRAIT_MIN(n - begin, size - 1), image->bytes + begin);
}

static bool is_python_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "python", strlen("python")) == 0;
}

/* A script is looked at once: what its interpreter is. */
static int check_file(const char *path, struct krait_err *err)
{
    char interpreter[PATH_MAX];
    KRAIT_CLEANUP(image_done) struct image image = image_open(path);
    read_interpreter(&image, interpreter, sizeof(interpreter));
    if (*interpreter && access(interpreter, F_OK) && errno == ENOENT) {
        krait_err_set(err, -ENOENT, "cannot run %s: its first line names %s, which is not there", path,
                      interpreter);
        return KRAIT_EXIT_CANNOT_RUN;
    }
    KRAIT_CLEANUP(image_done) struct image python = { 0 };
    const char *name = *interpreter ? interpreter : path;
    if (is_python_name(name))
        python = image_open(name);
    if (!is_elf(&python))
        return 0;
    return check_python(name, &python, err) ? KRAIT_EXIT_NOT_RECORDED : 0;
}

/* As execvp(3) looks: the first that may be executed, or else the first that is there. Returns 0 or an errno. */
int krait_before_look_up(const char *file, char *path, size_t size)
{
    KRAIT_AUTO_FREE char *folders = strdup(getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin");
    struct stat stat_;
    int found = ENOENT;
    if (!*file || !folders || strchr(file, '/')) {
        snprintf(path, size, "%s", file);
        return stat(file, &stat_) ? errno : S_ISREG(stat_.st_mode) && access(file, X_OK) == 0 ? 0 : EACCES;
    }
    char *rest = folders, *folder;
    while ((folder = strsep(&rest, ":"))) {
        int n = snprintf(path, size, "%s%s%s", folder, *folder ? "/" : "", file);
        if (n >= (int)size || stat(path, &stat_) || !S_ISREG(stat_.st_mode))
            continue;
        if (access(path, X_OK) == 0)
            return 0;
        found = EACCES;
    }
    return found;
}

/* Whether it is a script in Python: by its name or its first line. */
static bool is_script(const char *file)
{
    const char *dot = strrchr(file, '.');
    KRAIT_CLEANUP(image_done) struct image image = image_open(file);
    if (!image.size)
        return false;
    const char *end = memchr(image.bytes, '\n', image.size);
    struct image line = { image.bytes, end ? (size_t)(end - image.bytes) : image.size };
    bool named = image.size > 2 && memcmp(image.bytes, "#!", 2) == 0 && image_find(&line, "python");
    return named || (dot && (strcmp(dot, ".py") == 0 || strcmp(dot, ".pyz") == 0));
}

void krait_before_hint(const char *file, struct krait_err *err)
{
    KRAIT_AUTO_BUF name = { 0 };
    krait_shell_file(&name, file);
    if (!is_script(file) || name.failed)
        return;
    size_t n = strlen(err->text);
    snprintf(err->text + n, sizeof(err->text) - n, "; name its interpreter: krait record -- python3 %s",
             name.data);
}

int krait_before_check_command(const char *file, struct krait_err *err)
{
    char path[PATH_MAX];
    int why = krait_before_look_up(file, path, sizeof(path));
    if (!why)
        return check_file(path, err);
    if (why == ENOENT && !strchr(file, '/'))
        krait_err_set(err, -why, "cannot run %s: no such command on PATH", file);
    else
        krait_err_set(err, -why, "cannot run %s: %s", file, strerror(why));
    krait_before_hint(file, err);
    return why == ENOENT ? KRAIT_EXIT_NOT_FOUND : KRAIT_EXIT_CANNOT_RUN;
}
