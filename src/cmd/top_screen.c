/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal while `krait top` has it: ECMA-48, and the private modes of xterm's control sequences ("?1049" the other
 * screen, "?25" the cursor, "?7" lines that are too long go on in the next one).
 */
#include "base/clock.h"
#include "cmd/top.h"
#include "view/width.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

/* How far into a key the bytes are (ECMA-48, 5.4). In application mode a terminal sends SS3 in place of CSI; the one of Linux
 * sends CSI [ and a letter for some keys (console_codes(4)). */
enum reading { READS_KEY, READS_ESCAPE, READS_SEQUENCE, READS_LETTER };

struct top_screen {
    struct termios before;
    enum reading reading;
    unsigned char begin; /* of a sequence: [ or O, or [ again for Linux */
    bool is_first;       /* nothing has followed that yet */
    bool counts;         /* its first number goes on */
    unsigned number;
    uint64_t escape_ns; /* when the escape came */
};

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static struct sigaction before[KRAIT_ARRAY_LEN(ending)];
static bool are_caught;
static volatile sig_atomic_t is_asked_to_end, is_resized, is_asked_to_stop, has_continued;

static void note_size(int number)
{
    is_resized = 1;
}

static void ask_to_stop(int number)
{
    is_asked_to_stop = 1;
}

static void note_continued(int number)
{
    has_continued = 1;
}

/* Those that a screen takes notice of. */
static const struct {
    int number;
    void (*handler)(int number);
} noticed[] = { { SIGWINCH, note_size }, { SIGTSTP, ask_to_stop }, { SIGCONT, note_continued } };
static struct sigaction before_noticed[KRAIT_ARRAY_LEN(noticed)];

/* A shell without job control ignores SIGTSTP, and so does what it starts. */
static void notice_signals(void)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(noticed); i++) {
        const struct sigaction action = { .sa_handler = noticed[i].handler, .sa_flags = SA_RESTART };
        sigaction(noticed[i].number, NULL, &before_noticed[i]);
        if (before_noticed[i].sa_handler != SIG_IGN)
            sigaction(noticed[i].number, &action, NULL);
    }
}

static void leave_signals(void)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(noticed); i++)
        sigaction(noticed[i].number, &before_noticed[i], NULL);
}

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

static void pass_over(int number)
{
}

void top_catch_pipe(void)
{
    /* a handler, since a program that is executed would inherit SIG_IGN */
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = pass_over, .sa_flags = SA_RESTART }, NULL);
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

static void send_text(const char *text)
{
    send(text, strlen(text));
}

static void set_terminal(const struct termios *to)
{
    while (tcsetattr(STDIN_FILENO, TCSADRAIN, to) && errno == EINTR)
        ;
}

/* In the background the first of these stops krait (SIGTTOU), before anything is on the terminal. */
static void take_terminal(const struct top_screen *screen)
{
    struct termios keys = screen->before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VMIN] = 0;
    keys.c_cc[VTIME] = 0;
    set_terminal(&keys);
    send_text("\033[?1049h\033[?25l\033[?7l");
}

static void give_terminal_back(const struct top_screen *screen)
{
    send_text("\033[?7h\033[?25h\033[?1049l");
    set_terminal(&screen->before);
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
    notice_signals();
    take_terminal(screen);
    *out = screen;
    return 0;
}

void top_screen_close(struct top_screen *screen)
{
    if (!screen)
        return;
    give_terminal_back(screen);
    leave_signals();
    free(screen);
}

void top_screen_stop(struct top_screen *screen)
{
    give_terminal_back(screen);
    leave_signals();
    raise(SIGTSTP); /* it returns when the shell continues krait */
    notice_signals();
    top_screen_take(screen);
}

void top_screen_take(struct top_screen *screen)
{
    has_continued = is_asked_to_stop = 0;
    take_terminal(screen);
}

uint32_t top_screen_rows(void)
{
    enum { USUAL = 24 };
    struct winsize size = { 0 };
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : USUAL;
}

/* Columns of a line with colours. */
static uint32_t columns_of(const char *line, size_t n)
{
    uint32_t columns = 0;
    for (size_t at = 0; at < n;) {
        size_t text = KRAIT_MIN(strcspn(line + at, "\033"), n - at);
        columns += krait_width_of(line + at, text);
        at += text;
        at += at < n ? KRAIT_MIN(strcspn(line + at, "m") + 1, n - at) : 0;
    }
    return columns;
}

/* A line without colours, as far as it fits. */
static void add_plain(struct krait_buf *frame, const char *line, size_t n, uint32_t width)
{
    KRAIT_AUTO_BUF plain = { 0 };
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\033')
            i += strcspn(line + i, "m");
        else
            krait_buf_char(&plain, line[i]);
    }
    krait_buf_add(frame, plain.data ? plain.data : "",
                  krait_width_fit(plain.data ? plain.data : "", plain.len, width));
    frame->failed |= plain.failed;
}

/* What was behind it goes; behind the last column the erasing would take that one. What is too long is cut, with its colours. */
static void add_line(struct krait_buf *frame, const char *line, size_t n, uint32_t width)
{
    uint32_t columns = columns_of(line, n);
    if (columns <= width)
        krait_buf_add(frame, line, n);
    else
        add_plain(frame, line, n, width);
    if (columns < width)
        krait_buf_str(frame, "\033[K");
}

/* A line that stands out: in reverse as far as the terminal goes, without colours of its own. */
static void add_marked(struct krait_buf *frame, const char *line, size_t n, uint32_t width)
{
    uint32_t taken = columns_of(line, n);
    krait_buf_str(frame, "\033[7m");
    add_plain(frame, line, n, width);
    krait_buf_fmt(frame, "%*s\033[0m", (int)(width > taken ? width - taken : 0), "");
}

/* The lines of a text up to the row `end`, from the row that the cursor is in. */
static void add_lines(struct krait_buf *frame, const char *text, uint32_t row, uint32_t end, uint32_t marked,
                      uint32_t width)
{
    for (const char *at = text; *at && row < end; row++) {
        size_t n = strcspn(at, "\n");
        krait_buf_str(frame, at == text ? "" : "\r\n");
        if (row == marked)
            add_marked(frame, at, n, width);
        else
            add_line(frame, at, n, width);
        at += n + (at[n] == '\n');
    }
}

static uint32_t count_lines(const char *text)
{
    uint32_t lines = 1;
    for (const char *at = text; *at; at++)
        lines += at[0] == '\n' && at[1];
    return lines;
}

void top_screen_show(const struct krait_buf *text, uint32_t marked, const char *keys,
                     const struct krait_table_look *look)
{
    KRAIT_AUTO_BUF frame = { 0 };
    uint32_t rows = top_screen_rows();
    uint32_t below = KRAIT_MIN(count_lines(keys), rows);
    krait_buf_str(&frame, "\033[H");
    add_lines(&frame, text->data ? text->data : "", 0, rows - below, marked, look->width);
    krait_buf_fmt(&frame, "\r\n\033[J\033[%u;1H%s", rows - below + 1, look->colour ? KRAIT_DIM : "");
    add_lines(&frame, keys, rows - below, rows, UINT32_MAX, look->width);
    krait_buf_str(&frame, look->colour ? KRAIT_PLAIN : "");
    if (!frame.failed)
        send(frame.data, frame.len);
}

/* -- keys -- */

/* What xterm, rxvt and Linux send (xterm's ctlseqs, terminfo). */
static const struct {
    unsigned char begin, end;
    unsigned number; /* of a sequence that ends with ~ */
    enum top_key key;
} sequences[] = {
    { 0, 'A', 0, TOP_KEY_UP },        { 0, 'B', 0, TOP_KEY_DOWN }, { 0, 'H', 0, TOP_KEY_HOME },
    { 0, 'F', 0, TOP_KEY_END },       { 0, '~', 1, TOP_KEY_HOME }, { 0, '~', 7, TOP_KEY_HOME },
    { 0, '~', 4, TOP_KEY_END },       { 0, '~', 8, TOP_KEY_END },  { 0, '~', 5, TOP_KEY_PAGE_UP },
    { 0, '~', 6, TOP_KEY_PAGE_DOWN }, { 'O', 'P', 0, TOP_KEY_F1 }, { 'O', 'S', 0, TOP_KEY_F4 },
    { 0, '~', 11, TOP_KEY_F1 },       { 0, '~', 14, TOP_KEY_F4 },  { 0, '~', 17, TOP_KEY_F6 },
    { 0, '~', 21, TOP_KEY_F10 },
};

static enum top_key end_sequence(struct top_screen *screen, unsigned char end)
{
    unsigned number = end == '~' ? screen->number : 0;
    screen->reading = READS_KEY;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(sequences); i++) {
        if (sequences[i].end == end && sequences[i].number == number &&
            (!sequences[i].begin || sequences[i].begin == screen->begin))
            return sequences[i].key;
    }
    return TOP_KEY_NONE;
}

static void begin_escape(struct top_screen *screen)
{
    screen->reading = READS_ESCAPE;
    screen->escape_ns = krait_clock_ns(CLOCK_MONOTONIC);
}

/* What follows an escape at once belongs to it. */
static int take_escaped(struct top_screen *screen, unsigned char byte)
{
    if (byte == TOP_KEY_ESCAPE) {
        begin_escape(screen);
        return TOP_KEY_ESCAPE; /* the one before */
    }
    screen->reading = byte == '[' ? READS_SEQUENCE : byte == 'O' ? READS_LETTER : READS_KEY;
    screen->begin = byte;
    screen->is_first = screen->counts = true;
    screen->number = 0;
    return TOP_KEY_NONE;
}

static int take_key(struct top_screen *screen, unsigned char byte)
{
    screen->reading = READS_KEY;
    if (byte != TOP_KEY_ESCAPE)
        return byte;
    begin_escape(screen);
    return TOP_KEY_NONE;
}

/* Parameters, intermediate bytes, a final byte; any other ends the sequence and is a key itself. */
static int take_part(struct top_screen *screen, unsigned char byte)
{
    enum { MOST = 9999 };
    bool is_first = screen->is_first;
    screen->is_first = false;
    if (byte < ' ' || byte > '~')
        return take_key(screen, byte);
    if (is_first && byte == '[')
        screen->reading = READS_LETTER;
    else if (byte >= '@')
        return end_sequence(screen, byte);
    screen->counts &= byte >= '0' && byte <= '9';
    if (screen->counts)
        screen->number = KRAIT_MIN(screen->number * 10 + (byte - '0'), (unsigned)MOST);
    return TOP_KEY_NONE;
}

static int take_letter(struct top_screen *screen, unsigned char byte)
{
    return byte < ' ' || byte > '~' ? take_key(screen, byte) : (int)end_sequence(screen, byte);
}

static int take_byte(struct top_screen *screen, unsigned char byte)
{
    static int (*const takes[])(struct top_screen * screen, unsigned char byte) = {
        [READS_KEY] = take_key,
        [READS_ESCAPE] = take_escaped,
        [READS_SEQUENCE] = take_part,
        [READS_LETTER] = take_letter,
    };
    return takes[screen->reading](screen, byte);
}

/* What a signal asks for, as a key. */
static enum top_key signalled(void)
{
    const struct {
        bool is_asked;
        enum top_key key;
    } asked[] = { { is_asked_to_stop, TOP_KEY_STOP },
                  { has_continued, TOP_KEY_CONTINUED },
                  { is_resized, TOP_KEY_RESIZED } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(asked); i++) {
        if (asked[i].is_asked)
            return asked[i].key;
    }
    return TOP_KEY_NONE;
}

/* Until they are let through again: what came before shows in the variables, and what comes then is still to come. */
static void hold_signals(sigset_t *before_holding)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(ending); i++)
        sigaddset(&held, ending[i]);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(noticed); i++)
        sigaddset(&held, noticed[i].number);
    sigprocmask(SIG_BLOCK, &held, before_holding);
}

/* Returns whether there is input. */
static bool wait_for_input(int fd, int timer, uint64_t rest_ns, bool *ends)
{
    sigset_t let_through;
    hold_signals(&let_through);
    rest_ns = is_asked_to_end || signalled() ? 0 : rest_ns;
    struct timespec time = { (time_t)(rest_ns / KRAIT_NS_PER_S), (long)(rest_ns % KRAIT_NS_PER_S) };
    struct pollfd inputs[] = { { .fd = fd, .events = POLLIN }, { .fd = timer, .events = POLLIN } };
    int ready = ppoll(inputs, KRAIT_ARRAY_LEN(inputs), &time, &let_through);
    short input = ready > 0 ? inputs[0].revents : 0;
    sigprocmask(SIG_SETMASK, &let_through, NULL);
    *ends |= is_asked_to_end || input & (POLLHUP | POLLERR);
    return input && !*ends;
}

int top_screen_wait(struct top_screen *screen, int timer, uint64_t until_ns, bool *ends)
{
    const uint64_t escape_ns = 50 * KRAIT_NS_PER_MS; /* after that it is a key of its own */
    int key = TOP_KEY_NONE;
    while (!key) {
        uint64_t now = krait_clock_ns(CLOCK_MONOTONIC), until = until_ns;
        bool is_escaped = screen && screen->reading == READS_ESCAPE;
        unsigned char byte;
        if (is_escaped)
            until = KRAIT_MIN(until, screen->escape_ns + escape_ns);
        bool has_input =
            wait_for_input(screen ? STDIN_FILENO : -1, timer, until > now ? until - now : 0, ends);
        if (*ends)
            return TOP_KEY_NONE;
        if (screen && signalled()) {
            key = signalled();
            is_resized = 0; /* whatever it is, the screen is drawn anew */
            return key;
        }
        if (has_input) {
            if (read(STDIN_FILENO, &byte, 1) != 1)
                return TOP_KEY_NONE;
            key = take_byte(screen, byte);
        } else if (is_escaped && krait_clock_ns(CLOCK_MONOTONIC) >= screen->escape_ns + escape_ns) {
            screen->reading = READS_KEY;
            key = TOP_KEY_ESCAPE;
        } else {
            return TOP_KEY_NONE;
        }
    }
    return key;
}
