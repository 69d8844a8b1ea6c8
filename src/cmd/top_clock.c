/* SPDX-License-Identifier: Apache-2.0
 *
 * A clock on which each of the newest calls is a ray: its angle is the time at which it ended, its length the logarithm of its
 * duration, as on the clock of `krait view` (web/src/play.ts, raysAt). It is drawn in braille characters (Unicode, U+2800 to
 * U+28FF), each of which has two by four dots:
 *
 *     1  8
 *     2  10      the bits of the dots, hexadecimal
 *     4  20
 *     40 80
 */
#include "base/fmt.h"
#include "cmd/top.h"
#include "event/own.h"
#include "view/width.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 2, ROWS = 4 }; /* dots of a character */
enum { LINES_USUAL = 20, LINES_LEAST = 6, LINES_MOST = 60, GAP = 3, BESIDE_LEAST = 36 };
enum { LEGEND = 132, INDENT = 2 }; /* the most columns of the legend, and the blanks before its other lines */

/* What shows above what. */
enum kind { NOTHING, RING, RAY, OLD_RAY, HAND };

struct cell {
    uint8_t dots, kind;
    uint16_t colour;
};

struct canvas {
    struct cell *cells;
    uint32_t columns, lines;
    double radius;
};

bool top_clock_can_draw(const struct krait_table_look *look)
{
    const char *term = getenv("TERM");
    /* the fonts of Linux's own console have 256 or 512 characters, and no braille: console_codes(4) */
    return look->utf8 && !(term && (strcmp(term, "linux") == 0 || strcmp(term, "dumb") == 0));
}

static uint32_t legend_lines(uint32_t columns)
{
    uint32_t more = LEGEND > columns ? LEGEND - columns : 0, each = KRAIT_MAX(columns, INDENT + 1) - INDENT;
    return 1 + (more + each - 1) / each;
}

struct top_clock_size top_clock_size(uint32_t columns, uint32_t lines)
{
    uint32_t legend = legend_lines(columns);
    uint32_t most = lines > legend + LINES_LEAST ? lines - legend : LINES_LEAST;
    uint32_t high = KRAIT_MIN(lines ? most : (uint32_t)LINES_USUAL, (uint32_t)LINES_MOST);
    high = KRAIT_MAX(KRAIT_MIN(high, columns * COLUMNS / ROWS), 1u);
    return (struct top_clock_size){ high * ROWS / COLUMNS, high };
}

uint32_t top_clock_beside(struct top_clock_size size, uint32_t columns)
{
    return columns >= size.columns + GAP + BESIDE_LEAST ? columns - size.columns - GAP : 0;
}

/* -- drawing -- */

static void dot(struct canvas *canvas, double x, double y, enum kind kind, uint32_t colour)
{
    static const uint8_t bits[ROWS][COLUMNS] = {
        { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
    };
    int64_t column = (int64_t)floor(x), row = (int64_t)floor(y);
    if (column < 0 || row < 0 || column >= (int64_t)canvas->columns * COLUMNS ||
        row >= (int64_t)canvas->lines * ROWS)
        return;
    struct cell *cell = &canvas->cells[row / ROWS * canvas->columns + column / COLUMNS];
    cell->dots |= bits[row % ROWS][column % COLUMNS];
    if (kind == RING && cell->kind > RING)
        return;
    cell->kind = (uint8_t)kind;
    cell->colour = (uint16_t)colour;
}

/* At an angle in turns from the top, clockwise, and a part of the radius. */
static void dot_at(struct canvas *canvas, double angle, double part, enum kind kind, uint32_t colour)
{
    double x = sin(2 * M_PI * angle), y = -cos(2 * M_PI * angle), r = canvas->radius;
    dot(canvas, canvas->columns * COLUMNS / 2.0 + x * part * r, canvas->lines * ROWS / 2.0 + y * part * r,
        kind, colour);
}

static void line(struct canvas *canvas, double angle, double from, double to, enum kind kind, uint32_t colour)
{
    double step = 0.7 / canvas->radius; /* a slanted line has no gaps */
    for (double part = from; part < to; part += step)
        dot_at(canvas, angle, part, kind, colour);
    dot_at(canvas, angle, to, kind, colour);
}

static void ring(struct canvas *canvas, double part, double dots_apart)
{
    double count = floor(2 * M_PI * part * canvas->radius / dots_apart);
    for (double i = 0; i < count; i++)
        dot_at(canvas, i / count, part, RING, 0);
}

/* -- the clock -- */

static const double inner = 0.22; /* where rays begin */

static const struct {
    uint64_t ns;
    const char *word;
} marks[] = { { KRAIT_NS_PER_US, "1 us" }, { KRAIT_NS_PER_MS, "1 ms" }, { KRAIT_NS_PER_S, "1 s" } };

/* Where the ray of a call ends. */
static double end_of(uint64_t ns, uint64_t turn_ns)
{
    double length = log2(2 + (double)ns / 100) / log2(2 + (double)turn_ns / 100);
    return inner + fmin(length, 1) * (1 - inner);
}

struct drawing {
    struct canvas *canvas;
    const struct top_view *view;
    double angle, end; /* of the ray before */
};

/* In place of one of krait's own functions, the one that it stands before: the call of that ended at the same moment and was as
 * long, so that rays keep only one of the two. False: it is not known. */
static bool stand_in(struct krait_live_func *func, char *own)
{
    struct krait_own_before before;
    if (!own || !krait_own_read(own, &before))
        return false;
    func->module = before.module;
    func->name = func->label = before.qualname;
    func->file = before.file;
    return true;
}

/* Rays of the same angle cover each other; each shows what is longer than the one before. */
static int draw_ray(void *ctx, const struct krait_live_ray *ray)
{
    struct drawing *d = ctx;
    struct krait_live_func func = *ray->func;
    const struct krait_match *match = d->view->match;
    bool is_own = krait_own_file(func.file);
    KRAIT_AUTO_FREE char *own = is_own ? strdup(func.file) : NULL;
    if (is_own && !stand_in(&func, own))
        return 0;
    if (match && !krait_match_func(match, func.module, func.name, func.file))
        return 0;
    double from = ray->angle == d->angle ? d->end : inner, to = end_of(ray->ns, d->view->turn_ns);
    uint32_t colour = top_colour_of(d->view->colours, func.module, func.file, func.label);
    line(d->canvas, ray->angle, from, to, ray->age < 0.5 ? RAY : OLD_RAY, colour);
    d->angle = ray->angle;
    d->end = to;
    return 0;
}

static void draw(struct canvas *canvas, const struct top_view *view)
{
    enum { SPARSE = 4 };
    struct drawing drawing = { .canvas = canvas, .view = view, .angle = -1 };
    ring(canvas, inner, 1);
    ring(canvas, 1, 1);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(marks); i++) {
        if (marks[i].ns < view->turn_ns)
            ring(canvas, end_of(marks[i].ns, view->turn_ns), SPARSE);
    }
    krait_live_each_ray(view->live, view->now, draw_ray, &drawing);
    line(canvas, krait_live_hand(view->live, view->now), 0, 1, HAND, 0);
}

/* -- printing -- */

static void begin_look(const struct cell *cell, struct krait_buf *out)
{
    static const char *const begins[] = {
        [NOTHING] = "", [RING] = KRAIT_DIM, [RAY] = "", [OLD_RAY] = KRAIT_DIM, [HAND] = KRAIT_BOLD
    };
    krait_buf_str(out, begins[cell->kind]);
    if (cell->kind == RAY || cell->kind == OLD_RAY)
        top_colour_begin(out, cell->colour);
}

static bool looks_the_same(const struct cell *a, const struct cell *b)
{
    return a->kind == b->kind && a->colour == b->colour;
}

static void add_row(const struct canvas *canvas, uint32_t row, bool colour, struct krait_buf *out)
{
    static const struct cell empty = { 0 };
    const struct cell *before = &empty;
    for (uint32_t i = 0; i < canvas->columns; i++) {
        const struct cell *cell = &canvas->cells[row * canvas->columns + i];
        if (colour && !looks_the_same(cell, before)) {
            krait_buf_str(out, before->kind ? KRAIT_PLAIN : "");
            begin_look(cell, out);
        }
        before = cell;
        if (cell->dots)
            krait_buf_fmt(out, "\xe2%c%c", 0xa0 + (cell->dots >> 6), 0x80 + (cell->dots & 63)); /* UTF-8 */
        else
            krait_buf_char(out, ' ');
    }
    krait_buf_str(out, colour && before->kind ? KRAIT_PLAIN : "");
}

static void add_legend(const struct top_view *view, const struct krait_table_look *look,
                       struct krait_buf *out)
{
    char turn[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_fmt(&text,
                  "a turn is %s; a ray is a call where it ended, its length the logarithm of its time; rings",
                  krait_fmt_ns(turn, view->turn_ns));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(marks); i++) {
        if (marks[i].ns < view->turn_ns)
            krait_buf_fmt(&text, "%s%s", i ? ", " : " ", marks[i].word);
    }
    krait_buf_fmt(&text, " and %s", turn);
    krait_width_wrap(out, text.data ? text.data : "", 0, INDENT, look->width ? look->width : UINT32_MAX);
    krait_buf_char(out, '\n');
    out->failed |= text.failed;
}

static void add_lines(const struct canvas *canvas, const char *beside, bool colour, struct krait_buf *out)
{
    for (uint32_t row = 0; row < canvas->lines; row++) {
        size_t n = strcspn(beside, "\n");
        add_row(canvas, row, colour, out);
        if (n)
            krait_buf_fmt(out, "%*s%.*s", GAP, "", (int)n, beside);
        top_end_line(out);
        beside += n + (beside[n] == '\n');
    }
}

int top_clock_text(const struct top_view *view, struct top_clock_size size, const struct krait_buf *beside,
                   const struct krait_table_look *look, struct krait_buf *out)
{
    KRAIT_AUTO_FREE struct cell *cells = calloc((size_t)size.columns * size.lines, sizeof(*cells));
    struct canvas canvas = {
        .cells = cells, .columns = size.columns, .lines = size.lines, .radius = size.lines * ROWS / 2.0 - 0.5
    };
    if (!cells)
        return -ENOMEM;
    draw(&canvas, view);
    add_lines(&canvas, beside->data ? beside->data : "", look->colour, out);
    add_legend(view, look, out);
    return out->failed ? -ENOMEM : 0;
}
