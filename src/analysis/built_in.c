/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in analyses: built_in/NAME.toml, embedded.
 */
#include "analysis/declared.h"

#define BUILT_IN(id)                         \
    extern const char krait_built_in_##id[]; \
    extern const size_t krait_built_in_##id##_len;
#include "analysis/built_in.def"
#undef BUILT_IN

const struct krait_declared_builtin krait_declared_builtins[] = {
#define BUILT_IN(id) { #id, krait_built_in_##id, &krait_built_in_##id##_len },
#include "analysis/built_in.def"
#undef BUILT_IN
    { NULL, NULL, NULL },
};
