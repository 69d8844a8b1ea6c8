/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of tests/ as a target: it runs as it is, once for each input, and what it prints goes nowhere. The target
 * renames its main and includes it behind this file.
 */
#ifndef KRAIT_TESTS_FUZZ_PROGRAM_H
#define KRAIT_TESTS_FUZZ_PROGRAM_H

#include "packets.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int main(int argc, char **argv);

#define printf(...) ((void)snprintf(NULL, 0, __VA_ARGS__))

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return fuzz_make_dir();
}

#endif
