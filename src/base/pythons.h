/* SPDX-License-Identifier: Apache-2.0
 *
 * The versions of Python that krait records. Their differences are in python/compat.c.
 */
#ifndef KRAIT_BASE_PYTHONS_H
#define KRAIT_BASE_PYTHONS_H

#define KRAIT_PYTHON_MINOR_MIN  8
#define KRAIT_PYTHON_MINOR_MAX  15
#define KRAIT_PYTHON_MONITORING 12 /* from here on calls are recorded with sys.monitoring (PEP 669) */

#define KRAIT_TEXT_OF(x)  #x
#define KRAIT_NUMBER(x)   KRAIT_TEXT_OF(x)
#define KRAIT_PYTHON_MIN  "3." KRAIT_NUMBER(KRAIT_PYTHON_MINOR_MIN)
#define KRAIT_PYTHON_SPAN KRAIT_PYTHON_MIN " to 3." KRAIT_NUMBER(KRAIT_PYTHON_MINOR_MAX)

#endif
