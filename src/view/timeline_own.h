/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of the timeline share.
 */
#ifndef KRAIT_VIEW_TIMELINE_OWN_H
#define KRAIT_VIEW_TIMELINE_OWN_H

#include "view/classes.h"
#include "view/timeline.h"

enum { /* pixels */
       KRAIT_TIMELINE_MARGIN = 16,
       KRAIT_TIMELINE_GUTTER = 176, /* names of lanes */
       KRAIT_TIMELINE_ROW = 16,
};

/* Pixels of a character of the calls' font, 11 px fixed-width. */
#define KRAIT_TIMELINE_COLUMN 6.65

/* The heights at which arrows to a lane end: those from above over its marks, those from below under them. */
struct krait_timeline_ends {
    double above, below;
};

/* Lanes that have colours by name. */
enum krait_timeline_names_of {
    KRAIT_TIMELINE_RAN,         /* threads on the CPUs */
    KRAIT_TIMELINE_CALLED,      /* system calls */
    KRAIT_TIMELINE_INTERRUPTED, /* the CPUs, by interrupts */
    KRAIT_TIMELINE_NAMES,
};

/* A name in such lanes, and about how much time is drawn with it. */
struct krait_timeline_name {
    uint32_t name; /* krait_track_text */
    uint64_t ns;
};

struct krait_timeline_names {
    struct krait_timeline_name *items;
    uint32_t count;
};
/* All of them, those with the most time first. The caller frees the items. Returns 0 or -ENOMEM. */
int krait_timeline_names(struct krait_timeline_names *out, const struct krait_timeline *timeline,
                         enum krait_timeline_names_of of);

struct krait_drawing {
    struct krait_buf *to;
    const struct krait_timeline *timeline;
    double left, width; /* of the time axis */
    double y;
    struct krait_timeline_ends *ends;  /* by lane that is drawn */
    const uint8_t *hues;               /* by func (view/classes.h) */
    uint64_t hue_ns[KRAIT_HUES + 1];   /* total duration of the calls of each hue, for the legend */
    uint32_t hue_func[KRAIT_HUES + 1]; /* one of its functions */
    uint64_t looks_seen;               /* a bit for each of krait_looks: states of threads and CPUs */
    uint64_t classes_seen;             /* a bit for each of krait_classes: other states, by their own names */
    struct krait_timeline_names names[KRAIT_TIMELINE_NAMES];
    bool folded, lost, off, dropped, changed; /* the picture has such entries */
    uint64_t arrows, more_arrows;             /* that are drawn, and those that they stand for */
};

/* The number of bins in the tiles of a picture, and their length. */
struct krait_timeline_grid {
    uint64_t bin_ns;
    uint32_t bins;
};
struct krait_timeline_grid krait_timeline_grid_of(const struct krait_timeline *timeline);

/* State of krait_timeline_fill. */
struct krait_filling {
    struct krait_timeline *timeline;
    struct krait_trace *trace;
    const struct krait_timeline_options *options;
    struct krait_timeline_grid grid;
    uint32_t *lane_of;             /* by track: the lane that it belongs to, or KRAIT_NO_ID */
    uint32_t *part_of;             /* by track: which part of it */
    struct krait_columns *columns; /* by track: slices, until their depths are known */
    uint8_t *runs; /* by text: 1 plus whether a thread runs in such a state; 0: not known yet */
    uint32_t runs_cap;
};

/* Adds the lanes, those of recorded threads with their calls, and puts them into their order. Returns 0 or -ENOMEM. */
int krait_timeline_find_lanes(struct krait_filling *f);
/* A new part behind the others, or NULL. */
struct krait_timeline_part *krait_timeline_add_part(struct krait_timeline_lane *lane, uint32_t track);
/* Whether two tracks share a lane: of the same thread or CPU. */
bool krait_timeline_share_lane(const struct krait_track *a, const struct krait_track *b);

double krait_timeline_x(const struct krait_drawing *d, uint64_t t_ns);
/* When a bin of a part begins, and where in the picture. */
uint64_t krait_timeline_bin_begin(const struct krait_timeline_part *part, uint32_t bin);
double krait_timeline_bin_x(const struct krait_drawing *d, const struct krait_timeline_part *part,
                            uint32_t bin);
/* "12.3 ms", counted from the timeline's zero. */
void krait_timeline_put_time(const struct krait_drawing *d, uint64_t t_ns);
/* "MainThread 4711", as XML. */
void krait_timeline_lane_name(struct krait_buf *to, const struct krait_timeline *timeline,
                              const struct krait_timeline_lane *lane);
/* For a lane's states and parts: their heights, and functions that draw them at d->y. */
double krait_timeline_states_height(const struct krait_timeline_lane *lane);
int krait_timeline_draw_states(struct krait_drawing *d, const struct krait_timeline_lane *lane);
double krait_timeline_part_height(const struct krait_timeline *timeline,
                                  const struct krait_timeline_part *part);
void krait_timeline_draw_part(struct krait_drawing *d, const struct krait_timeline_part *part);
/* The marks of a part at d->y, with what they say. */
void krait_timeline_draw_marks(struct krait_drawing *d, const struct krait_timeline_part *part);
/* Opens the shape of a level (trace/mark_says.h), 10 pixels high, in the middle of which is x: a <path> without its end. */
void krait_timeline_put_mark(struct krait_drawing *d, unsigned level, double x, double y);
/* What the legend tells of all marks that are drawn. */
struct krait_timeline_marks {
    unsigned levels;  /* as bits */
    bool has_several; /* a place has several: its text begins with "1 of 3" */
};
struct krait_timeline_marks krait_timeline_marks(const struct krait_timeline *timeline);
/* Draws where events of the lane's thread were lost, over the whole lane. */
void krait_timeline_draw_losses(struct krait_drawing *d, const struct krait_timeline_lane *lane,
                                double height);
/* When --max-overhead dropped functions, and krait ctl set changed what is recorded: dashed lines from d->y down to `bottom`.
 * Returns 0 or -ENOMEM. */
int krait_timeline_draw_drops(struct krait_drawing *d, double bottom);

/* The flows between the lanes that are drawn. Returns 0 or -ENOMEM. */
int krait_timeline_draw_arrows(struct krait_drawing *d);

/* Adds the lane's time of each hue to d. */
void krait_timeline_weigh(struct krait_drawing *d, const struct krait_timeline_part *part);

/* Whether a track is drawn over its lane and not in a row of its own: places where events were lost. */
bool krait_timeline_is_loss(const struct krait_track *track);

#endif
