/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "record/collector_inside.h"
#include "record/socket_file.h"
#include "record/switch.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#define PATIENCE_NS (10 * KRAIT_NS_PER_S) /* with a client */

/* How long an answer waits for all processes to do what was asked for: those that do not run Python now cannot. */
#define START_NS (2 * KRAIT_NS_PER_S)
#define STOP_NS  (KRAIT_NS_PER_S / 2)

/* ---- requests ---- */

/* Writes the answer; or returns false: it is to be called again in the next round. `age_ns` is how long ago the request
 * came. */
typedef bool answer_fn(struct krait_collector *c, const char *argument, uint64_t age_ns,
                       struct krait_buf *answer);

static void refuse(struct krait_buf *answer, const char *why)
{
    krait_buf_clear(answer);
    krait_buf_char(answer, '{');
    krait_json_key_text(answer, "error", why);
    krait_buf_str(answer, "}\n");
}

static bool answer_status(struct krait_collector *c, const char *argument, uint64_t age_ns,
                          struct krait_buf *answer)
{
    krait_ctl_status(c, answer);
    return true;
}

/* The next event of each thread takes the slow path, where the state is looked at. Its writer may set the window at the same
 * time; then the clock's next window does the same. */
void krait_ctl_force_slow_path(struct krait_collector *c)
{
    for (uint32_t r = 0; r < krait_collector_rings_used(c); r++) {
        if (c->rings[r].known && c->rings[r].kind == KRAIT_RING_THREAD)
            __atomic_store_n(&c->shm.rings[r].window, UINT64_MAX, __ATOMIC_RELAXED);
    }
}

static bool switch_to(struct krait_collector *c, bool on)
{
    if (on && atomic_load(&c->shm.control->state) == KRAIT_SESSION_OFF)
        krait_ctl_switch_beside(c, true);
    bool done = krait_switch(c->shm.control, on);
    krait_ctl_note_switch(c);
    if (done && !on)
        krait_ctl_force_slow_path(c);
    return done;
}

void krait_collector_toggle(struct krait_collector *c)
{
    switch_to(c, atomic_load(&c->shm.control->state) == KRAIT_SESSION_OFF);
}

static bool switch_and_wait(struct krait_collector *c, bool on, uint64_t age_ns, uint64_t patience_ns,
                            struct krait_buf *answer)
{
    if (!switch_to(c, on)) {
        refuse(answer, "the recording is ending");
        return true;
    }
    struct krait_ctl_counts counts = krait_ctl_count(c);
    uint32_t waiting = on ? counts.off + counts.ready : counts.on;
    if (waiting && age_ns < patience_ns)
        return false;
    krait_ctl_status(c, answer);
    return true;
}

static bool answer_start(struct krait_collector *c, const char *argument, uint64_t age_ns,
                         struct krait_buf *answer)
{
    return switch_and_wait(c, true, age_ns, START_NS, answer);
}

static bool answer_stop(struct krait_collector *c, const char *argument, uint64_t age_ns,
                        struct krait_buf *answer)
{
    return switch_and_wait(c, false, age_ns, STOP_NS, answer);
}

static bool answer_snapshot(struct krait_collector *c, const char *argument, uint64_t age_ns,
                            struct krait_buf *answer)
{
    struct krait_collector_snapshot made;
    struct krait_err err = { 0 };
    if (c->tap)
        refuse(answer, "krait top keeps no events that a snapshot could be made of");
    else if (*argument && *argument != '/')
        refuse(answer, "a snapshot's folder needs its whole path");
    else if (krait_collector_snapshot(c, *argument ? argument : NULL, &made, &err))
        refuse(answer, err.text);
    else {
        krait_buf_char(answer, '{');
        krait_json_key_text(answer, "snapshot", made.dir);
        krait_json_key_u64(answer, "bytes", made.bytes);
        krait_json_key_u64(answer, "took_ns", made.took_ns);
        krait_buf_str(answer, "}\n");
        free(made.dir);
    }
    return true;
}

/* The first call sets; the next ones wait. */
static bool answer_set(struct krait_collector *c, const char *argument, uint64_t age_ns,
                       struct krait_buf *answer)
{
    struct krait_err err = { 0 };
    if (!answer->len && krait_ctl_set(c, argument, &err)) {
        refuse(answer, err.text);
        return true;
    }
    krait_ctl_status(c, answer);
    return krait_ctl_is_set(c) || age_ns >= STOP_NS;
}

static const struct {
    const char *word;
    answer_fn *answer;
} requests[] = {
    { "status", answer_status },     { "start", answer_start }, { "stop", answer_stop },
    { "snapshot", answer_snapshot }, { "set", answer_set },
};

static bool answer(struct krait_collector *c, struct krait_ctl_client *client)
{
    size_t n = strcspn(client->request, " ");
    const char *argument = client->request + n + (client->request[n] == ' ');
    uint64_t age_ns = krait_clock_ns(CLOCK_MONOTONIC) - client->heard_ns;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(requests); i++) {
        if (strlen(requests[i].word) == n && memcmp(requests[i].word, client->request, n) == 0)
            return requests[i].answer(c, argument, age_ns, &client->answer);
    }
    refuse(&client->answer, "this krait record does not know that request: it is of another version");
    return true;
}

/* ---- clients ---- */

void krait_ctl_init(struct krait_ctl *ctl)
{
    *ctl = (struct krait_ctl){ .fd = -1, .file_fd = -1 };
    for (size_t i = 0; i < KRAIT_CTL_CLIENTS; i++)
        ctl->clients[i].fd = -1;
}

static void drop(struct krait_ctl_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    free(client->request);
    krait_buf_done(&client->answer);
    *client = (struct krait_ctl_client){ .fd = -1 };
}

/* Other users than the collector's, but for root, have no business in it. */
static bool may_ask(int fd)
{
    struct ucred who;
    socklen_t n = sizeof(who);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && (who.uid == geteuid() || !who.uid);
}

static struct krait_ctl_client *free_client(struct krait_ctl *ctl)
{
    for (size_t i = 0; i < KRAIT_CTL_CLIENTS; i++) {
        if (ctl->clients[i].fd < 0)
            return &ctl->clients[i];
    }
    return NULL;
}

/* accept4 makes a socket before it looks whether anybody waits: that was a seventh of what krait top took at ten frames a
 * second while nothing happened. */
static bool somebody_waits(int listening)
{
    struct pollfd fd = { .fd = listening, .events = POLLIN };
    return listening >= 0 && poll(&fd, 1, 0) > 0;
}

static void let_in_at(struct krait_ctl *ctl, int listening)
{
    struct krait_ctl_client *client;
    while (somebody_waits(listening) && (client = free_client(ctl))) {
        int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        client->fd = fd;
        client->begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
        client->request = may_ask(fd) ? malloc(KRAIT_CTL_REQUEST_BYTES) : NULL;
        if (client->request)
            continue;
        refuse(&client->answer, "the recording is another user's; run krait ctl as that user or as root");
        client->heard = client->answered = true;
    }
}

/* Returns false if the client is gone or says too much. */
static bool hear(struct krait_ctl_client *client)
{
    for (;;) {
        size_t room = KRAIT_CTL_REQUEST_BYTES - 1 - client->length;
        ssize_t n = room ? recv(client->fd, client->request + client->length, room, 0) : -1;
        if (n < 0)
            return room && (errno == EAGAIN || errno == EINTR);
        client->length += (size_t)n;
        client->request[client->length] = '\0';
        client->heard = !n;
        if (client->heard)
            client->heard_ns = krait_clock_ns(CLOCK_MONOTONIC);
        if (client->heard)
            return true;
    }
}

/* Returns false if all is sent, or nobody takes it. */
static bool tell(struct krait_ctl_client *client)
{
    while (client->sent < client->answer.len) {
        ssize_t n = send(client->fd, client->answer.data + client->sent, client->answer.len - client->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        client->sent += (size_t)n;
    }
    return false;
}

static bool serve(struct krait_collector *c, struct krait_ctl_client *client)
{
    bool is_there = client->heard || hear(client);
    if (is_there && client->heard && !client->answered)
        client->answered = answer(c, client);
    return is_there && (!client->answered || tell(client));
}

/* One that asked while a snapshot was written has waited for us. */
static void excuse(struct krait_ctl *ctl)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    bool late = now - ctl->round_ns > KRAIT_NS_PER_S;
    ctl->round_ns = now;
    for (size_t i = 0; i < KRAIT_CTL_CLIENTS && late; i++)
        ctl->clients[i].begin_ns = now;
}

void krait_ctl_round(struct krait_collector *c)
{
    krait_ctl_note_switch(c);
    excuse(&c->ctl);
    let_in_at(&c->ctl, c->ctl.fd);
    let_in_at(&c->ctl, c->ctl.file_fd);
    for (size_t i = 0; i < KRAIT_CTL_CLIENTS; i++) {
        struct krait_ctl_client *client = &c->ctl.clients[i];
        bool late = client->fd >= 0 && krait_clock_ns(CLOCK_MONOTONIC) - client->begin_ns > PATIENCE_NS;
        if (client->fd >= 0 && (!serve(c, client) || late))
            drop(client);
    }
}

/* ---- open and close ---- */

/* Only the owner reads it: who may not is not told where to ask. */
static char *write_file(const char *dir, uint64_t inode)
{
    char *path = NULL;
    if (asprintf(&path, "%s/" KRAIT_CTL_FILE, dir) < 0)
        return NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && dprintf(fd, "%llu\n", (unsigned long long)inode) > 0) {
        close(fd);
        return path;
    }
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    free(path);
    return NULL;
}

void krait_ctl_open(struct krait_ctl *ctl, const char *dir, int memfd)
{
    struct sockaddr_un address;
    struct stat st;
    if (fstat(memfd, &st) < 0)
        return;
    socklen_t size = krait_ctl_address(&address, st.st_ino);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 2 * KRAIT_CTL_CLIENTS) < 0) {
        close(fd);
        return;
    }
    ctl->fd = fd;
    ctl->file = dir ? write_file(dir, st.st_ino) : NULL;
}

void krait_ctl_open_file(struct krait_ctl *ctl, const char *dir)
{
    char *file = NULL;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (asprintf(&file, "%s/" KRAIT_CTL_SOCKET, dir) < 0)
        file = NULL;
    if (!file || krait_socket_file_bind(fd, file)) {
        free(file);
        close(fd);
        return;
    }
    ctl->file_fd = fd;
    ctl->socket_file = file;
    listen(fd, 2 * KRAIT_CTL_CLIENTS); /* if that fails, nobody can connect */
}

static void remove_file(char **file)
{
    if (*file)
        unlink(*file);
    free(*file);
    *file = NULL;
}

void krait_ctl_close(struct krait_ctl *ctl)
{
    for (size_t i = 0; i < KRAIT_CTL_CLIENTS; i++)
        drop(&ctl->clients[i]);
    if (ctl->fd >= 0)
        close(ctl->fd);
    if (ctl->file_fd >= 0)
        close(ctl->file_fd);
    remove_file(&ctl->file);
    remove_file(&ctl->socket_file);
    ctl->fd = ctl->file_fd = -1;
}
