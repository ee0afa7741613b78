/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Who waits for a revision is resumed exactly once, at the right one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "server/base/clock.h"
#include "server/pages/await.h"

struct heard {
    int calls;
    enum await_result result;
};

static void hear(void *context, enum await_result result)
{
    struct heard *h = context;
    h->calls++;
    h->result = result;
}

static void an_acknowledgement_comes_at_its_revision(void **state)
{
    struct await_list list;
    struct heard at5 = {0, 0}, at6 = {0, 0}, past = {0, 0};
    await_list_init(&list);
    await_list_publish(&list, 1, 4);
    await_list_add(&list, AWAIT_REVISION, 1, 4, 0, hear, NULL, &past);
    assert_int_equal(past.calls, 1);
    await_list_add(&list, AWAIT_REVISION, 1, 5, 0, hear, NULL, &at5);
    await_list_add(&list, AWAIT_REVISION, 1, 6, 0, hear, NULL, &at6);
    assert_int_equal(at5.calls, 0);
    await_list_publish(&list, 1, 5);
    assert_int_equal(at5.calls, 1);
    assert_int_equal(at5.result, AWAIT_DONE);
    assert_int_equal(at6.calls, 0);
    await_list_publish(&list, 1, 9);
    assert_int_equal(at6.calls, 1);
    await_list_done(&list);
    assert_int_equal(at5.calls, 1);
}

static void a_poll_wants_something_newer(void **state)
{
    struct await_list list;
    struct heard poll = {0, 0}, expired = {0, 0};
    await_list_init(&list);
    await_list_publish(&list, 1, 4);
    await_list_add(&list, AWAIT_NEWER, 0, 4, 60000, hear, NULL, &poll);
    await_list_publish(&list, 1, 4);
    assert_int_equal(poll.calls, 0);
    await_list_publish(&list, 1, 5);
    assert_int_equal(poll.calls, 1);
    int64_t before = clock_now_ms();
    await_list_add(&list, AWAIT_NEWER, 0, 5, 50, hear, NULL, &expired);
    await_list_expire(&list, before + 49);
    assert_int_equal(expired.calls, 0);
    await_list_expire(&list, clock_now_ms() + 51);
    assert_int_equal(expired.calls, 1);
    assert_int_equal(expired.result, AWAIT_DONE);
    await_list_done(&list);
}

static bool all_are_gone;

static bool is_gone(void *context)
{
    (void)context;
    return all_are_gone;
}

static void a_poll_whose_client_left_ends(void **state)
{
    struct await_list list;
    struct heard poll = {0, 0}, other = {0, 0};
    await_list_init(&list);
    await_list_add(&list, AWAIT_NEWER, 0, 4, 60000, hear, is_gone, &poll);
    await_list_add(&list, AWAIT_NEWER, 0, 4, 60000, hear, NULL, &other);
    int64_t now = clock_now_ms();
    await_list_expire(&list, now);
    assert_int_equal(poll.calls, 0);
    all_are_gone = true;
    await_list_expire(&list, now + AWAIT_LOOK_MS - 1);
    assert_int_equal(poll.calls, 0);
    await_list_expire(&list, now + AWAIT_LOOK_MS);
    assert_int_equal(poll.calls, 1);
    assert_int_equal(poll.result, AWAIT_STOPPING);
    assert_int_equal(other.calls, 0);
    all_are_gone = false;
    await_list_done(&list);
}

static void an_acknowledgement_does_not_wait_for_ever(void **state)
{
    struct await_list list;
    struct heard lost = {0, 0}, poll = {0, 0};
    await_list_init(&list);
    await_list_add(&list, AWAIT_REVISION, 1, 5, 50, hear, NULL, &lost);
    await_list_add(&list, AWAIT_NEWER, 0, 5, 50, hear, NULL, &poll);
    await_list_expire(&list, clock_now_ms() + 51);
    assert_int_equal(lost.calls, 1);
    assert_int_equal(lost.result, AWAIT_UNAVAILABLE);
    assert_int_equal(poll.result, AWAIT_DONE);
    await_list_done(&list);
    assert_int_equal(lost.calls, 1);
}

static void quiescing_ends_what_others_do_and_keeps_acknowledgements(void **state)
{
    struct await_list list;
    struct heard poll = {0, 0}, late = {0, 0}, ack = {0, 0}, forwarded = {0, 0};
    await_list_init(&list);
    await_list_add(&list, AWAIT_NEWER, 0, 0, 60000, hear, NULL, &poll);
    await_list_add(&list, AWAIT_REVISION, 1, 3, 0, hear, NULL, &ack);
    await_list_add(&list, AWAIT_FORWARDED, 1, 3, 0, hear, NULL, &forwarded);
    await_list_quiesce(&list);
    assert_int_equal(poll.result, AWAIT_STOPPING);
    assert_int_equal(forwarded.result, AWAIT_STOPPING);
    assert_int_equal(ack.calls, 0);
    await_list_add(&list, AWAIT_NEWER, 0, 0, 60000, hear, NULL, &late);
    assert_int_equal(late.result, AWAIT_STOPPING);
    await_list_publish(&list, 1, 3);
    assert_int_equal(ack.calls, 1);
    assert_int_equal(ack.result, AWAIT_DONE);
    await_list_done(&list);
}

static void a_lost_catalogue_fails_acknowledgements(void **state)
{
    struct await_list list;
    struct heard poll = {0, 0}, ack = {0, 0}, new = {0, 0};
    await_list_init(&list);
    await_list_publish(&list, 1, 2);
    await_list_add(&list, AWAIT_NEWER, 0, 2, 60000, hear, NULL, &poll);
    await_list_add(&list, AWAIT_REVISION, 1, 3, 0, hear, NULL, &ack);
    /* Written to the newer file, before the loss of the old one was noticed. */
    await_list_add(&list, AWAIT_REVISION, 2, 3, 0, hear, NULL, &new);
    await_list_fail(&list);
    assert_int_equal(ack.result, AWAIT_REPLACED);
    assert_int_equal(poll.calls, 0);
    assert_int_equal(new.calls, 0);
    await_list_done(&list);
    assert_int_equal(poll.result, AWAIT_STOPPING);
}

static void a_revision_is_one_of_its_file(void **state)
{
    struct await_list list;
    struct heard old = {0, 0}, late = {0, 0}, new = {0, 0}, poll = {0, 0}, passed = {0, 0};
    await_list_init(&list);
    await_list_publish(&list, 1, 9);
    await_list_add(&list, AWAIT_REVISION, 1, 12, 0, hear, NULL, &old);
    /* Written to the file that has just taken the place, before anybody has looked at it. */
    await_list_add(&list, AWAIT_REVISION, 2, 4, 0, hear, NULL, &new);
    assert_int_equal(new.calls, 0);
    await_list_add(&list, AWAIT_NEWER, 0, 9, 60000, hear, NULL, &poll);
    await_list_reset(&list, 2);
    assert_int_equal(old.result, AWAIT_REPLACED);
    assert_int_equal(poll.calls, 1);
    assert_int_equal(new.calls, 0);
    await_list_add(&list, AWAIT_REVISION, 1, 3, 0, hear, NULL, &late);
    await_list_publish(&list, 2, 3);
    assert_int_equal(late.result, AWAIT_REPLACED);
    assert_int_equal(new.calls, 0);
    await_list_reset(&list, 2); /* a pass had seen the file before its number was reported */
    assert_int_equal(new.calls, 0);
    await_list_publish(&list, 2, 4);
    assert_int_equal(new.calls, 1);
    assert_int_equal(new.result, AWAIT_DONE);
    await_list_add(&list, AWAIT_REVISION, 2, 4, 0, hear, NULL, &passed);
    assert_int_equal(passed.result, AWAIT_DONE);
    await_list_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_acknowledgement_comes_at_its_revision),
        cmocka_unit_test(a_poll_wants_something_newer),
        cmocka_unit_test(a_poll_whose_client_left_ends),
        cmocka_unit_test(an_acknowledgement_does_not_wait_for_ever),
        cmocka_unit_test(quiescing_ends_what_others_do_and_keeps_acknowledgements),
        cmocka_unit_test(a_revision_is_one_of_its_file),
        cmocka_unit_test(a_lost_catalogue_fails_acknowledgements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
