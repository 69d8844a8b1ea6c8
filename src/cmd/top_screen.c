/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal while `krait top` has it: ECMA-48, and the private modes of xterm's control sequences ("?1049" the other
 * screen, "?25" the cursor).
 */
#include "base/clock.h"
#include "cmd/top.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

struct top_screen {
    struct termios before;
};

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static struct sigaction before[KRAIT_ARRAY_LEN(ending)];
static bool are_caught;
static volatile sig_atomic_t is_asked_to_end;

static void ask_to_end(int number)
{
    is_asked_to_end = 1;
}

void top_catch_signals(void)
{
    const struct sigaction action = { .sa_handler = ask_to_end };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(ending) && !are_caught; i++)
        sigaction(ending[i], &action, &before[i]);
    are_caught = true;
}

void top_release_signals(void)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(ending) && are_caught; i++)
        sigaction(ending[i], &before[i], NULL);
    are_caught = false;
}

bool top_is_asked_to_end(void)
{
    return is_asked_to_end;
}

static void send(const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = write(STDOUT_FILENO, bytes, n);
        if (done < 0 && errno != EINTR)
            return;
        bytes += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
}

int top_screen_open(struct top_screen **out)
{
    struct top_screen *screen = calloc(1, sizeof(*screen));
    if (!screen)
        return -ENOMEM;
    if (tcgetattr(STDIN_FILENO, &screen->before)) {
        free(screen);
        return -errno;
    }
    top_catch_signals();
    struct termios keys = screen->before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VMIN] = 0;
    keys.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
    send("\033[?1049h\033[?25l", 14);
    *out = screen;
    return 0;
}

void top_screen_close(struct top_screen *screen)
{
    if (!screen)
        return;
    send("\033[?25h\033[?1049l", 14);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
    free(screen);
}

uint32_t top_screen_rows(void)
{
    enum { USUAL = 24 };
    struct winsize size = { 0 };
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : USUAL;
}

void top_screen_show(const struct krait_buf *text, const char *keys, const struct krait_table_look *look)
{
    KRAIT_AUTO_BUF frame = { 0 };
    uint32_t rows = top_screen_rows(), row = 1;
    krait_buf_str(&frame, "\033[H");
    for (const char *at = text->data ? text->data : ""; *at && row < rows; row++) {
        size_t n = strcspn(at, "\n");
        krait_buf_add(&frame, at, n);
        krait_buf_str(&frame, "\033[K\r\n");
        at += n + (at[n] == '\n');
    }
    krait_buf_fmt(&frame, "\033[J\033[%u;1H%s%.*s%s", rows, look->colour ? KRAIT_DIM : "", (int)look->width,
                  keys, look->colour ? KRAIT_PLAIN : "");
    if (!frame.failed)
        send(frame.data, frame.len);
}

char top_screen_wait(const struct top_screen *screen, uint64_t until_ns, bool *ends)
{
    char key = 0;
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    uint64_t rest = until_ns > now ? until_ns - now : 0;
    struct timespec time = { (time_t)(rest / KRAIT_NS_PER_S), (long)(rest % KRAIT_NS_PER_S) };
    struct pollfd input = { .fd = screen ? STDIN_FILENO : -1, .events = POLLIN };
    int ready = ppoll(&input, 1, &time, NULL);
    if (is_asked_to_end || (ready > 0 && input.revents & (POLLHUP | POLLERR))) {
        *ends = true;
        return 0;
    }
    return ready > 0 && read(STDIN_FILENO, &key, 1) == 1 ? key : 0;
}
