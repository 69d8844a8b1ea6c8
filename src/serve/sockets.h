/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the server's sockets through the kernel, because civetweb does not give access to them.
 */
#ifndef KRAIT_SERVE_SOCKETS_H
#define KRAIT_SERVE_SOCKETS_H

#include "base/base.h"

/* The socket of this process that connects these ports, or -1. */
int krait_socket_of(uint16_t own, uint16_t peer);

/* Whether the other side has closed the connection. */
bool krait_socket_is_closed(int fd);

/* Shuts down the port and all its connections, so that threads that wait for requests or connections there wake up. */
void krait_sockets_shut(uint16_t own);

#endif
