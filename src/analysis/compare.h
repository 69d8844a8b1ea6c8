/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a number changed between two sets of repeated measurements.
 *
 * Welch's t-test, whose two sets may spread differently (B. L. Welch, Biometrika 34, 1947): the change of the
 * means, the interval that holds the true change with a confidence of 95 %, and how probable such a change is
 * by chance. Of many numbers compared at once, those are marked among which one in twenty is a false alarm
 * (Benjamini and Hochberg, J. R. Statist. Soc. B 57, 1995).
 */
#ifndef KRAIT_ANALYSIS_COMPARE_H
#define KRAIT_ANALYSIS_COMPARE_H

#include "base/base.h"

#define KRAIT_COMPARE_CONFIDENCE 0.95

struct krait_change {
    double before, after; /* means */
    double low, high;     /* of the change, where `known` */
    double p;             /* probability of such a change, or more, if there is none; 1 if not known */
    bool known;           /* both sets have two measurements at least */
    bool certain;         /* set by krait_changes_mark */
};

struct krait_change krait_change_of(const double *before, uint32_t before_count, const double *after,
                                    uint32_t after_count);

/* The same of sums and sums of squares. */
struct krait_change krait_change_of_sums(uint32_t before_count, double before_sum, double before_squares,
                                         uint32_t after_count, double after_sum, double after_squares);

/* The t beyond which both tails of Student's distribution hold a share of it, with `df` degrees of freedom. */
double krait_student_t(double tails, double df);

/* Marks what changed. Returns 0 or -ENOMEM. */
int krait_changes_mark(struct krait_change *changes, uint32_t count);

#endif
