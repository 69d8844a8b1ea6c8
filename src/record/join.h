/* SPDX-License-Identifier: Apache-2.0
 *
 * How a process joins if it cannot open the recording by its path, because it is in a PID namespace with a /proc of
 * its own, or in a user namespace. It asks the collector over a Unix socket, which depends on neither. The answer
 * carries the memfd, and the process's id as the collector sees it.
 *
 *   KRAIT_SESSION=/proc/4711/fd/7@0123abcd 0011223344556677 8899aabbccddeeff       (without the blanks)
 *                 └── path ──────┘└─ name ┘└─ question ───┘└─ answer ─────┘
 *
 *   process    ── datagram: question, wish ─────────────────────────────────→  collector
 *   process    ←─ datagram: answer, the process's number; memfd (SCM_RIGHTS) ──  collector
 *
 * Processes of another user get no memfd. They get an answer all the same: no program waits for one that never comes.
 *
 * The socket's name is in the abstract namespace, where every process of the network namespace sees it. So each side
 * proves that it belongs to the recording, because whoever has the memfd can write into the recorded programs. The
 * kernel tells the collector who asks (SCM_CREDENTIALS, unix(7)), with the ids of the collector's namespace.
 */
#ifndef KRAIT_RECORD_JOIN_H
#define KRAIT_RECORD_JOIN_H

#include "base/base.h"

#include <sys/socket.h>
#include <sys/types.h>

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

/* Asks at the socket of `key` for the recording's file, for the caller to close. Returns a negative errno if it gets
 * none: -EACCES if this process is another user's, -ETIMEDOUT after two seconds. */
int krait_join_ask(const char *key);
/* Asks for the number by which the collector knows this process, in *pid. Returns 0 or a negative errno, as above. */
int krait_join_ask_number(const char *key, pid_t *pid);

struct krait_join_socket {
    int fd; /* -1: there is none */
    char key[KRAIT_JOIN_KEY + 1];
    ino_t network;      /* the namespace that it is in; 0: not known */
    pid_t admitted[16]; /* the last ones that were attached to: each may join, whatever its user */
    uint32_t admitted_count;
};

/* Opens a socket with a new key. If that fails, such processes are not recorded. */
void krait_join_socket_open(struct krait_join_socket *join);
/* Lets a process join that krait has attached to. If that process is in another network namespace, where the socket is not
 * seen, the socket moves there and has a new key: whoever was admitted before must have joined by then. Returns 0, or
 * -EPERM if krait may not make a socket there; the old one then stays. */
int krait_join_socket_admit(struct krait_join_socket *join, pid_t pid);
/* Answers one process that has asked since, with `memfd` if it wants that and may have it. Returns whether there was
 * one. *refused is who it was if it may not, else its pid is 0. */
bool krait_join_socket_answer(const struct krait_join_socket *join, int memfd, struct ucred *refused);
void krait_join_socket_close(struct krait_join_socket *join);

#endif
