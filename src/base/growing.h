/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that grow while others read them. The writer holds a lock on such a file. A reader that finds half a packet
 * at the end asks for the lock: if it is held, the rest is still to come. The kernel drops the lock when the writer
 * closes the file or dies; a packet that is cut then stays cut.
 */
#ifndef KRAIT_BASE_GROWING_H
#define KRAIT_BASE_GROWING_H

#include "base/base.h"

/* open(2) to write, made when it is not there; `flags` are O_APPEND and O_EXCL. Where the file system has no
 * locks the file is as one that nobody writes. Returns a descriptor, or -1 with errno. */
int krait_growing_open(const char *path, int flags);

/* Whether the file is open so. Asked before the file's size: when it is not, that size is the last. */
bool krait_growing(int fd);

#endif
