/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions from several threads at a time, while the index is built and after.
 */
#include "made_view.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <pthread.h>

static struct made *new_trace(void)
{
    struct made *made = made_new();
    for (uint32_t i = 0; i < 3; i++) {
        made->t = 1000 * i;
        made_thread(made, 10 + i);
        run(made, &(struct shape){ .step = 500, .pause = 100, .depth = 10, .losses = true }, 60000, 3 + i);
    }
    made_close(made);
    return made;
}

struct asking {
    struct opened *opened;
    uint64_t seed;
    uint32_t failed;
};

static void *ask(void *ctx)
{
    struct asking *asking = ctx;
    struct view_dice dice = { asking->seed };
    struct krait_view *view = asking->opened->view;
    for (uint32_t i = 0; i < 300; i++) {
        KRAIT_AUTO_BUF out = { 0 };
        struct krait_view_progress progress;
        const struct krait_view_query query = { view_dice(&dice) % asking->opened->trace->track_count,
                                                (uint8_t)(view_dice(&dice) % 24), view_dice(&dice) % 4 };
        asking->failed += krait_view_tile(view, &query, &out) != 0;
        krait_view_progress(view, &progress);
        asking->failed += !(progress.share >= 0 && progress.share <= 1);
        for (uint32_t text = krait_view_text_count(view); text--;)
            asking->failed += !krait_view_text(view, text);
    }
    return NULL;
}

static void ask_at_once(struct opened *opened)
{
    struct asking asking[] = { { opened, 1, 0 }, { opened, 2, 0 }, { opened, 3, 0 } };
    pthread_t threads[KRAIT_ARRAY_LEN(asking)];
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(asking); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &asking[i]), 0);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(asking); i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(asking[i].failed, 0);
    }
}

static void answers_come_while_it_is_built_and_after(void **state)
{
    struct made *made = new_trace();
    struct opened index = open_view(made, KRAIT_VIEW_NO_CACHE);
    ask_at_once(&index);
    assert_int_equal(krait_view_wait(index.view), 0);
    ask_at_once(&index);
    close_view(&index);
    made_free(made);
}

static void closing_ends_what_is_being_built(void **state)
{
    struct made *made = new_trace();
    for (uint32_t i = 0; i < 20; i++) {
        struct opened index = open_view(made, KRAIT_VIEW_NO_CACHE);
        close_view(&index);
    }
    made_free(made);
}

static void *open_and_ask(void *ctx)
{
    struct asking *asking = ctx;
    const struct made *made = (const void *)asking->opened;
    for (uint32_t i = 0; i < 6; i++) {
        struct opened index = open_view(made, 0);
        asking->failed += krait_view_wait(index.view) != 0;
        close_view(&index);
    }
    return NULL;
}

static void viewers_of_one_trace_share_its_cache(void **state)
{
    struct made *made = new_trace();
    struct asking asking[2] = { { (void *)made, 1, 0 }, { (void *)made, 2, 0 } };
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_ask, &asking[i]), 0);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(asking[i].failed, 0);
    }
    struct opened index = open_view(made, 0);
    struct krait_view_progress progress;
    krait_view_progress(index.view, &progress);
    assert_true(progress.is_cached);
    close_view(&index);
    made_free(made);
}

int main(void)
{
    setenv("HOME", "/nowhere", 1);
    unsetenv("XDG_CACHE_HOME");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_while_it_is_built_and_after),
        cmocka_unit_test(closing_ends_what_is_being_built),
        cmocka_unit_test(viewers_of_one_trace_share_its_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
