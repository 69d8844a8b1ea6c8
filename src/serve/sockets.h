/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's connections as the kernel knows them: civetweb keeps its sockets to itself.
 */
#ifndef KRAIT_SERVE_SOCKETS_H
#define KRAIT_SERVE_SOCKETS_H

#include "base/base.h"

/* The socket of this process that connects these ports; -1 if there is none. */
int krait_socket_of(uint16_t own, uint16_t peer);

/* Whether the other side has closed it. */
bool krait_socket_is_closed(int fd);

/* Shuts the port down and all its connections: who waits for a request there, or for a connection, waits no longer. */
void krait_sockets_shut(uint16_t own);

#endif
