/* SPDX-License-Identifier: Apache-2.0 */
#include "view/png.h"

#include <dlfcn.h>
#include <math.h>

enum {
    ARGB32 = 0,       /* cairo_format_t */
    SIDE_MAX = 32767, /* pixels: cairo's limit for an image */
};

struct rectangle { /* RsvgRectangle */
    double x, y, width, height;
};

/* The needed functions of librsvg's and cairo's public interfaces (librsvg/rsvg.h, cairo.h). */
struct painters {
    void *(*rsvg_handle_new_from_data)(const uint8_t *data, size_t n, void **error);
    int (*rsvg_handle_get_intrinsic_size_in_pixels)(void *handle, double *width, double *height);
    int (*rsvg_handle_render_document)(void *handle, void *cr, const struct rectangle *viewport,
                                       void **error);
    void (*g_object_unref)(void *object);
    void *(*cairo_image_surface_create)(int format, int width, int height);
    int (*cairo_surface_status)(void *surface);
    void *(*cairo_create)(void *surface);
    void (*cairo_destroy)(void *cr);
    void (*cairo_surface_destroy)(void *surface);
    int (*cairo_surface_write_to_png_stream)(void *surface,
                                             int (*write)(void *to, const uint8_t *data, unsigned n),
                                             void *to);
};

static int load(struct painters *p, struct krait_err *err)
{
    void *rsvg = dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
    void *cairo = rsvg ? dlopen("libcairo.so.2", RTLD_NOW | RTLD_LOCAL) : NULL;
    void *gobject = cairo ? dlopen("libgobject-2.0.so.0", RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!gobject)
        return krait_err_set(
            err, -ENOENT,
            "PNG needs librsvg, which is not installed; install it (Debian: librsvg2-2), or draw SVG");
#define TAKE(from, name)                               \
    p->name = (__typeof__(p->name))dlsym(from, #name); \
    if (!p->name)                                      \
    return krait_err_set(err, -ENOENT,                 \
                         "librsvg or cairo lacks the function " #name ": too old a version; draw SVG")
    TAKE(rsvg, rsvg_handle_new_from_data);
    TAKE(rsvg, rsvg_handle_get_intrinsic_size_in_pixels);
    TAKE(rsvg, rsvg_handle_render_document);
    TAKE(gobject, g_object_unref);
    TAKE(cairo, cairo_image_surface_create);
    TAKE(cairo, cairo_surface_status);
    TAKE(cairo, cairo_create);
    TAKE(cairo, cairo_destroy);
    TAKE(cairo, cairo_surface_destroy);
    TAKE(cairo, cairo_surface_write_to_png_stream);
#undef TAKE
    return 0;
}

/* A cairo_write_func_t: 0 is success, 1 out of memory. */
static int append(void *to, const uint8_t *data, unsigned n)
{
    struct krait_buf *png = to;
    krait_buf_add(png, data, n);
    return png->failed;
}

static int paint(const struct painters *p, void *handle, struct krait_buf *png, int width, int height,
                 struct krait_err *err)
{
    void *surface = p->cairo_image_surface_create(ARGB32, width, height);
    void *cr = p->cairo_surface_status(surface) ? NULL : p->cairo_create(surface);
    const struct rectangle viewport = { 0, 0, width, height };
    int rc =
        cr ? 0 : krait_err_set(err, -ENOMEM, "out of memory for a picture of %d x %d pixels", width, height);
    if (!rc && !p->rsvg_handle_render_document(handle, cr, &viewport, NULL))
        rc = krait_err_set(err, -EIO, "librsvg cannot draw the picture");
    if (!rc && p->cairo_surface_write_to_png_stream(surface, append, png))
        rc = krait_err_set(err, png->failed ? -ENOMEM : -EIO, "cairo cannot write the picture");
    if (cr)
        p->cairo_destroy(cr);
    p->cairo_surface_destroy(surface);
    return rc;
}

int krait_png_of_svg(struct krait_buf *png, const struct krait_buf *svg, double scale, struct krait_err *err)
{
    struct painters p = { 0 };
    double width = 0, height = 0;
    int rc = load(&p, err);
    if (rc)
        return rc;
    void *handle = p.rsvg_handle_new_from_data((const uint8_t *)svg->data, svg->len, NULL);
    if (!handle || !p.rsvg_handle_get_intrinsic_size_in_pixels(handle, &width, &height))
        rc = krait_err_set(err, -EIO, "librsvg cannot read the picture");
    else if (ceil(width * scale) > SIDE_MAX || ceil(height * scale) > SIDE_MAX)
        rc = krait_err_set(
            err, -E2BIG,
            "a picture of %.0f x %.0f pixels is too large for PNG; draw fewer threads (--limit) or less depth (--depth), or draw SVG",
            width * scale, height * scale);
    else
        rc = paint(&p, handle, png, (int)ceil(width * scale), (int)ceil(height * scale), err);
    if (handle)
        p.g_object_unref(handle);
    return rc;
}
