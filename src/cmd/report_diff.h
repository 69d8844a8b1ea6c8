/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --diff` in its parts: reading and comparing (report_diff.c), and what is printed (report_diff_out.c).
 */
#ifndef KRAIT_CMD_REPORT_DIFF_H
#define KRAIT_CMD_REPORT_DIFF_H

#include "analysis/compare.h"
#include "cmd/report.h"

/* A function, or what else is compared, in all recordings. */
struct diff_row {
    const char *name, *module, *file;
    uint32_t line;
    enum krait_func_kind kind;
    bool holds_dropped;              /* in a recording of either side */
    uint32_t first_type, type_count; /* of diff.types, once they are sorted */
    double *numbers[2];              /* by recording, those of --diff first: wall time or calls; on CPU */
};

/* Exceptions of one type that left a function. */
struct diff_type {
    uint32_t row;
    const char *type;
    double numbers[2]; /* before and after: sums, then means */
};

struct diff {
    struct report *report;
    char **paths; /* of the recordings after */
    struct krait_strtab keys;
    struct krait_arena texts;
    struct diff_row *rows; /* by id of its key */
    uint32_t count, cap;
    struct krait_change *changes; /* by row */
    struct krait_change all;
    uint32_t before, recordings; /* those of --diff, and all */
    uint32_t clocked;            /* how many tell the time on CPU */
    uint32_t governed;           /* where --max-overhead left functions out */
    struct krait_buf missing;    /* what is missing from which, as notes */
    struct krait_buf each;       /* and for programs, with commas between */
    size_t offset, split_offset; /* of the number in krait_profile_row and krait_wall_split */
    bool counts;                 /* it is calls, or exceptions */
    bool raised;                 /* it is exceptions */
    struct krait_strtab type_names;
    struct krait_map type_of; /* row and name to the place in `types` */
    struct diff_type *types;  /* by row, the greatest change first */
    uint32_t type_count, type_cap;
};

/* Whether the time on the CPU is compared. */
static inline bool krait_diff_is_on_cpu(const struct diff *d)
{
    return !d->counts && d->clocked == d->recordings;
}

/* Of total times, which hold each other, there is no sum, nor of exceptions, which leave one function after another. */
static inline bool krait_diff_has_sum(const struct diff *d)
{
    return !d->raised && d->offset != offsetof(struct krait_profile_row, total_ns);
}

/* The first `shown` rows of `order`, in the report's format. Returns 0 or -ENOMEM. */
int krait_diff_print(const struct diff *diff, const uint32_t *order, uint32_t shown);
/* What was compared and what it comes to, as notes. */
void krait_diff_note(const struct diff *diff);

#endif
