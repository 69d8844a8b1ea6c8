/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the fields of CPython's structs lie in another process, for each version from 3.8 on. From 3.13 on the interpreter
 * holds the offsets itself, in the table _Py_DebugOffsets at the begin of _PyRuntime. Then only the places in that table are
 * known here.
 */
#ifndef KRAIT_PYTHON_COMPAT_LAYOUT_H
#define KRAIT_PYTHON_COMPAT_LAYOUT_H

#include "base/err.h"
#include "python/compat/unicode.h"

/* Offsets in bytes. */
enum krait_at {
    KRAIT_AT_INTERPRETERS, /* _PyRuntime: the first interpreter */
    KRAIT_AT_INTERP_NEXT,  /* PyInterpreterState */
    KRAIT_AT_INTERP_ID,
    KRAIT_AT_INTERP_THREADS,
    KRAIT_AT_INTERP_MODULES, /* before 3.14: sys.modules */
    KRAIT_AT_GIL, /* before 3.12 in _PyRuntime, then a pointer in PyInterpreterState: struct _gil_runtime_state */
    KRAIT_AT_GC, /* PyInterpreterState, before 3.9 _PyRuntime: with a table the state of the garbage collector, else its flag */
    KRAIT_AT_GC_COLLECTING, /* from there the flag, an int: 1 while it collects */
    KRAIT_AT_THREAD_NEXT,   /* PyThreadState */
    KRAIT_AT_THREAD_INTERP,
    KRAIT_AT_THREAD_ID,
    KRAIT_AT_THREAD_NATIVE, /* 3.11 */
    KRAIT_AT_THREAD_DICT, /* before 3.13: values of C code for this thread, a dict, in which asyncio has the loop that runs */
    KRAIT_AT_THREAD_LOOP,  /* 3.13: that loop */
    KRAIT_AT_THREAD_FRAME, /* the frame, or in 3.11 and 3.12 the _PyCFrame that points to it */
    KRAIT_AT_CFRAME_FRAME,
    KRAIT_AT_THREAD_CFRAME, /* 3.10 and 3.11: what lies in the innermost activation of the interpreter's loop, on the C stack */
    KRAIT_AT_CFRAME_BACK, /* the same of the activation outside of it; the outermost of all lies in the thread state */
    KRAIT_AT_FRAME_CODE, /* PyFrameObject, from 3.11 on _PyInterpreterFrame */
    KRAIT_AT_FRAME_BACK,
    KRAIT_AT_FRAME_INSTRUCTION,
    KRAIT_AT_FRAME_STACK, /* how a frame that runs is told from one that calls: enum krait_link */
    KRAIT_AT_FRAME_TOP,   /* enum krait_top */
    KRAIT_AT_FRAME_STATE, /* 3.10 alone: what its generator does (int8_t); other versions have that in the generator */
    KRAIT_AT_FRAME_OWNER, /* 3.11 */
    KRAIT_AT_FRAME_ENTRY, /* 3.11 alone: whether C code called it; later ones put a frame of no function before it */
    KRAIT_AT_FRAME_LOCALS,
    KRAIT_AT_FRAME_GENERATOR, /* before 3.11: the generator that it is of, or NULL */
    KRAIT_AT_FRAME_VALUES, /* before 3.11: address of the bottom of its stack; later the locals end there */
    KRAIT_AT_FRAME_BLOCKS, /* before 3.11: how many blocks it is in (int); then the blocks */
    KRAIT_AT_CODE_FILE,    /* PyCodeObject */
    KRAIT_AT_CODE_NAME,
    KRAIT_AT_CODE_QUALNAME, /* 3.11 */
    KRAIT_AT_CODE_LINES,
    KRAIT_AT_CODE_FIRST_LINE,
    KRAIT_AT_CODE_BYTES,      /* the instructions: 3.11 */
    KRAIT_AT_CODE_STRING,     /* before 3.11: the instructions, a bytes */
    KRAIT_AT_CODE_NAMES,      /* names of what is not local, as of attributes, a tuple */
    KRAIT_AT_CODE_EXCEPTIONS, /* 3.11: the exception table, a bytes */
    KRAIT_AT_CODE_LOCALS,     /* names of the local variables, a tuple */
    KRAIT_AT_CODE_CELLS,      /* before 3.11 those in cells, and those of enclosing functions */
    KRAIT_AT_CODE_FREE,
    KRAIT_AT_GENERATOR_FRAME, /* PyGenObject: its frame, which is in it; before 3.11 a pointer to it */
    KRAIT_AT_GENERATOR_STATE,
    KRAIT_AT_TUPLE_ITEMS, /* PyTupleObject */
    KRAIT_AT_TEXT_ASCII,  /* PyUnicodeObject: characters of an ASCII text */
    KRAIT_AT_TEXT_WIDE,   /* of any other text */
    KRAIT_AT_COUNT,
};

enum { KRAIT_NOWHERE = 0xffff }; /* this version does not have the field */

/* The place of an instruction in a frame. */
enum krait_instruction {
    KRAIT_INSTRUCTION_BYTES, /* int, bytes; -1: not begun */
    KRAIT_INSTRUCTION_UNITS, /* int, units of 2 bytes */
    KRAIT_INSTRUCTION_POINTER,
};

/* How a frame shows that the frame above it is its callee, not what an earlier callee left in that place. A caller has
 * stored what a frame that runs its own code has not. */
enum krait_link {
    KRAIT_LINK_REFERENCE, /* before 3.11: its callee holds a reference, so that it has 2 or more; one that has ended has 0 */
    KRAIT_LINK_DEPTH,   /* int stacktop, -1 while it runs */
    KRAIT_LINK_POINTER, /* stackpointer, NULL while it runs */
};

/* Where the stack of a frame ends that is suspended. */
enum krait_top {
    KRAIT_TOP_POINTER,
    KRAIT_TOP_VALUES, /* int, slots from KRAIT_AT_FRAME_VALUES */
    KRAIT_TOP_LOCALS, /* int, slots from the first local variable */
};

/* Before 3.13 a suspended coroutine awaits something if its next instruction is one of these, with that argument at least in its
 * two low bits: _PyGen_yf in Objects/genobject.c. */
struct krait_await_code {
    uint8_t codes[2], least;
};
enum {
    KRAIT_CODE_UNIT = 2, /* bytes of an instruction: its code and its argument */
    KRAIT_RESUME_BITS = 3,
};

/* Where the attributes of an instance are if its type has KRAIT_TYPE_MANAGED: Include/internal/pycore_object.h. */
enum krait_attributes {
    KRAIT_ATTRIBUTES_DICT,  /* before 3.11: always in a dict, at the type's offset */
    KRAIT_ATTRIBUTES_APART, /* 3.11: words before the object point to the values, or else to a dict */
    KRAIT_ATTRIBUTES_TAGGED, /* 3.12: a word before it points to the values if its low bit is 1, or else to a dict */
    KRAIT_ATTRIBUTES_INLINE, /* 3.13: a word before it points to a dict, or the values lie behind its head */
};

/* The encoding of line numbers: lines.h. */
enum krait_line_table {
    KRAIT_LINES_LNOTAB,    /* Objects/lnotab_notes.txt of 3.8 */
    KRAIT_LINES_LINETABLE, /* Objects/lnotab_notes.txt of 3.10 */
    KRAIT_LINES_LOCATIONS, /* Objects/locations.md of 3.11, InternalDocs/code_objects.md */
};

/* What a lock of the module threading holds (Modules/_threadmodule.c):
 *
 *     threading.Lock    before 3.14  semaphore                 from 3.14 on  mutex
 *     threading.RLock                semaphore  owner  count                 mutex  owner  count - 1
 *
 * The semaphore is the futex for which a thread that waits for the lock waits in the kernel. Threads that wait for a mutex
 * do so in the interpreter's parking lot (Python/parking_lot.c). */
enum krait_locks {
    KRAIT_LOCKS_SEMAPHORE, /* a pointer to a semaphore */
    KRAIT_LOCKS_MUTEX,     /* a PyMutex */
};

/* Where a task of asyncio's C part has its coroutine, with its name behind that (TaskObj, Modules/_asynciomodule.c), where a
 * coroutine has its code (PyCoroObject, Include/internal/pycore_interpframe_structs.h, before 3.14 Include/cpython/genobject.h),
 * and before 3.14 where a task has its state (FutureObj). */
struct krait_task_layout {
    uint8_t coroutine, code, state;
};

/* What is needed to find names in dicts and instances. */
struct krait_lookup_layout {
    enum krait_attributes attributes;
    uint16_t type_keys; /* PyHeapTypeObject: the names of attributes that instances have in common */
    uint8_t function_code, function_closure; /* before 3.14: PyFunctionObject */
};

struct krait_layout_of {
    uint16_t number; /* 0x0308 */
    enum krait_instruction instruction;
    enum krait_link link;
    enum krait_line_table lines;
    enum krait_locks locks;
    bool gil_in_runtime;
    bool gc_in_runtime;
    bool int_has_tag; /* 3.12: the number of digits is shifted by 3 bits, the sign is in them */
    struct krait_task_layout task;
    struct krait_lookup_layout lookup;
    bool loop_in_holder;    /* the dict has an object that has the loop */
    bool asyncio_has_table; /* struct krait_asyncio_table */
    bool has_table;         /* `at` holds places in _Py_DebugOffsets */
    struct {                /* PyFrameState: Include/internal/pycore_frame.h; before 3.10 whether it runs */
        int8_t created, awaits, awaits_too, runs;
    } states;
    enum krait_top top;
    struct krait_await_code await;
    /* slots from the top of a waiting coroutine's stack down to what it awaits: SEND in Python/bytecodes.c */
    uint8_t awaited;
    uint16_t at[KRAIT_AT_COUNT];
};

/* What is known of an interpreter that runs. */
struct krait_layout {
    const struct krait_layout_of *version;
    uint32_t at[KRAIT_AT_COUNT];
};

/* The same in all versions: Include/object.h, Include/cpython/unicodeobject.h, bytesobject.h, tupleobject.h, classobject.h,
 * descrobject.h, methodobject.h; Include/internal/pycore_gil.h; Modules/_threadmodule.c. */
enum {
    KRAIT_OBJECT_TYPE = 8,
    KRAIT_OBJECT_HEAD = 40, /* bytes of an object: what krait shows of one without following a pointer */
    KRAIT_BYTES_DATA = 32,
    KRAIT_TEXT_HASH = 24,
    KRAIT_GIL_HOLDER = 8,
    KRAIT_GIL_LOCKED = 16,
    KRAIT_GIL_SIZE = 208,
    KRAIT_TYPE_NAME = 24,
    KRAIT_TYPE_FLAGS = 168, /* PyTypeObject */
    KRAIT_TYPE_METHODS = 232,
    KRAIT_TYPE_BASE = 256,
    KRAIT_TYPE_DICT_OFFSET = 288,
    KRAIT_TYPE_INLINE = 1 << 2, /* Py_TPFLAGS_INLINE_VALUES */
    KRAIT_TYPE_MANAGED = 1 << 4,
    KRAIT_TYPE_HEAP = 1 << 9,  /* Py_TPFLAGS_HEAPTYPE: made while the program runs */
    KRAIT_MODULE_DICT = 16,    /* PyModuleObject */
    KRAIT_WEAK_OBJECT = 16,    /* PyWeakReference */
    KRAIT_BOUND_FUNCTION = 16, /* PyMethodObject */
    KRAIT_BOUND_SELF = 24,
    KRAIT_PARTIAL_FUNCTION = 16, /* partialobject, Modules/_functoolsmodule.c */
    KRAIT_PARTIAL_ARGUMENTS = 24,
    KRAIT_CELL_VALUE = 16,
    KRAIT_FLOAT_VALUE = 16,
    KRAIT_LIST_ITEMS = 24,
    KRAIT_SET_USED = 24,
    KRAIT_SET_MASK = 32,
    KRAIT_SET_TABLE = 40,
    KRAIT_DICT_USED = 16,
    KRAIT_DICT_KEYS = 32,
    KRAIT_DICT_VALUES = 40, /* NULL: they are beside the keys */
    KRAIT_INT_DIGITS = 24,
    KRAIT_BUILTIN_DEFINITION = 16, /* PyCFunctionObject: the PyMethodDef, which begins with the name */
    KRAIT_BUILTIN_SELF = 24,       /* what it is bound to */
    KRAIT_BUILTIN_MODULE = 32,     /* the name of its module */
    KRAIT_DEFINITION_SIZE = 32,    /* PyMethodDef */
    KRAIT_DESCRIPTOR_TYPE = 16,    /* PyDescrObject */
    KRAIT_DESCRIPTOR_NAME = 24,
    KRAIT_LOCK_STATE = 16,  /* of both types of lock: enum krait_locks */
    KRAIT_RLOCK_OWNER = 24, /* the thread's ident */
    KRAIT_RLOCK_COUNT = 32,
    KRAIT_OWNER_GENERATOR = 1,
    KRAIT_OWNER_NONE = 3, /* frames of this owner and greater ones are no function's */
};

#define KRAIT_TYPE_OF_TYPES ((uint64_t)1 << 31) /* Py_TPFLAGS_TYPE_SUBCLASS: its objects are types */

/* Before 3.11, PyTryBlock: Include/cpython/frameobject.h (3.8: Include/frameobject.h). */
enum {
    KRAIT_BLOCKS_MAX = 20,
    KRAIT_BLOCKS_FIRST = 8, /* from the number of blocks to the first */
    KRAIT_BLOCK_SIZE = 12,
    KRAIT_BLOCK_LEVEL = 8, /* slots of the stack that remain in use when the block is left */
};

/* A dict's keys: a head, a table of indices, and entries of a hash, a key and a value (PyDictKeysObject in
 * Objects/dict-common.h, from 3.11 on in Include/internal/pycore_dict.h). From 3.11 on, entries of a kind other than 0 have no
 * hash. */
struct krait_keys_layout {
    uint8_t size; /* of the table: how many indices; from 3.11 on the log2 of its bytes (1 byte) */
    uint8_t kind; /* 1 byte; 0: there are no kinds */
    uint8_t count, indices;
    uint8_t values; /* from where an instance's values begin to the first */
};

static inline struct krait_keys_layout krait_keys_layout(enum krait_attributes attributes)
{
    static const struct krait_keys_layout layouts[] = { [KRAIT_ATTRIBUTES_DICT] = { 8, 0, 32, 40, 0 },
                                                        [KRAIT_ATTRIBUTES_APART] = { 9, 10, 24, 32, 0 },
                                                        [KRAIT_ATTRIBUTES_TAGGED] = { 9, 10, 24, 32, 0 },
                                                        [KRAIT_ATTRIBUTES_INLINE] = { 9, 10, 24, 32, 8 } };
    return layouts[attributes];
}

/* PyTracebackObject: Include/cpython/traceback.h. */
enum { KRAIT_TRACEBACK_FRAME = 24 };

/* Words before and behind an object's head: enum krait_attributes. */
enum {
    KRAIT_MANAGED_VALUES = -32,
    KRAIT_MANAGED_DICT = -24,
    KRAIT_INLINE_VALUES = 16,
};

/* The first fields of a future of asyncio's C part before 3.14 (FutureObj, Modules/_asynciomodule.c), and what a thread's dict has
 * of its running loop (PyRunningLoopHolder). */
enum {
    KRAIT_FUTURE_LOOP = 16,
    KRAIT_FUTURE_CALLBACK = 24,
    KRAIT_FUTURE_CALLBACKS = 40, /* the others: a list of tuples that begin with the callback */
    KRAIT_FUTURE_PENDING = 0,
    KRAIT_HOLDER_LOOP = 16,
};

/* The object that stands for an interpreter before 3.13: interpid, Objects/interpreteridobject.c. */
enum { KRAIT_INTERPRETER_ID = 16 };

/* Of asyncio: a Handle, whose __slots__ lie in the order of their names (Lib/asyncio/events.py), and what runs a step of a task
 * (TaskStepMethWrapper, TaskWakeupMethWrapper; a method: PyCFunctionObject). */
enum {
    KRAIT_HANDLE_CALLBACK = 24,
    KRAIT_STEP_TASK = 16,
    KRAIT_METHOD_DEFINITION = 16,
    KRAIT_METHOD_SELF = 24,
};

/* Bits of a reference on a frame's stack that are no part of the address; 0 before 3.14: Include/internal/pycore_stackref.h. */
#define KRAIT_REFERENCE_TAGS ((uint64_t)3)

/* The two low bits of a mutex that is locked and has threads that wait: Include/cpython/pylock.h. */
#define KRAIT_MUTEX_HAS_WAITERS ((uint64_t)3)

/* An int, Include/cpython/longintrepr.h: digits, lowest first. From 3.12 on the size has a tag (int_has_tag). */
enum {
    KRAIT_INT_DIGIT_BITS = 30,
    KRAIT_INT_TAG_BITS = 3,
    KRAIT_INT_TAG_SIGN = 3,
    KRAIT_INT_TAG_NEGATIVE = 2
};

/* The first bytes of the table of offsets that the C part of asyncio holds from 3.14 on: _AsyncioDebug in
 * Modules/_asynciomodule.c. */
struct krait_asyncio_table {
    uint64_t task_size, task_name, task_awaited_by, task_is_task, task_awaited_by_is_set, task_coro,
        task_node;
    uint64_t interp_size, interp_head;
    uint64_t thread_size, running_loop, running_task, thread_head;
};
enum { KRAIT_WRAPPED = 16 }; /* what PyCoroWrapper and PyAsyncGenASend are of: Objects/genobject.c */

/* PY_VERSION_HEX, Include/patchlevel.h, as a number like 0x030d, and the rest of it. */
static inline unsigned krait_version_number(uint64_t hex)
{
    return (unsigned)(hex >> 16);
}

static inline unsigned krait_version_micro(uint64_t hex)
{
    return (unsigned)(hex >> 8 & 255);
}

/* Symbols that tell the version where Py_Version is missing (before 3.11): the newest that is there counts. */
struct krait_version_symbol {
    const char *symbol;
    uint16_t number;
};
extern const struct krait_version_symbol krait_version_symbols[]; /* newest first; ends with NULL */

/* The row of a version; NULL if krait does not know it. */
const struct krait_layout_of *krait_layout_find(unsigned number);

/* Of _Py_DebugOffsets: how many bytes krait reads; where PY_VERSION_HEX is. */
enum { KRAIT_TABLE_SIZE = 832, KRAIT_TABLE_VERSION = 8 };

/* Fills the offsets; `table` holds the first KRAIT_TABLE_SIZE bytes of _PyRuntime. Returns 0, or -ENOTSUP with *why set. */
int krait_layout_fill(struct krait_layout *layout, const struct krait_layout_of *version, const void *table,
                      const char **why);

#endif
