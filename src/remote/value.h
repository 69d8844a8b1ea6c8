/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of Python's objects in another process, as repr() shows them. As with object.h, they may change while krait reads them.
 *
 *     'it\'s "x"\n'   b'\x00'   1.5e-07   [1, [...]]   (1,)   {'a': {1, 2}}   frozenset()    as in Python
 *     'aaaa'...                         a str or bytes of more than KRAIT_SHOWN_TEXT characters
 *     [1, 2, 3, 4, 5, ... 100 in all]   a collection of more than KRAIT_SHOWN_ITEMS
 *     <list of 3>                       one that is deeper than KRAIT_SHOWN_DEPTH others
 *     <int of about 600 bits>           an int of more than KRAIT_SHOWN_BITS
 *     <Thing object at 0x7f00c8>        every other object
 *     ?                                 what cannot be read
 */
#ifndef KRAIT_REMOTE_VALUE_H
#define KRAIT_REMOTE_VALUE_H

#include "base/buf.h"
#include "remote/remote.h"

enum { KRAIT_SHOWN_TEXT = 60, KRAIT_SHOWN_ITEMS = 5, KRAIT_SHOWN_DEPTH = 3, KRAIT_SHOWN_BITS = 480 };

/* Appends the value of the object at `addr`, in UTF-8. */
void krait_value_show(const struct krait_remote *remote, uint64_t addr, struct krait_buf *out);

/* The same of a variable, which may be in a cell; an empty cell adds nothing. */
void krait_value_show_variable(const struct krait_remote *remote, uint64_t addr, struct krait_buf *out);

#endif
