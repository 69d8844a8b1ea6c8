/* SPDX-License-Identifier: Apache-2.0
 *
 * krait ctl: asks a running recording how it is, and switches it on and off.
 */
#include "cmd/ctl.h"

#include "base/json_read.h"
#include "cmd/cmd.h"
#include "cmd/terminal.h"
#include "record/ctl.h"

#include <string.h>

extern const struct krait_cmd krait_cmd_ctl;

struct options {
    bool json, quiet;
    const char *output;
};

/* What may be asked for. */
static const struct verb {
    const char *name;
    bool has_argument; /* or several, which are sent as one text */
} verbs[] = {
    { "status", false }, { "start", false }, { "stop", false }, { "snapshot", false }, { "set", true },
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

static int check_words(int argc, char **argv, struct krait_err *err)
{
    KRAIT_AUTO_BUF names = { 0 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(verbs); i++)
        krait_buf_fmt(&names, "%s%s", i ? ", " : "", verbs[i].name);
    if (!argc)
        return krait_err_set(err, -EINVAL, "no recording; as in: krait ctl PID status");
    const char *word = argc > 1 ? argv[1] : "status";
    const struct verb *verb = find_verb(word);
    if (!verb)
        return krait_err_set(err, -EINVAL, "'%s' is none of %s", word, names.data ? names.data : "");
    if (argc > 2 && !verb->has_argument)
        return krait_err_set(err, -EINVAL, "'%s' takes nothing more, as '%s'", word, argv[2]);
    return 0;
}

static int print(const struct krait_buf *out, struct krait_err *err)
{
    if (out->failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (fwrite(out->data, 1, out->len, stdout) != out->len || fflush(stdout))
        return krait_err_errno(err, "cannot write");
    return 0;
}

static int print_answer(const char *verb, const struct krait_json *json, const struct krait_table_look *look,
                        struct krait_buf *out)
{
    if (strcmp(verb, "status") == 0)
        return ctl_print_status(json, look, out);
    if (strcmp(verb, "snapshot") == 0)
        return ctl_print_snapshot(json, out);
    if (strcmp(verb, "set") == 0)
        return ctl_print_set(json, out);
    return ctl_print_switch(json, verb, out);
}

static int show(const struct options *options, const char *verb, const struct krait_buf *answer,
                struct krait_err *err)
{
    KRAIT_AUTO_BUF out = { 0 };
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    struct krait_json *json;
    int rc = krait_json_read(&json, &arena, answer->data, answer->len, 0, err);
    if (rc)
        return krait_err_prefix(err, rc, "krait record's answer");
    const struct krait_json *error = krait_json_get(json, "error");
    if (error && error->kind == KRAIT_JSON_TEXT)
        return krait_err_set(err, -EPERM, "%s", error->text);
    if (options->json)
        return print(answer, err);
    struct krait_table_look look = krait_terminal_look(stdout);
    rc = print_answer(verb, json, &look, &out);
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    rc = options->quiet ? 0 : print(&out, err);
    if (!rc && !options->quiet)
        krait_terminal_note_dropped();
    return rc;
}

/* The request's text: the collector is in another folder. */
static int put_request(const struct options *options, const char *verb, int argc, char **argv,
                       struct krait_buf *request, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *here = getcwd(NULL, 0);
    krait_buf_str(request, verb);
    if (options->output && strcmp(verb, "snapshot") != 0)
        return krait_err_set(err, -EINVAL, "-o is for snapshot only");
    if (options->output && *options->output == '/')
        krait_buf_fmt(request, " %s", options->output);
    else if (options->output)
        krait_buf_fmt(request, " %s/%s", here ? here : "", options->output);
    for (int i = 2; i < argc; i++)
        krait_buf_fmt(request, "%c%s", i == 2 ? ' ' : '\n', argv[i]);
    return request->failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

static int run_ctl(void *values, int argc, char **argv)
{
    struct krait_err err = { 0 };
    struct krait_ctl_place place;
    KRAIT_AUTO_BUF answer = { 0 }, request = { 0 };
    const char *verb = argc > 1 ? argv[1] : "status";
    if (check_words(argc, argv, &err) || put_request(values, verb, argc, argv, &request, &err))
        return krait_cmd_usage(&krait_cmd_ctl, &err);
    if (krait_ctl_find(argv[0], &place, &err) || krait_ctl_ask(&place, request.data, &answer, &err) ||
        show(values, verb, &answer, &err))
        return krait_cmd_fail(&krait_cmd_ctl, &err);
    return 0;
}

static const struct krait_opt opts[] = {
    { "output", 'o', KRAIT_OPT_STR, "DIR", offsetof(struct options, output),
      "With snapshot: write it to DIR, a folder that does not exist or is empty (default: beside the "
      "recording, as FOLDER-snapshot-1)" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct options, json), "Print the answer as a JSON object" },
    { "quiet", 'q', KRAIT_OPT_FLAG, NULL, offsetof(struct options, quiet), "Print nothing but errors" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_ctl = {
    .name = "ctl",
    .operands = "PID|DIR [status|start|stop|snapshot|set KEY=VALUE...]",
    .summary = "Control a running recording: switch it on and off, look at it",
    .description =
        "Talks to the krait record that records the process PID, that has this PID itself, or that writes "
        "the folder DIR.\n\n"
        "status, the default, prints whether the recording is on, since when, how much it has recorded and "
        "lost, what it "
        "records, and its processes. stop switches it off: krait records nothing, and the programs run on "
        "without hooks, at full speed. start switches it on again in all threads of all processes; the "
        "recording then continues with their call stacks. Programs that start while it is off are ready to "
        "be switched on.\n\n"
        "stop and set take effect in a process at its next call of a recorded function, start when one of "
        "its threads next releases the GIL. start waits up to two seconds for that, stop and set half a "
        "second. All three print the processes that will follow later.\n\n"
        "snapshot copies what was recorded so far, or with --last the newest part, into a recording of its "
        "own, while the programs run on. See docs/flight.md.\n\n"
        "set changes what is recorded from now on: include=GLOB and exclude=GLOB (each may be repeated, and "
        "replaces all earlier globs; without a glob, it only removes them), overhead=PERCENT (0: no limit) "
        "and c-calls=on|off. A space or a comma divides them.\n\n"
        "Only the user who records and root can control a recording. See docs/control.md.",
    .examples = "krait ctl 4711\n"
                "# Leave out what the program does at first\n"
                "krait ctl 4711 stop\n"
                "krait ctl 4711 start\n"
                "# Look closer at one module, at no more than 5 % of the program's time\n"
                "krait ctl 4711 set include='app.orders*' overhead=5\n"
                "# Save what krait record --last 10s has kept, and look at it\n"
                "krait ctl 4711 snapshot -o slow && krait report slow\n"
                "# The number of lost events, for a monitor\n"
                "krait ctl --json trace status | jq .lost_events\n",
    .opts = opts,
    .values_size = sizeof(struct options),
    .run = run_ctl,
};
