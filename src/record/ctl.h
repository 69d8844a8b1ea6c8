/* SPDX-License-Identifier: Apache-2.0
 *
 * How `krait ctl` talks to the collector of a running recording: a Unix socket, one connection for each request.
 *
 *   krait ctl  ── "start" or "set overhead=5", then the end of the stream ──→  collector
 *   krait ctl  ←── one JSON object; {"error": "..."} if it was refused ──────  collector
 *
 * The socket's name is abstract (unix(7)): krait-ctl-INODE, of the recording's memfd. Whoever may read /proc/PID/maps of
 * the collector or of a recorded process finds the inode there, so the PID of any of them leads to the socket. The
 * recording's folder has the name in the file .control, and a second socket that is a file, .ctl, for a krait ctl in another
 * network namespace. The kernel tells each side who the other is (SO_PEERCRED): the collector answers its own user and root,
 * and `krait ctl` believes no other.
 *
 * The collector never waits for a client: it reads and writes what is possible, once in each of its rounds.
 */
#ifndef KRAIT_RECORD_CTL_H
#define KRAIT_RECORD_CTL_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/socket.h>
#include <sys/un.h>

#define KRAIT_CTL_FILE   ".control" /* in the recording's folder */
#define KRAIT_CTL_SOCKET ".ctl"     /* there too */

enum {
    KRAIT_CTL_CLIENTS = 8,
    KRAIT_CTL_REQUEST_BYTES = 16 * 1024,
};

/* The address of the recording whose memfd has this inode; returns its size. */
socklen_t krait_ctl_address(struct sockaddr_un *address, uint64_t inode);

/* ---- the asking side: ctl_ask.c ---- */

/* Where a recording is asked. */
struct krait_ctl_place {
    uint64_t inode;     /* of its memfd */
    const char *folder; /* its folder, or NULL */
};

/* The recording that the operand of `krait ctl` names: a PID of the collector or of a recorded process, or a recording's
 * folder. The place borrows the operand. err says why there is none: -ESRCH, -ENOENT, -EACCES. */
int krait_ctl_find(const char *operand, struct krait_ctl_place *place, struct krait_err *err);
/* Sends the request, and appends what comes back to `answer`. err says why nothing came: -ECONNREFUSED where nobody
 * collects any more, -EACCES where the collector is another user's. */
int krait_ctl_ask(const struct krait_ctl_place *place, const char *request, struct krait_buf *answer,
                  struct krait_err *err);

/* ---- the collector's side: ctl.c ---- */

struct krait_collector;

struct krait_ctl_client {
    int fd; /* -1: none */
    bool heard, answered;
    char *request; /* what has come of it */
    size_t length;
    struct krait_buf answer;
    size_t sent;
    uint64_t begin_ns, heard_ns;
};

struct krait_ctl {
    int fd; /* -1: there is none; then nobody can ask */
    char *file;
    int file_fd; /* of the socket that is a file; -1: there is none */
    char *socket_file;
    uint64_t round_ns; /* when clients were last looked at */
    struct krait_ctl_client clients[KRAIT_CTL_CLIENTS];
};

/* Makes one that nobody can ask. */
void krait_ctl_init(struct krait_ctl *ctl);
/* A recording that cannot be asked is a recording all the same: failures are not told. */
void krait_ctl_open(struct krait_ctl *ctl, const char *dir, int memfd);
/* Opens the socket that is a file, in the recording's folder. */
void krait_ctl_open_file(struct krait_ctl *ctl, const char *dir);
void krait_ctl_close(struct krait_ctl *ctl);

#endif
