/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts around values: what a printed event has before the value of each instruction of its program
 * (ctf/read/program.h), and before the END of each block.
 *
 *   struct { u32 a; string s; u8 data[n]; }     INT        "{ a = "
 *                                               STRING     ", s = "
 *                                               SEQUENCE   ", data = ["
 *                                                 INT, END
 *                                               END        " ] }"
 */
#ifndef KRAIT_CTF_TEXT_WORDS_H
#define KRAIT_CTF_TEXT_WORDS_H

#include "base/arena.h"
#include "ctf/read/program.h"

/* What an event's text is for. */
enum krait_form {
    KRAIT_FORM_TEXT,      /* people: as babeltrace2 prints it */
    KRAIT_FORM_JSON,      /* programs: JSON */
    KRAIT_FORM_CELL,      /* programs: a cell of CSV a field */
    KRAIT_FORM_JSON_CELL, /* JSON in a cell of CSV: each quote is doubled */
};

/* Many JSON readers store numbers as doubles, so integers of wider fields are strings (RFC 8259, 6). */
enum { KRAIT_JSON_EXACT_BITS = 53 };

enum krait_text_flags {
    KRAIT_TEXT_FIELD_NAMES = 1,   /* of the payload */
    KRAIT_TEXT_CONTEXT_NAMES = 2, /* of the contexts */
    KRAIT_TEXT_SCOPE_NAMES = 4,   /* "stream.event.context = " before each scope */
    /* Other forms, which need no other flags: */
    KRAIT_TEXT_JSON = 8,        /* each scope as ,"NAME":{...} */
    KRAIT_TEXT_CELLS = 16,      /* a cell for each member of a scope, a comma before each */
    KRAIT_TEXT_JSON_CELLS = 32, /* one cell for each scope, empty or with an object in it */
};

/* The scopes that are printed, in the order of the forms. */
enum krait_scope {
    KRAIT_SCOPE_PACKET_CONTEXT,
    KRAIT_SCOPE_COMMON_CONTEXT,
    KRAIT_SCOPE_EVENT_CONTEXT,
    KRAIT_SCOPE_PAYLOAD,
    KRAIT_SCOPES,
};

/* NULL if events of the class have no such scope. */
const struct krait_fc *krait_scope_of(const struct krait_event_class *event, enum krait_scope scope);

/* Of one instruction. */
struct krait_words {
    const char *text; /* before the value */
    uint32_t len;
    uint8_t form; /* enum krait_form */
    bool hidden;  /* not printed: times and sizes, which other readers do not print either */
    bool named;   /* ARRAY, SEQUENCE: elements are printed with their index */
};

struct krait_words_plan {
    const struct krait_program *program;
    const struct krait_event_class *event;
    enum krait_scope first, last;   /* the scopes of the program */
    unsigned flags;                 /* enum krait_text_flags */
    const char *const *scope_names; /* of all scopes */
};

/* The words of all instructions, in the arena. NULL: memory is out. */
const struct krait_words *krait_words_new(struct krait_arena *arena, const struct krait_words_plan *plan);

/* Whether JSON and CSV have a member of a scope. They leave out members of the packet context that only readers need
 * and that say nothing about the event. */
bool krait_data_shows(enum krait_scope scope, const struct krait_fc *member);

#endif
