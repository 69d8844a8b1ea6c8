/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that grow while others read them. The writer holds a lock on such a file. A reader that finds half a packet
 * at the end asks for the lock: if it is held, the rest is still to come. The kernel drops the lock when the writer
 * closes the file or dies; a packet that is cut then stays cut.
 */
#ifndef KRAIT_BASE_GROWING_H
#define KRAIT_BASE_GROWING_H

#include "base/base.h"

/* Opens a file to write, creating it if necessary, and locks it; `flags` may have O_APPEND and O_EXCL. On a file system
 * without locks, readers believe that nobody writes the file. Returns a descriptor, or -1 with errno. */
int krait_growing_open(const char *path, int flags);

/* Whether somebody has the file open with krait_growing_open. Ask before you ask for the size: if nobody has, that size
 * is final. */
bool krait_growing(int fd);

#endif
