/* SPDX-License-Identifier: Apache-2.0
 *
 * Python's objects in another process. They may change or die while krait reads them. The result may then be wrong, but
 * its size is bounded, and it contains only bytes that were read.
 */
#ifndef KRAIT_REMOTE_OBJECT_H
#define KRAIT_REMOTE_OBJECT_H

#include "base/buf.h"
#include "remote/remote.h"

/* Appends the first `most` characters of a str (at most KRAIT_TEXT_MAX) as UTF-8. Returns 1 if there are more, 0 if not;
 * -EINVAL: there is no str; -ENOMEM. */
enum { KRAIT_TEXT_MAX = 4096 };
int krait_object_text(const struct krait_remote *remote, uint64_t addr, uint32_t most, struct krait_buf *out);

/* Copies the first `most` characters of a str, surrogates too. Returns its length; -EINVAL: there is no str. */
int64_t krait_object_characters(const struct krait_remote *remote, uint64_t addr,
                                uint32_t characters[KRAIT_TEXT_MAX], uint32_t most);

/* The name of a task of asyncio, shortened, from the object that it has for it. */
void krait_task_name(const struct krait_remote *remote, uint64_t addr, char name[KRAIT_TASK_NAME_MAX]);
/* How many bytes of that object tell this name, at most KRAIT_TASK_NAME_BYTES. */
enum { KRAIT_TASK_NAME_BYTES = 72 + 4 * KRAIT_TASK_NAME_MAX }; /* the head of a str, and its characters */
size_t krait_task_name_size(const struct krait_remote *remote, uint64_t addr);

/* Reads the name of an object's type; returns false if there is no object. */
enum { KRAIT_TYPE_NAME_MAX = 64 };
bool krait_object_type(const struct krait_remote *remote, uint64_t addr, char name[KRAIT_TYPE_NAME_MAX]);
/* Reads the text to which a pointer of C code points; returns false if there is none. */
bool krait_name_at(const struct krait_remote *remote, uint64_t addr, char name[KRAIT_TYPE_NAME_MAX]);
/* The same of the type itself. */
bool krait_type_name(const struct krait_remote *remote, uint64_t type, char name[KRAIT_TYPE_NAME_MAX]);

/* Whether an object is the unbound method `name` of a built-in type. */
bool krait_object_is_method(const struct krait_remote *remote, uint64_t addr, const char *name);
/* The object that a bound method `name` of a built-in type belongs to; 0: it is no such method. */
uint64_t krait_object_bound_to(const struct krait_remote *remote, uint64_t addr, const char *name);

#endif
