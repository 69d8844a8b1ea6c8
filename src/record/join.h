/* SPDX-License-Identifier: Apache-2.0
 *
 * How a process joins if it cannot open the recording by its path, because it is in a PID namespace with a /proc of
 * its own, or in a user namespace. It asks the collector over a Unix socket, which depends on neither. The answer carries
 * the memfd, and the process's id as the collector sees it.
 *
 *   KRAIT_SESSION=/proc/4711/fd/7@0123abcd 0011223344556677 8899aabbccddeeff /home/u/trace/.join    (without the blanks)
 *                 └── path ──────┘└─ name ┘└─ question ───┘└─ answer ─────┘ └─ socket's file ─┘
 *
 *   process    ── datagram: question, wish; a socket for the answer (SCM_RIGHTS) ──→  collector
 *   process    ←─ on that socket: answer, the process's number; memfd (SCM_RIGHTS) ──  collector
 *
 * The collector has two sockets. One has a name in the abstract namespace, where every process of the network namespace
 * sees it. The other is a file, for processes of other network namespaces: .join in the recording's folder, or in a
 * folder of its own in /tmp if the former cannot be. A process tries the name first. It sends the end of a socket pair
 * along with its question, because the collector could not find the name of a socket in another network namespace.
 *
 * Each side proves that it belongs to the recording, because whoever has the memfd can write into the recorded programs.
 * The kernel tells the collector who asks (SCM_CREDENTIALS, unix(7)), with the ids of the collector's namespace. The
 * file's mode is 0600. Processes of another user that know the name get an answer without the memfd. If the collector
 * gives no answer, or is killed, it closes the socket of the answer: no program waits for one that never comes.
 */
#ifndef KRAIT_RECORD_JOIN_H
#define KRAIT_RECORD_JOIN_H

#include "base/base.h"

#include <sys/socket.h>
#include <sys/types.h>

#define KRAIT_JOIN_FILE ".join" /* in the recording's folder */

enum {
    KRAIT_JOIN_NAME = 8,
    KRAIT_JOIN_WORD = 16,
    KRAIT_JOIN_KEY = KRAIT_JOIN_NAME + 2 * KRAIT_JOIN_WORD, /* characters behind the '@' */
};

enum krait_join_wish {
    KRAIT_JOIN_MEMFD = 'j',
    KRAIT_JOIN_NUMBER = 'n', /* joined already, and wants its number alone */
};

struct krait_join_question {
    char question[KRAIT_JOIN_WORD];
    uint8_t wish; /* enum krait_join_wish */
} __attribute__((packed));

struct krait_join_answer {
    char answer[KRAIT_JOIN_WORD];
    int32_t pid;
} __attribute__((packed));

struct sockaddr_un;

/* The address of the key's socket; returns its size. */
socklen_t krait_join_address(struct sockaddr_un *address, const char *key);

/* Asks at the socket of `key`, or if nobody is there at that of `file` (NULL: none), for the recording's file, for the caller
 * to close. Returns a negative errno if it gets none: -EACCES if this process is another user's, -ECONNRESET if it gets
 * no answer, -ETIMEDOUT after two seconds. */
int krait_join_ask(const char *key, const char *file);
/* Asks for the number by which the collector knows this process, in *pid. Returns 0 or a negative errno, as above. */
int krait_join_ask_number(const char *key, const char *file, pid_t *pid);

struct krait_join_socket {
    int fd; /* -1: there is none */
    char key[KRAIT_JOIN_KEY + 1];
    ino_t network;      /* the namespace that it is in; 0: not known */
    pid_t admitted[16]; /* the last ones that were attached to: each may join, whatever its user */
    uint32_t admitted_count;
    int file_fd; /* of the socket that is a file; -1: there is none */
    char *file;  /* its whole path */
    bool own;    /* its folder was made for it */
};

/* One without sockets. */
void krait_join_socket_init(struct krait_join_socket *join);
/* Opens a socket with a new key. If that fails, such processes are not recorded. */
void krait_join_socket_open(struct krait_join_socket *join);
/* Opens the socket that is a file, below the recording's folder or in one of its own in /tmp; removes what killed collectors of
 * this user left there. If that fails, processes of other network namespaces are not recorded. */
void krait_join_file_open(struct krait_join_socket *join, const char *dir);
/* Lets a process join that krait has attached to. If that process is in another network namespace, where the socket is not
 * seen, the socket moves there and has a new key: whoever was admitted before must have joined by then. Returns 0, or
 * -EPERM if krait may not make a socket there; the old one then stays. */
int krait_join_socket_admit(struct krait_join_socket *join, pid_t pid);
/* Answers one process that has asked since, with `memfd` if it wants that and may have it. Returns whether there was
 * one. *refused is who it was if it may not, else its pid is 0. */
bool krait_join_socket_answer(const struct krait_join_socket *join, int memfd, struct ucred *refused);
/* Closes the sockets, and removes the file. */
void krait_join_socket_close(struct krait_join_socket *join);

#endif
