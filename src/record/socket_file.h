/* SPDX-License-Identifier: Apache-2.0
 *
 * Unix sockets that are files. A name in the abstract namespace belongs to a network namespace; a file can be reached from
 * others (unix(7)).
 */
#ifndef KRAIT_RECORD_SOCKET_FILE_H
#define KRAIT_RECORD_SOCKET_FILE_H

#include "base/base.h"

/* Makes `file`, which is absent, the address of the socket; its mode is 0600. The path may be as long as PATH_MAX allows. Returns 0
 * or a negative errno, as the next one does. */
int krait_socket_file_bind(int fd, const char *file);
int krait_socket_file_connect(int fd, const char *file);

#endif
