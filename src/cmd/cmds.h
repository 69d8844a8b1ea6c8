/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares every verb's row.
 */
#ifndef KRAIT_CMD_CMDS_H
#define KRAIT_CMD_CMDS_H

#include "cmd/cmd.h"

#define KRAIT_CMD(name) extern const struct krait_cmd krait_cmd_##name;
#include "cmd/cmds.def"
#undef KRAIT_CMD

#endif
