/* SPDX-License-Identifier: Apache-2.0 */
#include "base/xml.h"

#include <expat.h>
#include <string.h>

struct building {
    struct krait_arena *arena;
    XML_Parser parser;
    struct krait_xml **next[KRAIT_XML_DEEPEST + 1]; /* where the next element goes, by depth */
    uint32_t depth;
    int rc;
};

static const char *const *copy_attributes(struct building *b, const XML_Char **attributes)
{
    size_t count = 0;
    while (attributes[count])
        count++;
    const char **own = krait_arena_alloc(b->arena, (count + 1) * sizeof(*own));
    for (size_t i = 0; i < count && own; i++) {
        own[i] = krait_arena_strdup(b->arena, attributes[i]);
        if (!own[i])
            return NULL;
    }
    return own;
}

static void XMLCALL begin_element(void *ctx, const XML_Char *name, const XML_Char **attributes)
{
    struct building *b = ctx;
    struct krait_xml *element = KRAIT_ARENA_NEW(b->arena, struct krait_xml);
    if (b->rc)
        return;
    b->rc = b->depth == KRAIT_XML_DEEPEST ? -E2BIG : 0;
    if (element && !b->rc) {
        element->name = krait_arena_strdup(b->arena, name);
        element->line = (uint32_t)XML_GetCurrentLineNumber(b->parser);
        element->attributes = copy_attributes(b, attributes);
    }
    if (!b->rc && (!element || !element->name || !element->attributes))
        b->rc = -ENOMEM;
    if (b->rc) {
        XML_StopParser(b->parser, XML_FALSE);
        return;
    }
    *b->next[b->depth] = element;
    b->next[b->depth] = &element->next;
    b->next[++b->depth] = &element->first;
}

static void XMLCALL end_element(void *ctx, const XML_Char *name)
{
    struct building *b = ctx;
    b->depth -= !b->rc;
}

int krait_xml_read(struct krait_xml **out, struct krait_arena *arena, const char *text, size_t n,
                   uint32_t *line, struct krait_err *err)
{
    struct krait_xml *root = NULL;
    *line = 0;
    struct building building = { .arena = arena, .next = { &root } };
    if (n > KRAIT_XML_MOST)
        return krait_err_set(err, -EFBIG, "it has more than %d bytes", KRAIT_XML_MOST);
    building.parser = XML_ParserCreate(NULL);
    if (!building.parser)
        return krait_err_set(err, -ENOMEM, "out of memory");
    XML_SetUserData(building.parser, &building);
    XML_SetElementHandler(building.parser, begin_element, end_element);
    bool well = XML_Parse(building.parser, text, (int)n, XML_TRUE) == XML_STATUS_OK;
    enum XML_Error why = XML_GetErrorCode(building.parser);
    uint32_t last = (uint32_t)XML_GetCurrentLineNumber(building.parser);
    XML_ParserFree(building.parser);
    if (building.rc == -ENOMEM || (!well && why == XML_ERROR_NO_MEMORY))
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (building.rc || !well || !root) {
        *line = last;
        return krait_err_set(err, -EBADMSG, "%s",
                             building.rc ? "elements are nested too deep" : XML_ErrorString(why));
    }
    *out = root;
    return 0;
}

const char *krait_xml_get(const struct krait_xml *element, const char *name)
{
    for (size_t i = 0; element->attributes[i]; i += 2) {
        if (strcmp(element->attributes[i], name) == 0)
            return element->attributes[i + 1];
    }
    return "";
}

static const struct krait_xml *named(const struct krait_xml *element, const char *name)
{
    while (element && strcmp(element->name, name) != 0)
        element = element->next;
    return element;
}

const struct krait_xml *krait_xml_first(const struct krait_xml *element, const char *name)
{
    return named(element->first, name);
}

const struct krait_xml *krait_xml_next(const struct krait_xml *element, const char *name)
{
    return named(element->next, name);
}
