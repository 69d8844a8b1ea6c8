/* SPDX-License-Identifier: Apache-2.0
 *
 * What provider.c and provider_read.c share.
 */
#ifndef KRAIT_ANALYSIS_PROVIDER_OWN_H
#define KRAIT_ANALYSIS_PROVIDER_OWN_H

#include "analysis/provider.h"
#include "base/map.h"
#include "base/xml.h"

struct krait_provider {
    struct krait_xml
        *root; /* the element stateProvider, without what is not supported; in the rules' arena */
    struct krait_strtab paths, values;
    uint32_t *states, state_cap; /* a value by path; KRAIT_NO_ID: none */
};

#endif
