/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of system calls, by this machine's numbers.
 */
#ifndef KRAIT_BASE_SYSTEM_CALLS_H
#define KRAIT_BASE_SYSTEM_CALLS_H

/* Such as "futex"; NULL if programs do not wait in it. */
const char *krait_system_call_name(int number);

#endif
