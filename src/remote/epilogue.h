/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules for a place in code that is in no file, as Python makes it with -X perf (Python/asm_trampoline.S). If the code returns
 * at once, its instructions tell where the caller's registers are:
 *
 *     sub $8,%rsp    call *%rcx    add $8,%rsp    ret         3.12, 3.13
 *     push %rbp    mov %rsp,%rbp    call *%rcx    pop %rbp    ret         from 3.14 on
 *                                                 ^ the place
 */
#ifndef KRAIT_REMOTE_EPILOGUE_H
#define KRAIT_REMOTE_EPILOGUE_H

#include "remote/cfi.h"

enum { KRAIT_EPILOGUE_BYTES = 32 };

/* Makes the rules for a place from the instructions there. Returns false if they do more than free memory of the stack, take back
 * registers and return; also on AArch64. */
bool krait_epilogue_rules(const uint8_t code[KRAIT_EPILOGUE_BYTES], struct krait_cfi *cfi);

#endif
