/* SPDX-License-Identifier: Apache-2.0
 *
 * CPython's audit events (PEP 578), with --audit. An audit hook can raise, which would stop what is audited: krait's
 * never does. It runs amid C functions, so that nothing of the program's is called for an argument's text.
 */
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/notes.h"
#include "python/optional.h"
#include "python/text.h"

#include <fnmatch.h>
#include <string.h>

enum { GLOBS = 64, ARGS_BYTES = 2048 };

static const char *globs[GLOBS]; /* in the shared memory; "": all */
static size_t glob_count;

void krait_audit_read(void)
{
    const char *glob = NULL;
    glob_count = 0;
    while (glob_count < GLOBS && (glob = krait_filters_next(&krait_agent, glob, KRAIT_FILTER_AUDIT)))
        globs[glob_count++] = glob;
}

/* Who mistyped a name is told at the end. */
static bool matches(const char *event)
{
    uint64_t meant = 0, asked = 0;
    for (size_t i = 0; i < glob_count; i++) {
        asked |= 1ull << i;
        meant |= (uint64_t)(!*globs[i] || fnmatch(globs[i], event, 0) == 0) << i;
    }
    krait_names_met_note(&krait_agent.writer.shm.control->names_met[KRAIT_NAMED_AUDITED], event, meant,
                         asked);
    return meant;
}

/* Programs may audit events of their own: a name is known by what it says, not by where it is. */
static bool is_asked_for(struct krait_interp *in, const char *event)
{
    if (!glob_count)
        return false;
    uint64_t key = krait_hash_bytes(event, strlen(event));
    const uint64_t *known = krait_map_get(&in->audited, key);
    bool asked_for = known ? *known : matches(event);
    if (!known)
        krait_map_put(&in->audited, key, asked_for);
    return asked_for;
}

static void note(struct krait_interp *in, const char *event, PyObject *args)
{
    struct krait_note note;
    KRAIT_AUTO_BUF text = { 0 };
    uint8_t payload[KRAIT_PAYLOAD_MAX];
    if (krait_note_begin(&note, in, krait_moment_now())) {
        if (args && PyTuple_Check(args))
            krait_text_json(&text, args, KRAIT_TEXT_AUDITED);
        const struct krait_payload_audit_event audited = {
            .name = krait_code_name(in, event),
            .args = text.len && !text.failed ? text.data : "[]",
        };
        krait_note_put(&note, KRAIT_EVENT_audit_event, payload, krait_put_audit_event(payload, &audited));
    }
    krait_note_end(&note);
}

void krait_audit_tell(struct krait_interp *in, const char *event, PyObject *args)
{
    krait_optional_audit(in, event);
    if (krait_note_is_open() || !krait_agent_records(in))
        return;
    if (in->agent->asks & KRAIT_RECORD_LOG)
        krait_warnings_audit(in, event, args);
    if (is_asked_for(in, event))
        note(in, event, args);
}

/* ---- krait.start(): nobody tells them ---- */

static bool is_told; /* by the preloaded library, or by our own hook */

void krait_audit_is_fed(void)
{
    is_told = true;
}

bool krait_audit_is_told(void)
{
    return is_told;
}

void krait_audit_forget_hook(void)
{
    is_told = false;
}

static int on_audit(const char *event, PyObject *args, void *data)
{
    krait_governor_audit(event, args);
    struct krait_interp *in = krait_agent.asks ? krait_agent_interp() : NULL;
    if (in)
        krait_audit_tell(in, event, args);
    return 0;
}

void krait_audit_see(void)
{
    if (is_told || !krait_compat.add_audit_hook)
        return;
    is_told = true; /* adding a hook is audited too */
    is_told = krait_compat.add_audit_hook(on_audit, NULL) == 0;
    PyErr_Clear();
}
