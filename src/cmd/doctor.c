/* SPDX-License-Identifier: Apache-2.0
 *
 * krait doctor: what this machine and this user can record, and how to get what is missing.
 */
#include "cmd/cmd.h"

#include "base/json.h"
#include "cmd/terminal.h"
#include "kernel/probe.h"
#include "kernel/pythons.h"
#include "python/compat/versions.h"

#include <string.h>
#include <sys/utsname.h>

struct doctor_options {
    bool json;
};

/* What was found. */
struct doctor {
    struct krait_pythons pythons;
    struct krait_check *checks; /* one per row of krait_probes */
    size_t python_ok;           /* how many can be recorded */
};

extern const struct krait_cmd krait_cmd_doctor;

static const struct {
    const char *word;
    const char *colour;
} states[] = {
    [KRAIT_CHECK_OK] = { "ok", "\033[32m" },
    [KRAIT_CHECK_WARN] = { "warn", "\033[33m" },
    [KRAIT_CHECK_FAIL] = { "no", KRAIT_RED },
};

static bool can_record(const struct doctor *doctor)
{
    bool ok = doctor->python_ok > 0;
    for (size_t i = 0; krait_probes[i].run; i++)
        ok = ok && doctor->checks[i].state != KRAIT_CHECK_FAIL;
    return ok;
}

static int examine(struct doctor *doctor, struct krait_err *err)
{
    size_t count = 0;
    while (krait_probes[count].run)
        count++;
    doctor->checks = calloc(count, sizeof(*doctor->checks));
    if (!doctor->checks)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        krait_probes[i].run(&doctor->checks[i]);
    int rc = krait_pythons_find(&doctor->pythons, err);
    for (size_t i = 0; !rc && i < doctor->pythons.count; i++)
        doctor->python_ok += !krait_python_refusal(&doctor->pythons.items[i]);
    return rc;
}

static void doctor_done(struct doctor *doctor)
{
    krait_pythons_done(&doctor->pythons);
    free(doctor->checks);
}

/* ---- text ---- */

enum { MARK_WIDTH = 4, NAME_WIDTH = 13, VERSION_WIDTH = 8, HOOK_WIDTH = 17 };

static const char *colour(const char *code)
{
    return krait_terminal_colour(stdout, code);
}

/* From the column where the cursor is now. */
static void put_wrapped(size_t column, const char *code, const char *text)
{
    krait_terminal_wrap(stdout, code, (uint32_t)column, (uint32_t)column, text);
}

static void put_heading(const char *text)
{
    printf("\n%s%s%s\n", colour(KRAIT_BOLD), text, colour(KRAIT_PLAIN));
}

static void put_mark(enum krait_check_state state)
{
    printf("  %s%-*s%s  ", colour(states[state].colour), MARK_WIDTH, states[state].word, colour(KRAIT_PLAIN));
}

/* What to do, under what was found. */
static void put_fix(size_t indent, const char *fix)
{
    printf("%*s%sto fix:%s ", (int)indent, "", colour(KRAIT_DIM), colour(KRAIT_PLAIN));
    put_wrapped(indent + strlen("to fix: "), KRAIT_DIM, fix);
}

static void put_check(const char *name, const struct krait_check *check)
{
    size_t indent = 2 + MARK_WIDTH + 2 + NAME_WIDTH + 2;
    put_mark(check->state);
    printf("%-*s  ", NAME_WIDTH, name);
    put_wrapped(indent, NULL, check->value);
    if (check->fix[0])
        put_fix(indent, check->fix);
}

static void python_version(const struct krait_python *python, char *to, size_t n)
{
    if (python->answered)
        snprintf(to, n, "%d.%d.%d%s%s", python->major, python->minor, python->micro,
                 python->free_threaded ? "t" : "", strcmp(python->release, "final") ? python->release : "");
    else
        snprintf(to, n, "?");
}

/* The path as a shell user writes it, and what is unusual about it. */
static void python_place(const struct krait_python *python, char *to, size_t n)
{
    const char *home = getenv("HOME");
    size_t len = home ? strlen(home) : 0;
    bool inside = len > 1 && strncmp(python->path, home, len) == 0 && python->path[len] == '/';
    snprintf(to, n, "%s%s%s", inside ? "~" : "", python->path + (inside ? len : 0),
             python->answered && !python->shared ? " (static)" : "");
}

static void put_python(const struct krait_python *python)
{
    char version[64];
    char place[4096];
    const char *refusal = krait_python_refusal(python);
    const size_t indent = 2 + MARK_WIDTH + 2 + VERSION_WIDTH + 2;
    python_version(python, version, sizeof(version));
    python_place(python, place, sizeof(place));
    put_mark(refusal ? KRAIT_CHECK_WARN : KRAIT_CHECK_OK);
    printf("%-*s  %-*s  ", VERSION_WIDTH, version, HOOK_WIDTH,
           refusal ? "not recorded" : krait_python_hook(python));
    put_wrapped(indent + HOOK_WIDTH + 2, NULL, place);
    if (!refusal)
        return;
    printf("%*s", (int)indent, "");
    put_wrapped(indent, NULL, refusal);
}

static void put_pythons(const struct doctor *doctor)
{
    put_heading("Python");
    for (size_t i = 0; i < doctor->pythons.count; i++)
        put_python(&doctor->pythons.items[i]);
    if (doctor->python_ok)
        return;
    struct krait_check none = { .state = KRAIT_CHECK_FAIL };
    krait_check_value(&none, "no interpreter here that can be recorded");
    krait_check_fix(&none, KRAIT_CHECK_FAIL,
                    "sudo apt-get install python3, or put CPython " KRAIT_PYTHON_SPAN " on PATH");
    put_check("python3", &none);
}

static void put_verdict(const struct doctor *doctor)
{
    bool ok = can_record(doctor);
    const char *paint = colour(states[ok ? KRAIT_CHECK_OK : KRAIT_CHECK_FAIL].colour);
    printf("\n%s%s%s\n", paint,
           ok ? "Python calls can be recorded." : "Python calls cannot be recorded here.",
           colour(KRAIT_PLAIN));
    if (ok)
        puts("Next: krait record -- python3 app.py");
}

static void put_text(const struct doctor *doctor)
{
    struct utsname host;
    uname(&host);
    printf("krait %s on %s %s, %s\n", KRAIT_VERSION, host.sysname, host.release, host.machine);
    put_pythons(doctor);
    for (size_t i = 0; krait_probes[i].run; i++) {
        if (i == 0 || strcmp(krait_probes[i].group, krait_probes[i - 1].group) != 0)
            put_heading(krait_probes[i].group);
        put_check(krait_probes[i].name, &doctor->checks[i]);
    }
    put_verdict(doctor);
}

/* ---- JSON ---- */

static void json_python(struct krait_buf *out, const struct krait_python *python)
{
    char version[64];
    const char *refusal = krait_python_refusal(python);
    python_version(python, version, sizeof(version));
    krait_buf_char(out, '{');
    krait_json_key_text_or_null(out, "path", python->path);
    krait_json_key_text_or_null(out, "found", python->found);
    krait_json_key_text_or_null(out, "implementation", python->implementation);
    krait_json_key_text_or_null(out, "version", python->answered ? version : NULL);
    krait_json_key_text_or_null(out, "hook", refusal ? NULL : krait_python_hook(python));
    krait_json_key_bool(out, "shared", python->shared);
    krait_json_key_bool(out, "free_threaded", python->free_threaded);
    krait_json_key_bool(out, "supported", !refusal);
    krait_json_key_text_or_null(out, "fix", refusal);
    krait_buf_char(out, '}');
}

static void json_check(struct krait_buf *out, const struct krait_probe *probe,
                       const struct krait_check *check)
{
    krait_buf_char(out, '{');
    krait_json_key_text_or_null(out, "group", probe->group);
    krait_json_key_text_or_null(out, "name", probe->name);
    krait_json_key_text_or_null(out, "state", states[check->state].word);
    krait_json_key_text_or_null(out, "value", check->value);
    krait_json_key_text_or_null(out, "fix", check->fix);
    krait_buf_char(out, '}');
}

static int put_json(const struct doctor *doctor)
{
    KRAIT_AUTO_BUF out = { 0 };
    krait_buf_char(&out, '{');
    krait_json_key_text(&out, "version", KRAIT_VERSION);
    krait_json_key_bool(&out, "can_record", can_record(doctor));
    krait_json_key_open(&out, "pythons", '[');
    for (size_t i = 0; i < doctor->pythons.count; i++) {
        krait_json_item(&out, "");
        json_python(&out, &doctor->pythons.items[i]);
    }
    krait_buf_char(&out, ']');
    krait_json_key_open(&out, "checks", '[');
    for (size_t i = 0; krait_probes[i].run; i++) {
        krait_json_item(&out, "");
        json_check(&out, &krait_probes[i], &doctor->checks[i]);
    }
    krait_buf_str(&out, "]}\n");
    if (out.failed)
        return -ENOMEM;
    fwrite(out.data, 1, out.len, stdout);
    return 0;
}

static int run_doctor(void *values, int argc, char **argv)
{
    const struct doctor_options *options = values;
    KRAIT_CLEANUP(doctor_done) struct doctor doctor = { 0 };
    struct krait_err err = { 0 };
    if (argc > 0) {
        krait_err_set(&err, -EINVAL, "takes no operand, but got '%s'", argv[0]);
        krait_cmd_fail(&krait_cmd_doctor, &err);
        return 2;
    }
    if (examine(&doctor, &err))
        return krait_cmd_fail(&krait_cmd_doctor, &err);
    if (!options->json)
        put_text(&doctor);
    else if (put_json(&doctor)) {
        krait_err_set(&err, -ENOMEM, "out of memory");
        return krait_cmd_fail(&krait_cmd_doctor, &err);
    }
    return can_record(&doctor) ? 0 : 1;
}

static const struct krait_opt doctor_opts[] = {
    { "json", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct doctor_options, json), "Print one JSON object" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_doctor = {
    .name = "doctor",
    .operands = "",
    .summary = "Check what this machine and this user can record",
    .description =
        "Checks the Python interpreters, the clock, shared memory, limits, the kernel's tracing and ptrace, and "
        "prints how to get what is missing. It changes nothing.\n\n"
        "krait looks for interpreters in PATH, /usr/bin, /usr/local/bin, the active virtual environment, "
        "./.venv, ./venv, pyenv and uv, and starts each of them once.",
    .examples = "krait doctor\n"
                "# The interpreters that krait can record\n"
                "krait doctor --json | jq -r '.pythons[] | select(.supported).path'\n",
    .opts = doctor_opts,
    .exit_status = "0 when Python calls can be recorded, 1 when not, 2 wrong usage.",
    .values_size = sizeof(struct doctor_options),
    .run = run_doctor,
};
