/* SPDX-License-Identifier: Apache-2.0
 *
 * Offsets are of 64-bit release builds: Include/internal/pycore_runtime.h, pycore_interp.h, pycore_gil.h, pycore_frame.h,
 * Include/cpython/pystate.h, code.h, frameobject.h of each version; places in the table are of
 * Include/internal/pycore_debug_offsets.h (3.13: pycore_runtime.h).
 */
#include "python/compat/layout.h"

#include "python/compat/versions.h"

#include <string.h>

enum { NOWHERE = KRAIT_NOWHERE, FIXED = 0x8000 }; /* FIXED: in a row with a table, the offset itself */

/* What 3.8, 3.9 and 3.10 share. */
#define KRAIT_AT_BEFORE_311                                                                              \
    [KRAIT_AT_INTERPRETERS] = 32, [KRAIT_AT_INTERP_NEXT] = 0, [KRAIT_AT_INTERP_THREADS] = 8,             \
    [KRAIT_AT_THREAD_NEXT] = 8, [KRAIT_AT_THREAD_INTERP] = 16, [KRAIT_AT_THREAD_ID] = 176,               \
    [KRAIT_AT_THREAD_NATIVE] = NOWHERE, [KRAIT_AT_THREAD_FRAME] = 24, [KRAIT_AT_CFRAME_FRAME] = NOWHERE, \
    [KRAIT_AT_FRAME_CODE] = 32, [KRAIT_AT_FRAME_BACK] = 24, [KRAIT_AT_FRAME_STACK] = 0,                  \
    [KRAIT_AT_FRAME_OWNER] = NOWHERE, [KRAIT_AT_FRAME_ENTRY] = NOWHERE, [KRAIT_AT_FRAME_VALUES] = 64,    \
    [KRAIT_AT_CODE_NAMES] = 64, [KRAIT_AT_CODE_EXCEPTIONS] = NOWHERE, [KRAIT_AT_CODE_FILE] = 104,        \
    [KRAIT_AT_CODE_NAME] = 112, [KRAIT_AT_CODE_QUALNAME] = NOWHERE, [KRAIT_AT_CODE_LINES] = 120,         \
    [KRAIT_AT_CODE_FIRST_LINE] = 40, [KRAIT_AT_CODE_BYTES] = NOWHERE, [KRAIT_AT_CODE_LOCALS] = 72,       \
    [KRAIT_AT_TUPLE_ITEMS] = 24, [KRAIT_AT_GENERATOR_FRAME] = 16, [KRAIT_AT_GENERATOR_STATE] = 24,       \
    [KRAIT_AT_CODE_CELLS] = 88, [KRAIT_AT_CODE_FREE] = 80, [KRAIT_AT_TEXT_ASCII] = 48,                   \
    [KRAIT_AT_TEXT_WIDE] = 72, [KRAIT_AT_THREAD_DICT] = 152, [KRAIT_AT_THREAD_LOOP] = NOWHERE,           \
    [KRAIT_AT_CODE_STRING] = 48

/* What 3.11 and 3.12 share. */
#define KRAIT_AT_311_312                                                                              \
    [KRAIT_AT_FRAME_VALUES] = NOWHERE, [KRAIT_AT_FRAME_BLOCKS] = NOWHERE, [KRAIT_AT_CODE_NAMES] = 32, \
    [KRAIT_AT_CODE_EXCEPTIONS] = 40, [KRAIT_AT_CODE_CELLS] = NOWHERE, [KRAIT_AT_CODE_FREE] = NOWHERE, \
    [KRAIT_AT_FRAME_GENERATOR] = NOWHERE, [KRAIT_AT_INTERPRETERS] = 40, [KRAIT_AT_INTERP_NEXT] = 0,   \
    [KRAIT_AT_THREAD_NEXT] = 8, [KRAIT_AT_THREAD_INTERP] = 16, [KRAIT_AT_THREAD_FRAME] = 56,          \
    [KRAIT_AT_FRAME_INSTRUCTION] = 56, [KRAIT_AT_FRAME_STACK] = 64, [KRAIT_AT_FRAME_TOP] = 64,        \
    [KRAIT_AT_FRAME_STATE] = NOWHERE, [KRAIT_AT_CODE_STRING] = NOWHERE, [KRAIT_AT_TUPLE_ITEMS] = 24,  \
    [KRAIT_AT_FRAME_LOCALS] = 72, [KRAIT_AT_CODE_FILE] = 112, [KRAIT_AT_CODE_NAME] = 120,             \
    [KRAIT_AT_CODE_QUALNAME] = 128, [KRAIT_AT_CODE_LINES] = 136, [KRAIT_AT_CODE_LOCALS] = 96,         \
    [KRAIT_AT_THREAD_LOOP] = NOWHERE

/* Places that the table has kept since 3.13. */
#define KRAIT_AT_TABLE                                                                                      \
    [KRAIT_AT_FRAME_VALUES] = NOWHERE, [KRAIT_AT_FRAME_BLOCKS] = NOWHERE,                                   \
    [KRAIT_AT_CODE_NAMES] = FIXED | 32, [KRAIT_AT_CODE_EXCEPTIONS] = FIXED | 40,                            \
    [KRAIT_AT_CODE_CELLS] = NOWHERE, [KRAIT_AT_CODE_FREE] = NOWHERE, [KRAIT_AT_FRAME_GENERATOR] = NOWHERE,  \
    [KRAIT_AT_INTERPRETERS] = 40, [KRAIT_AT_INTERP_ID] = 56, [KRAIT_AT_INTERP_NEXT] = 64,                   \
    [KRAIT_AT_INTERP_THREADS] = 72, [KRAIT_AT_CFRAME_FRAME] = NOWHERE, [KRAIT_AT_FRAME_ENTRY] = NOWHERE,    \
    [KRAIT_AT_FRAME_STATE] = NOWHERE, [KRAIT_AT_CODE_STRING] = NOWHERE, [KRAIT_AT_THREAD_CFRAME] = NOWHERE, \
    [KRAIT_AT_CFRAME_BACK] = NOWHERE

static const struct krait_layout_of versions[] = {
    { 0x0308, KRAIT_INSTRUCTION_BYTES, KRAIT_LINK_REFERENCE, KRAIT_LINES_LNOTAB, .gil_in_runtime = true,
      .gc_in_runtime = true, .states = { INT8_MAX, 0, 0, 1 }, .awaited = 1, .await = { { 72, 72 }, 0 },
      .task = { 112, 32, 72 }, .lookup = { KRAIT_ATTRIBUTES_DICT, 872, 16, 48 }, .loop_in_holder = true,
      .at = { KRAIT_AT_BEFORE_311, [KRAIT_AT_INTERP_ID] = 16, [KRAIT_AT_GIL] = 1152, [KRAIT_AT_GC] = 544,
              [KRAIT_AT_INTERP_MODULES] = 56, [KRAIT_AT_FRAME_TOP] = 72, [KRAIT_AT_FRAME_STATE] = NOWHERE,
              [KRAIT_AT_FRAME_INSTRUCTION] = 104, [KRAIT_AT_FRAME_GENERATOR] = 96,
              [KRAIT_AT_FRAME_BLOCKS] = 112, [KRAIT_AT_THREAD_CFRAME] = NOWHERE,
              [KRAIT_AT_CFRAME_BACK] = NOWHERE, [KRAIT_AT_FRAME_LOCALS] = 360 } },
    { 0x0309, KRAIT_INSTRUCTION_BYTES, KRAIT_LINK_REFERENCE, KRAIT_LINES_LNOTAB, .gil_in_runtime = true,
      .states = { INT8_MAX, 0, 0, 1 }, .awaited = 1, .await = { { 72, 72 }, 0 }, .task = { 152, 32, 80 },
      .lookup = { KRAIT_ATTRIBUTES_DICT, 864, 16, 48 }, .loop_in_holder = true,
      .at = { KRAIT_AT_BEFORE_311, [KRAIT_AT_INTERP_ID] = 24, [KRAIT_AT_GIL] = 352, [KRAIT_AT_GC] = 816,
              [KRAIT_AT_INTERP_MODULES] = 856, [KRAIT_AT_FRAME_TOP] = 72, [KRAIT_AT_FRAME_STATE] = NOWHERE,
              [KRAIT_AT_FRAME_INSTRUCTION] = 104, [KRAIT_AT_FRAME_GENERATOR] = 96,
              [KRAIT_AT_FRAME_BLOCKS] = 112, [KRAIT_AT_THREAD_CFRAME] = NOWHERE,
              [KRAIT_AT_CFRAME_BACK] = NOWHERE, [KRAIT_AT_FRAME_LOCALS] = 360 } },
    { 0x030a, KRAIT_INSTRUCTION_UNITS, KRAIT_LINK_REFERENCE, KRAIT_LINES_LINETABLE, .gil_in_runtime = true,
      .states = { -2, -1, -1, 0 }, .awaited = 1, .top = KRAIT_TOP_VALUES, .await = { { 72, 72 }, 0 },
      .task = { 160, 24, 88 }, .lookup = { KRAIT_ATTRIBUTES_DICT, 872, 48, 72 }, .loop_in_holder = true,
      .at = { KRAIT_AT_BEFORE_311, [KRAIT_AT_INTERP_ID] = 24, [KRAIT_AT_GIL] = 352, [KRAIT_AT_GC] = 816,
              [KRAIT_AT_INTERP_MODULES] = 856, [KRAIT_AT_FRAME_TOP] = 80, [KRAIT_AT_FRAME_STATE] = 108,
              [KRAIT_AT_FRAME_INSTRUCTION] = 96, [KRAIT_AT_FRAME_GENERATOR] = 88,
              [KRAIT_AT_FRAME_BLOCKS] = 104, [KRAIT_AT_THREAD_CFRAME] = 48, [KRAIT_AT_CFRAME_BACK] = 8,
              [KRAIT_AT_FRAME_LOCALS] = 352 } },
    { 0x030b, KRAIT_INSTRUCTION_POINTER, KRAIT_LINK_DEPTH, KRAIT_LINES_LOCATIONS, .gil_in_runtime = true,
      .states = { -2, -1, -1, 0 }, .awaited = 1, .top = KRAIT_TOP_LOCALS, .await = { { 151, 150 }, 2 },
      .task = { 136, 112, 88 }, .lookup = { KRAIT_ATTRIBUTES_APART, 872, 48, 72 }, .loop_in_holder = true,
      .at = { KRAIT_AT_311_312,
              [KRAIT_AT_INTERP_ID] = 48,
              [KRAIT_AT_INTERP_THREADS] = 16,
              [KRAIT_AT_GIL] = 360,
              [KRAIT_AT_GC] = 848,
              [KRAIT_AT_INTERP_MODULES] = 888,
              [KRAIT_AT_THREAD_DICT] = 128,
              [KRAIT_AT_GENERATOR_FRAME] = 80,
              [KRAIT_AT_GENERATOR_STATE] = 75,
              [KRAIT_AT_THREAD_ID] = 152,
              [KRAIT_AT_THREAD_NATIVE] = 160,
              [KRAIT_AT_CFRAME_FRAME] = 8,
              [KRAIT_AT_THREAD_CFRAME] = 56,
              [KRAIT_AT_CFRAME_BACK] = 16,
              [KRAIT_AT_FRAME_CODE] = 32,
              [KRAIT_AT_FRAME_BACK] = 48,
              [KRAIT_AT_FRAME_OWNER] = 69,
              [KRAIT_AT_FRAME_ENTRY] = 68,
              [KRAIT_AT_CODE_FIRST_LINE] = 72,
              [KRAIT_AT_CODE_BYTES] = 184,
              [KRAIT_AT_TEXT_ASCII] = 48,
              [KRAIT_AT_TEXT_WIDE] = 72 } },
    { 0x030c, KRAIT_INSTRUCTION_POINTER, KRAIT_LINK_DEPTH, KRAIT_LINES_LOCATIONS, .int_has_tag = true,
      .states = { -2, -1, -1, 0 }, .awaited = 1, .top = KRAIT_TOP_LOCALS, .await = { { 151, 240 }, 2 },
      .task = { 136, 72, 88 }, .lookup = { KRAIT_ATTRIBUTES_TAGGED, 880, 48, 72 },
      .at = { KRAIT_AT_311_312,
              [KRAIT_AT_INTERP_ID] = 8,
              [KRAIT_AT_INTERP_THREADS] = 72,
              [KRAIT_AT_GIL] = 384,
              [KRAIT_AT_GC] = 312,
              [KRAIT_AT_INTERP_MODULES] = 944,
              [KRAIT_AT_THREAD_DICT] = 112,
              [KRAIT_AT_GENERATOR_FRAME] = 72,
              [KRAIT_AT_GENERATOR_STATE] = 67,
              [KRAIT_AT_THREAD_ID] = 136,
              [KRAIT_AT_THREAD_NATIVE] = 144,
              [KRAIT_AT_CFRAME_FRAME] = 0,
              [KRAIT_AT_THREAD_CFRAME] = NOWHERE,
              [KRAIT_AT_CFRAME_BACK] = NOWHERE,
              [KRAIT_AT_FRAME_CODE] = 0,
              [KRAIT_AT_FRAME_BACK] = 8,
              [KRAIT_AT_FRAME_OWNER] = 70,
              [KRAIT_AT_FRAME_ENTRY] = NOWHERE,
              [KRAIT_AT_CODE_FIRST_LINE] = 68,
              [KRAIT_AT_CODE_BYTES] = 192,
              [KRAIT_AT_TEXT_ASCII] = 40,
              [KRAIT_AT_TEXT_WIDE] = 56 } },
    { 0x030d, KRAIT_INSTRUCTION_POINTER, KRAIT_LINK_DEPTH, KRAIT_LINES_LOCATIONS, .has_table = true,
      .int_has_tag = true, .states = { -3, -1, -1, 0 }, .awaited = 1, .top = KRAIT_TOP_LOCALS,
      .task = { 120, 72, 96 }, .lookup = { KRAIT_ATTRIBUTES_INLINE, 880, 48, 72 },
      .at = { KRAIT_AT_TABLE,
              [KRAIT_AT_GENERATOR_FRAME] = FIXED | 72,
              [KRAIT_AT_GENERATOR_STATE] = FIXED | 67,
              [KRAIT_AT_INTERP_MODULES] = 88,
              [KRAIT_AT_THREAD_DICT] = NOWHERE,
              [KRAIT_AT_THREAD_LOOP] = FIXED | 304,
              [KRAIT_AT_GIL] = 112,
              [KRAIT_AT_GC] = 80,
              [KRAIT_AT_GC_COLLECTING] = 576,
              [KRAIT_AT_TUPLE_ITEMS] = FIXED | 24,
              [KRAIT_AT_THREAD_NEXT] = 168,
              [KRAIT_AT_THREAD_INTERP] = 176,
              [KRAIT_AT_THREAD_FRAME] = 184,
              [KRAIT_AT_THREAD_ID] = 192,
              [KRAIT_AT_THREAD_NATIVE] = 200,
              [KRAIT_AT_FRAME_BACK] = 232,
              [KRAIT_AT_FRAME_CODE] = 240,
              [KRAIT_AT_FRAME_INSTRUCTION] = 248,
              [KRAIT_AT_FRAME_LOCALS] = 256,
              [KRAIT_AT_FRAME_OWNER] = 264,
              [KRAIT_AT_FRAME_STACK] = FIXED | 64,
              [KRAIT_AT_FRAME_TOP] = FIXED | 64,
              [KRAIT_AT_CODE_FILE] = 280,
              [KRAIT_AT_CODE_NAME] = 288,
              [KRAIT_AT_CODE_QUALNAME] = 296,
              [KRAIT_AT_CODE_LINES] = 304,
              [KRAIT_AT_CODE_FIRST_LINE] = 312,
              [KRAIT_AT_CODE_LOCALS] = 328,
              [KRAIT_AT_CODE_BYTES] = 344,
              [KRAIT_AT_TEXT_ASCII] = 560,
              [KRAIT_AT_TEXT_WIDE] = FIXED | 56 } },
    { 0x030e, KRAIT_INSTRUCTION_POINTER, KRAIT_LINK_POINTER, KRAIT_LINES_LOCATIONS, .has_table = true,
      .int_has_tag = true, .states = { -3, -1, -1, 0 }, .awaited = 1, .locks = KRAIT_LOCKS_MUTEX,
      .task = { 128, 72, 0 }, .lookup = { KRAIT_ATTRIBUTES_INLINE, 880, 0, 0 }, .asyncio_has_table = true,
      .at = { KRAIT_AT_TABLE,
              [KRAIT_AT_GENERATOR_FRAME] = 680,
              [KRAIT_AT_GENERATOR_STATE] = 688,
              [KRAIT_AT_GIL] = 120,
              [KRAIT_AT_GC] = 88,
              [KRAIT_AT_GC_COLLECTING] = 656,
              [KRAIT_AT_TUPLE_ITEMS] = FIXED | 32,
              [KRAIT_AT_THREAD_NEXT] = 192,
              [KRAIT_AT_THREAD_INTERP] = 200,
              [KRAIT_AT_THREAD_FRAME] = 208,
              [KRAIT_AT_THREAD_ID] = 216,
              [KRAIT_AT_THREAD_NATIVE] = 224,
              [KRAIT_AT_FRAME_BACK] = 256,
              [KRAIT_AT_FRAME_CODE] = 264,
              [KRAIT_AT_FRAME_INSTRUCTION] = 272,
              [KRAIT_AT_FRAME_LOCALS] = 280,
              [KRAIT_AT_FRAME_OWNER] = 288,
              [KRAIT_AT_FRAME_STACK] = 296,
              [KRAIT_AT_FRAME_TOP] = 296,
              [KRAIT_AT_INTERP_MODULES] = NOWHERE,
              [KRAIT_AT_THREAD_DICT] = NOWHERE,
              [KRAIT_AT_THREAD_LOOP] = NOWHERE,
              [KRAIT_AT_CODE_FILE] = 320,
              [KRAIT_AT_CODE_NAME] = 328,
              [KRAIT_AT_CODE_QUALNAME] = 336,
              [KRAIT_AT_CODE_LINES] = 344,
              [KRAIT_AT_CODE_FIRST_LINE] = 352,
              [KRAIT_AT_CODE_LOCALS] = 368,
              [KRAIT_AT_CODE_BYTES] = 384,
              [KRAIT_AT_TEXT_ASCII] = 640,
              [KRAIT_AT_TEXT_WIDE] = FIXED | 56 } },
    { 0x030f, KRAIT_INSTRUCTION_POINTER, KRAIT_LINK_POINTER, KRAIT_LINES_LOCATIONS, .has_table = true,
      .int_has_tag = true, .states = { 0, 2, 3, 4 }, .awaited = 2, .locks = KRAIT_LOCKS_MUTEX,
      .task = { 128, 72, 0 }, .lookup = { KRAIT_ATTRIBUTES_INLINE, 888, 0, 0 }, .asyncio_has_table = true,
      .at = { KRAIT_AT_TABLE,
              [KRAIT_AT_GENERATOR_FRAME] = 808,
              [KRAIT_AT_GENERATOR_STATE] = 816,
              [KRAIT_AT_GIL] = 120,
              [KRAIT_AT_GC] = 88,
              [KRAIT_AT_GC_COLLECTING] = 760,
              [KRAIT_AT_TUPLE_ITEMS] = FIXED | 32,
              [KRAIT_AT_THREAD_NEXT] = 192,
              [KRAIT_AT_THREAD_INTERP] = 200,
              [KRAIT_AT_THREAD_FRAME] = 208,
              [KRAIT_AT_THREAD_ID] = 240,
              [KRAIT_AT_THREAD_NATIVE] = 248,
              [KRAIT_AT_FRAME_BACK] = 320,
              [KRAIT_AT_FRAME_CODE] = 328,
              [KRAIT_AT_FRAME_INSTRUCTION] = 336,
              [KRAIT_AT_FRAME_LOCALS] = 344,
              [KRAIT_AT_FRAME_OWNER] = 352,
              [KRAIT_AT_FRAME_STACK] = 360,
              [KRAIT_AT_FRAME_TOP] = 360,
              [KRAIT_AT_INTERP_MODULES] = NOWHERE,
              [KRAIT_AT_THREAD_DICT] = NOWHERE,
              [KRAIT_AT_THREAD_LOOP] = NOWHERE,
              [KRAIT_AT_CODE_FILE] = 384,
              [KRAIT_AT_CODE_NAME] = 392,
              [KRAIT_AT_CODE_QUALNAME] = 400,
              [KRAIT_AT_CODE_LINES] = 408,
              [KRAIT_AT_CODE_FIRST_LINE] = 416,
              [KRAIT_AT_CODE_LOCALS] = 432,
              [KRAIT_AT_CODE_BYTES] = 448,
              [KRAIT_AT_TEXT_ASCII] = 736,
              [KRAIT_AT_TEXT_WIDE] = FIXED | 56 } },
};

_Static_assert(KRAIT_ARRAY_LEN(versions) == KRAIT_PYTHON_COUNT, "a row a version");

const struct krait_version_symbol krait_version_symbols[] = {
    { "PyIter_Send", 0x030a },         /* Include/abstract.h */
    { "PyObject_CallNoArgs", 0x0309 }, /* Include/abstract.h */
    { KRAIT_PYTHON_KNOWN, 0x0308 },    /* Include/cpython/sysmodule.h */
    { NULL, 0 },
};

bool krait_python_tells_exceptions(const char *name)
{
    unsigned minor = 0;
    return sscanf(name, "%*s 3.%u", &minor) != 1 || minor >= KRAIT_PYTHON_MONITORING;
}

const struct krait_layout_of *krait_layout_find(unsigned number)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(versions); i++) {
        if (versions[i].number == number)
            return &versions[i];
    }
    return NULL;
}

enum { COOKIE_SIZE = 8, TABLE_FREE_THREADED = 16, OFFSET_MOST = 1 << 24 };

static uint64_t number_at(const char *table, size_t at)
{
    uint64_t number;
    memcpy(&number, table + at, sizeof(number));
    return number;
}

int krait_layout_fill(struct krait_layout *layout, const struct krait_layout_of *version, const void *table,
                      const char **why)
{
    const char *bytes = table;
    layout->version = version;
    if (version->has_table && memcmp(bytes, "xdebugpy", COOKIE_SIZE) != 0) {
        *why = "its table of offsets is not where it should be (is it still starting?)";
        return -ENOTSUP;
    }
    if (version->has_table && number_at(bytes, TABLE_FREE_THREADED)) {
        *why = "it is a free-threaded build of Python, which krait does not read";
        return -ENOTSUP;
    }
    for (size_t i = 0; i < KRAIT_AT_COUNT; i++) {
        uint16_t at = version->at[i];
        bool is_place = version->has_table && at < FIXED;
        uint64_t offset = is_place ? number_at(bytes, at) : at == NOWHERE ? at : at & ~FIXED;
        if (offset > OFFSET_MOST) {
            *why = "its table of offsets makes no sense";
            return -ENOTSUP;
        }
        layout->at[i] = (uint32_t)offset;
    }
    return 0;
}
