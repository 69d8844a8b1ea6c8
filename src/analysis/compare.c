/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/compare.h"

#include <math.h>

/* The continued fraction of the incomplete beta function, by Lentz's method (NIST Digital Library of
 * Mathematical Functions, 8.17.22 and 3.10). */
static double beta_fraction(double a, double b, double x)
{
    enum { MOST = 300 };
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int m = 1; m < MOST; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double factor = 1;
        const double terms[] = { even, odd };
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            c = 1 + terms[i] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            factor *= c * d;
        }
        f *= factor;
        if (fabs(factor - 1) < 1e-12)
            break;
    }
    return f;
}

/* The regularised incomplete beta function. */
static double beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x >= 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* Both tails of Student's t with `df` degrees of freedom. */
static double t_tails(double t, double df)
{
    return beta(df / 2, 0.5, df / (df + t * t));
}

double krait_student_t(double tails, double df)
{
    double low = 0, high = 1;
    while (t_tails(high, df) > tails && high < 1e9)
        high *= 2;
    for (int i = 0; i < 80; i++) {
        double mid = (low + high) / 2;
        *(t_tails(mid, df) > tails ? &low : &high) = mid;
    }
    return high;
}

/* One set: how many, their mean, and the square of the mean's standard error. */
struct sample {
    uint32_t count;
    double mean, error;
};

static struct sample sample_of(const double *x, uint32_t n)
{
    struct sample s = { .count = n };
    double sum = 0; /* of integers it is exact, so that equal ones have their own value as mean */
    for (uint32_t i = 0; i < n; i++)
        sum += x[i];
    s.mean = n ? sum / n : 0;
    for (uint32_t i = 0; i < n && n > 1; i++)
        s.error += (x[i] - s.mean) * (x[i] - s.mean) / (n - 1) / n;
    return s;
}

static struct sample sample_of_sums(uint32_t n, double sum, double squares)
{
    struct sample s = { .count = n, .mean = n ? sum / n : 0 };
    double spread = squares - s.mean * sum;
    if (n > 1 && spread > 1e-12 * squares) /* else it is rounding */
        s.error = spread / (n - 1) / n;
    return s;
}

static struct krait_change change_of(const struct sample *before, const struct sample *after)
{
    uint32_t n = before->count, m = after->count;
    double change = after->mean - before->mean, u = before->error, v = after->error, error = sqrt(u + v);
    struct krait_change c = { .before = before->mean,
                              .after = after->mean,
                              .low = change,
                              .high = change,
                              .p = 1,
                              .known = n > 1 && m > 1 };
    if (!c.known)
        return c;
    if (error <= 0) { /* no spread at all, as of calls */
        c.p = change == 0;
        return c;
    }
    double df = (u + v) * (u + v) / (u * u / (n - 1) + v * v / (m - 1));
    double margin = error * krait_student_t(1 - KRAIT_COMPARE_CONFIDENCE, df);
    c.low -= margin;
    c.high += margin;
    c.p = t_tails(change / error, df);
    return c;
}

struct krait_change krait_change_of(const double *before, uint32_t before_count, const double *after,
                                    uint32_t after_count)
{
    struct sample a = sample_of(before, before_count), b = sample_of(after, after_count);
    return change_of(&a, &b);
}

struct krait_change krait_change_of_sums(uint32_t before_count, double before_sum, double before_squares,
                                         uint32_t after_count, double after_sum, double after_squares)
{
    struct sample a = sample_of_sums(before_count, before_sum, before_squares),
                  b = sample_of_sums(after_count, after_sum, after_squares);
    return change_of(&a, &b);
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int krait_changes_mark(struct krait_change *changes, uint32_t count)
{
    KRAIT_AUTO_FREE double *sorted = calloc((size_t)count + 1, sizeof(*sorted));
    double least = -1;
    uint32_t known = 0;
    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (changes[i].known)
            sorted[known++] = changes[i].p;
    }
    qsort(sorted, known, sizeof(*sorted), by_number);
    for (uint32_t i = 0; i < known; i++) {
        if (sorted[i] <= (1 - KRAIT_COMPARE_CONFIDENCE) * (i + 1) / known)
            least = sorted[i];
    }
    for (uint32_t i = 0; i < count; i++)
        changes[i].certain = changes[i].known && changes[i].p <= least;
    return 0;
}
