/* SPDX-License-Identifier: Apache-2.0
 *
 * What the keys of `krait top` do. They are those of htop, where htop has a key for it.
 */
#include "base/fmt.h"
#include "cmd/top.h"
#include "view/width.h"

#include <string.h>

/* -- a filter -- */

/* What cannot be a pattern leaves all functions. */
void top_set_filter(struct top *top, const char *text)
{
    struct krait_err err;
    krait_match_free(top->match);
    free(top->filter);
    top->match = NULL;
    top->filter = *text ? strdup(text) : NULL;
    if (top->filter && krait_match_new(&top->match, top->filter, &err)) {
        free(top->filter);
        top->filter = NULL;
        top->match = NULL;
    }
}

/* A few letters are a part of the name, as in htop; what is a pattern is taken as --filter takes it. */
static void set_typed_filter(struct top *top, const char *typed)
{
    KRAIT_AUTO_BUF text = { 0 };
    bool is_pattern = !*typed || typed[strcspn(typed, "*?[")] || strncmp(typed, "re:", 3) == 0;
    krait_buf_fmt(&text, is_pattern ? "%s" : "*%s*", typed);
    top_set_filter(top, text.data ? text.data : "");
}

/* A key of a filter's text. */
static void type(struct top *top, int key)
{
    enum { DELETE = 127, BACKSPACE = 8 };
    if (key == TOP_KEY_ESCAPE || key == '\n' || key == '\r') {
        set_typed_filter(top, key == TOP_KEY_ESCAPE || !top->typed.len ? "" : top->typed.data);
        top->types = false;
    } else if (key == DELETE || key == BACKSPACE) {
        while (top->typed.len && ((unsigned char)top->typed.data[--top->typed.len] & 0xC0) == 0x80)
            ;
        if (top->typed.data)
            top->typed.data[top->typed.len] = 0;
    } else if (key >= ' ' && key <= UINT8_MAX) {
        krait_buf_char(&top->typed, (char)key);
    }
}

/* -- what keys do -- */

static void quit(struct top *top, int key)
{
    top->quit = true;
}

static void pause_table(struct top *top, int key)
{
    top_pause(top);
}

/* Another order begins with the greatest numbers. */
static void sort_by(struct top *top, const char *sort)
{
    top->reversed = strcmp(sort, top->sort) == 0 && !top->reversed;
    top->sort = sort;
    top->is_sort_chosen = true;
}

static void sort_next(struct top *top, int key)
{
    sort_by(top, top_next_sort(top->sort, top_shape_of(top)));
}

static void sort_number(struct top *top, int key)
{
    uint32_t i = (uint32_t)(key - '1');
    if (i < top->sorts.count)
        sort_by(top, top->sorts.keys[i]);
}

static void reverse(struct top *top, int key)
{
    top->reversed = !top->reversed;
}

static void switch_exact(struct top *top, int key)
{
    top_switch_exact(top);
}

static const char needs_more[] = "paused: that key needs new counts; press p";

static void switch_picture(struct top *top, int key)
{
    static const struct {
        char key;
        enum top_picture picture;
        bool of_samples, of_calls;
        const char *why;
    } pictures[] = { { 'S', TOP_STACKS, true, false, "stacks: only with samples, press x" },
                     { 'B', TOP_BARS, true, true, "" },
                     { 'C', TOP_CLOCK, false, true, "clock: samples do not have single calls, press x" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(pictures); i++) {
        if (key != pictures[i].key)
            continue;
        bool is_known = top->is_exact ? pictures[i].of_calls : pictures[i].of_samples;
        if (is_known && top_can_show(top, pictures[i].picture))
            top_switch_picture(top, pictures[i].picture);
        else
            snprintf(top->note, sizeof(top->note), "%s", is_known ? needs_more : pictures[i].why);
    }
}

static void scale_turn(struct top *top, int key)
{
    top_scale_turn(top, key == '+');
}

/* Samples do not tell tasks. */
static enum top_by next_by(const struct top *top)
{
    return (top->by + 1) % (top->is_exact ? TOP_BY_COUNT : TOP_BY_TASK);
}

static void group(struct top *top, int key)
{
    top->by = next_by(top);
}

/* A key that changes how samples are counted; with every call there are none. What was counted until now begins anew, so
 * that all counts are of one choice; lines of code are counted all the time. */
static void change_samples(struct top *top, int key)
{
    const struct {
        char key;
        bool *flag;
        const char *what;
    } flags[] = { { 'l', &top->lines, "lines of code" },
                  { 'L', &top->lines, "lines of code" },
                  { 'i', &top->idle, "sleeping threads" },
                  { 'w', &top->kernel, "what threads wait for" },
                  { 'g', &top->gil, "the holder of the GIL" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(flags); i++) {
        if (key != flags[i].key)
            continue;
        if (top->is_exact && key != 'w')
            snprintf(top->note, sizeof(top->note), "%s: only with samples, press x", flags[i].what);
        else
            *flags[i].flag = !*flags[i].flag;
    }
    if (!top->is_exact && key != 'l' && key != 'L')
        top_begin_anew(top);
}

static void filter(struct top *top, int key)
{
    krait_buf_clear(&top->typed);
    top->types = true;
}

static void reset(struct top *top, int key)
{
    top_begin_anew(top);
}

static void help(struct top *top, int key)
{
    top->helps = true;
}

static void leave(struct top *top, int key)
{
    top_scroll_leave(&top->scroll);
    top_set_filter(top, "");
}

static const struct {
    const char *keys; /* each of them does it */
    void (*act)(struct top *top, int key);
    const char *shown, *help; /* NULL: the help of another tells it */
} actions[] = {
    { "q", quit, "q", "quit; the last table stays on the terminal" },
    { "", NULL, "Up Down", "select a row, and follow it" },
    { "", NULL, "PgUp PgDn", "a page up or down; Home, End: to the ends" },
    { "\033", leave, "Esc", "select no row, show the rows that / hides" },
    { "", NULL, "Ctrl-Z", "stop krait; fg in the shell continues" },
    { "pZ ", pause_table, "p", "pause, go on" },
    { "s", sort_next, "s", "sort by the next column" },
    { "123456789", sort_number, "1 ... 9", "sort by that column; again: reversed" },
    { "I", reverse, "I", "reverse the order" },
    { "x", switch_exact, "x", "count every call, or take samples again" },
    { "lL", change_samples, "l", "samples: rows are lines, or functions" },
    { "t", group, "t", "rows of threads, processes, tasks, or of all" },
    { "i", change_samples, "i", "samples: also of sleeping threads, or not" },
    { "g", change_samples, "g", "samples: of the GIL's holder alone, or all" },
    { "w", change_samples, "w", "what threads wait for, or not" },
    { "S", switch_picture, "S", "samples: the current stacks, or the table" },
    { "B", switch_picture, "B", "bars of calls or own time, or the table" },
    { "C", switch_picture, "C", "every call: a clock (+ - scale), or the table" },
    { "+-", scale_turn, NULL, "" },
    { "/\\", filter, "/", "show functions by name or file; Esc shows all" },
    { "r", reset, "r", "begin to count anew" },
    { "?h", help, "?", "these keys" },
};

void top_add_help(struct krait_buf *text, uint32_t width)
{
    enum { INDENT = 13 };
    krait_buf_str(text, "Keys of krait top; press any key to go back\n\n");
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(actions); i++) {
        if (!actions[i].shown)
            continue;
        krait_buf_fmt(text, "  %-9s  ", actions[i].shown);
        krait_width_wrap(text, actions[i].help, INDENT, INDENT, width);
        krait_buf_char(text, '\n');
    }
}

/* Rows may not have the column that they were sorted by. */
void top_keep_sort(struct top *top)
{
    struct krait_err ignored;
    const char *usual = top_usual_sort(top_shape_of(top), top->picture);
    bool can_stay = top->is_sort_chosen && !top_check_sort(top->sort, top_shape_of(top), &ignored);
    if (can_stay || strcmp(top->sort, usual) == 0)
        return;
    top->sort = usual;
    top->is_sort_chosen = top->reversed = false;
}

/* htop's function keys. */
static int meaning_of(int key)
{
    static const struct {
        int key, means;
    } meanings[] = { { TOP_KEY_F1, '?' }, { TOP_KEY_F4, '/' }, { TOP_KEY_F6, 's' }, { TOP_KEY_F10, 'q' } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(meanings); i++)
        key = key == meanings[i].key ? meanings[i].means : key;
    return key;
}

static void obey(struct top *top, int key)
{
    static const char of_rows[] = "s123456789Itigw/\\"; /* they change nothing in a picture of stacks */
    static const char of_counts[] = "xigwr+-";          /* they begin anew */
    bool has_rows = top->picture == TOP_TABLE || top->picture == TOP_BARS;
    if (has_rows && top_scroll_move(&top->scroll, key))
        return;
    key = meaning_of(key);
    if (top->picture == TOP_STACKS && key > 0 && key <= UINT8_MAX && strchr(of_rows, key)) {
        snprintf(top->note, sizeof(top->note), "stacks: that key works only in the table; press S");
        return;
    }
    if (top->paused && key > 0 && key <= UINT8_MAX && strchr(of_counts, key)) {
        snprintf(top->note, sizeof(top->note), "%s", needs_more);
        return;
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(actions) && key <= UINT8_MAX; i++) {
        if (strchr(actions[i].keys, key))
            actions[i].act(top, key);
    }
    top_keep_sort(top);
}

void top_press(struct top *top, int key)
{
    bool is_key = key < TOP_KEY_RESIZED;
    if (key == TOP_KEY_STOP)
        top_stop(top);
    else if (key == TOP_KEY_CONTINUED)
        top_continue(top);
    if (is_key)
        *top->note = '\0';
    if (is_key && top->types)
        type(top, key);
    else if (is_key && top->helps)
        top->helps = false;
    else if (is_key)
        obey(top, key);
    if (!top->quit)
        top_show_screen(top);
}

/* -- the line below the table -- */

/* As many of the items, which have two blanks between, as fit. */
static void cut(struct krait_buf *line, uint32_t width)
{
    size_t most = line->data ? krait_width_fit(line->data, line->len, width) : 0, n = most;
    if (!line->data || most == line->len)
        return;
    while (n && strncmp(line->data + n, "  ", 2) != 0)
        n--;
    line->len = n ? n : most;
    line->data[line->len] = '\0';
}

/* It may need more than one line. */
static void add_note(struct krait_buf *line, const char *note, uint32_t width)
{
    KRAIT_AUTO_BUF safe = { 0 };
    krait_fmt_safe(&safe, note);
    krait_width_wrap(line, safe.data ? safe.data : "", 0, 2, width);
    line->failed |= safe.failed;
}

static void add_state(struct krait_buf *line, const struct top *top)
{
    if (top->paused)
        krait_buf_str(line, "PAUSED  ");
    if (top->scroll.selects && top->scroll.rows)
        krait_buf_fmt(line, "row %u of %u  ", top->scroll.row + 1, top->scroll.rows);
}

void top_add_keys(struct krait_buf *line, const struct top *top, uint32_t width)
{
    static const char *const groups[] = { "all", "threads", "processes", "tasks" };
    static const char *const leaves[] = { /* first, whatever has room */
                                          [TOP_TABLE] = "",
                                          [TOP_STACKS] = "  S table",
                                          [TOP_BARS] = "  B table",
                                          [TOP_CLOCK] = "  C table  + - turn"
    };
    if (top->types) {
        krait_buf_str(line, "functions: ");
        krait_fmt_safe(line, top->typed.len ? top->typed.data : "");
        krait_buf_str(line, "_  Enter shows them, Esc all");
        cut(line, width);
        return;
    }
    if (*top->note) {
        add_note(line, top->note, width);
        return;
    }
    add_state(line, top);
    bool has_rows = top->picture != TOP_STACKS, of_samples = has_rows && !top->is_exact;
    krait_buf_fmt(line, "q quit  p %s", top->paused ? "go on" : "pause");
    if (has_rows)
        krait_buf_fmt(line, "  s sort (%s%s)", top->sort, top->reversed ? " reversed" : "");
    krait_buf_fmt(line, "  ? keys%s  x %s", leaves[top->picture], top->is_exact ? "samples" : "exact");
    if (!top->is_exact)
        krait_buf_fmt(line, "  l %s", top->lines ? "functions" : "lines");
    if (has_rows)
        krait_buf_fmt(line, "  t %s", groups[next_by(top)]);
    if (of_samples)
        krait_buf_fmt(line, "  i %s  g %s", top->idle ? "no sleeping" : "sleeping too",
                      top->gil ? "all threads" : "GIL only");
    if (has_rows)
        krait_buf_fmt(line, "  w %s", top->kernel ? "no waits" : "waits");
    if (of_samples)
        krait_buf_str(line, "  S stacks");
    if (top->picture != TOP_BARS)
        krait_buf_str(line, "  B bars");
    if (top->is_exact && top->picture != TOP_CLOCK)
        krait_buf_str(line, "  C clock");
    krait_buf_str(line, has_rows ? "  / filter  r reset" : "  r reset");
    cut(line, width);
}
