/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a test does what it does.
 */
#ifndef KRAIT_TESTS_ROUNDS_H
#define KRAIT_TESTS_ROUNDS_H

#include <stdlib.h>

/* So many; under a sanitizer, where each takes ten times as long, a quarter. clang says by the first which one it is, gcc by the
 * second. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ROUNDS(n) ((n) / 4)
#endif
#endif
#if !defined(ROUNDS) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define ROUNDS(n) ((n) / 4)
#endif
#ifndef ROUNDS
#define ROUNDS(n) (n)
#endif

/* What happens by chance is tried few times in `make test` and many times in `make test-all`. */
static inline unsigned tries(unsigned few, unsigned many)
{
    return getenv("KRAIT_TEST_ALL") ? many : few;
}

#endif
