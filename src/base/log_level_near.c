/* SPDX-License-Identifier: Apache-2.0
 *
 * Apart from log_level.c, which is in the agent too.
 */
#include "base/log_level.h"
#include "base/suggest.h"

#include <ctype.h>
#include <string.h>

const char *krait_log_level_near(const char *text)
{
    char word[32];
    size_t n = strlen(text);
    if (n >= sizeof(word) || strpbrk(text, "0123456789"))
        return NULL;
    for (size_t i = 0; i <= n; i++)
        word[i] = (char)toupper((unsigned char)text[i]);
    struct krait_suggest suggest = KRAIT_SUGGEST(word, n);
    const char *name;
    for (size_t i = 0; (name = krait_log_level_name(i)); i++)
        krait_suggest_try(&suggest, name);
    return suggest.best;
}
