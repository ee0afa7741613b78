/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One poll of a watched sitemap: reads its record, and writes the result. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/str.h"
#include "server/rules/http/freshness.h"
#include "server/rules/lastmod.h"
#include "server/sources/child_store.h"
#include "server/sources/remote/child.h"
#include "server/sources/remote/run.h"

#define FULL_EVERY_S    (7 * 86400)
#define WRITTEN_SLACK_S 60
#define AGAIN_S         5

/* ---- the result ---------------------------------------------------------------------------- */

static void keep_validators(struct check_record *record, const struct fetch_reply *reply)
{
    const char *etag = poll_kept_header(reply, "ETag", CHECK_ETAG_MAX_BYTES);
    const char *modified = poll_kept_header(reply, "Last-Modified", CHECK_MODIFIED_MAX_BYTES);
    if (reply->status == 200 || etag != NULL)
        record->etag = etag;
    if (reply->status == 200 || modified != NULL)
        record->last_modified = modified;
}

static bool same_text(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Whether the content changed although the validators did not. */
static bool validators_lie(const struct poll *p, const struct fetch_reply *reply)
{
    const char *etag = fetch_header(reply, "ETag");
    if (p->record.etag != NULL || etag != NULL)
        return same_text(p->record.etag, etag);
    return same_text(p->record.last_modified, fetch_header(reply, "Last-Modified"));
}

static void set_mark(struct check_record *record, unsigned mark, bool set)
{
    record->marks = set ? record->marks | mark : record->marks & ~mark;
}

bool check_serves(const struct poll *p)
{
    return p->source != NULL && p->source->settings->serve && !p->splits &&
           p->remote->options.store != NULL;
}

/* The date of a copy: that of its entry, or the date that the entry is about to get; without
 * either, the date of the older copy if its content is the same. */
static int64_t copy_date(const struct poll *p, const uint64_t hash[2], const char *lastmod)
{
    const char *text = lastmod != NULL && *lastmod ? lastmod
                       : p->served != NULL         ? p->served
                                                   : p->claim;
    struct lastmod date;
    return text != NULL && lastmod_parse(text, strlen(text), p->now, &date, NULL) == RULE_OK &&
                   date.unix_seconds <= p->now
               ? date.unix_seconds
               : child_store_date(p->remote->options.store, p->record.site_id, p->record.loc, hash,
                                  p->now);
}

/* Keeps the copy of a good sitemap. `lastmod`: the date that its entry gets; NULL: it keeps its
 * own. False: the copy could not be written. */
static bool keep_copy(struct poll *p, const struct sitemap_file *file, const char *lastmod)
{
    bool kept =
        p->copy != NULL && child_copy_keep(p->copy, file->hash, copy_date(p, file->hash, lastmod));
    p->copy = NULL;
    return kept || !p->copy_begun;
}

struct settled {
    struct check_write write;
    struct claim_verdict dates;
    char remarks[SITEMAP_REMARKS_TEXT];
};

/* Applies a complete good response. */
static void apply_content(struct poll *p, const struct fetch_reply *reply,
                          const struct sitemap_file *file, struct settled *s)
{
    struct check_record *record = &s->write.record;
    struct claim_content before = {.one_lastmod = record->one_lastmod};
    struct claim_content content = {.one_lastmod = file->one_lastmod, .stamp = file->stamp};
    struct claim_dates dates = {
        .claim = p->source != NULL && p->source->claims_are_now ? NULL : p->claim,
        .newest = *file->newest_lastmod ? file->newest_lastmod : NULL,
        .served = p->served,
    };
    memcpy(before.hash, record->hash, sizeof before.hash);
    memcpy(before.dateless, record->dateless, sizeof before.dateless);
    memcpy(content.hash, file->hash, sizeof content.hash);
    memcpy(content.dateless, file->dateless, sizeof content.dateless);
    freshness_modified_at(fetch_header(reply, "Last-Modified"), fetch_header(reply, "Date"), p->now,
                          &dates.modified_at);
    claim_check(&before, &content, &dates, p->now, &s->dates);
    bool moved = s->dates.changed;
    if (moved && !p->conditional && validators_lie(p, reply))
        set_mark(record, CHECK_VALIDATORS_LIE, true);
    memcpy(record->hash, file->hash, sizeof record->hash);
    memcpy(record->dateless, file->dateless, sizeof record->dateless);
    record->urls = file->urls;
    record->bytes = file->bytes;
    record->one_lastmod = file->one_lastmod;
    set_mark(record, CHECK_FEED, file->kind == SITEMAP_FILE_FEED);
    record->newest_lastmod = dates.newest;
    record->full_at = p->now;
    record->changed_at = moved ? p->now : record->changed_at;
    sitemap_remarks_write(&file->remarks, s->remarks);
    record->remarks = *s->remarks ? s->remarks : NULL;
    if (s->dates.first &&
        p->source != NULL) /* set it even if the date stays: an undo may change it meanwhile */
        s->write.lastmod_from = p->served;
    /* The date of a registered entry stays until the content changes. */
    if (*s->dates.lastmod && !p->has_digest && (p->source != NULL || moved)) {
        s->write.lastmod_from = p->served;
        s->write.lastmod_to = s->dates.lastmod;
    }
}

/* The same for a sitemap that was split: its urlset's pages date it. */
static void apply_split(struct poll *p, const struct sitemap_file *file, struct settled *s)
{
    struct check_record *record = &s->write.record;
    s->dates.first = (record->hash[0] | record->hash[1]) == 0;
    s->dates.changed = memcmp(record->hash, file->hash, sizeof record->hash) != 0;
    memcpy(record->hash, file->hash, sizeof record->hash);
    memcpy(record->dateless, file->hash, sizeof record->dateless);
    record->urls = file->urls;
    record->bytes = file->bytes;
    record->one_lastmod = false;
    set_mark(record, CHECK_FEED, false);
    record->newest_lastmod = record->remarks = NULL;
    record->full_at = p->now;
    record->changed_at = s->dates.changed ? p->now : record->changed_at;
}

/* Requests a poll of its list, after this result is in the catalogue. */
static void request_list(struct poll *p)
{
    if (p->source == NULL)
        return;
    p->source->news = true;
    p->source->news_in = p->remote->batch_number;
}

/* If the sitemap was split, or is no longer split, its entry changes: polls its list. */
static void record_split(struct poll *p, struct check_record *record)
{
    bool is = split_was(p);
    if (is == ((record->marks & CHECK_SPLIT) != 0))
        return;
    set_mark(record, CHECK_SPLIT, is);
    request_list(p);
}

/* Whether the registered date changed since the last poll, but the content did not. */
static bool is_unfounded(const struct poll *p, const struct check_record *before, bool changed)
{
    return p->source == NULL && !changed && p->served != NULL && !p->has_digest &&
           before->good_at > 0 && p->entry_changed_at > before->checked_at + WRITTEN_SLACK_S;
}

/* Whether somebody else wrote the entry since the last poll. Polls write no entry that has a digest
 * or is stale; otherwise the last poll itself may have written it a little later. */
static bool is_written(const struct poll *p, const struct check_record *before)
{
    bool polls_write = !p->has_digest && !(before->marks & CHECK_DATE_STALE);
    return p->entry_changed_at >= before->checked_at + (polls_write ? WRITTEN_SLACK_S : 0);
}

/* A date is stale from a change of the content that must not change the date, until a poll dates
 * the entry or its owner writes it. */
static void mark_stale(const struct poll *p, const struct check_record *before, struct settled *s)
{
    bool moves = s->write.lastmod_to != NULL && !p->held;
    bool wanted = s->dates.changed && *s->dates.lastmod && p->held;
    if (p->served == NULL || moves || is_written(p, before))
        set_mark(&s->write.record, CHECK_DATE_STALE, false);
    else if (wanted)
        set_mark(&s->write.record, CHECK_DATE_STALE, true);
}

/* False: new content could not be copied. Then the result must not be stored: crawlers would see a
 * new date in the index, and get the older copy. */
static bool settle_good(struct poll *p, const struct child_verdict *v,
                        const struct fetch_reply *reply, const struct sitemap_file *file,
                        struct settled *s)
{
    struct check_record *record = &s->write.record;
    const struct check_record before = p->record;
    struct interval_bounds bounds = run_bounds(p->remote);
    if (!v->same && split_was(p))
        apply_split(p, file, s);
    else if (!v->same)
        apply_content(p, reply, file, s);
    if (!v->same && !split_was(p) && !keep_copy(p, file, s->write.lastmod_to) && s->dates.changed)
        return false;
    if (!v->same)
        record_split(p, record);
    keep_validators(record, reply);
    bool changed = s->dates.changed;
    if (is_unfounded(p, &before, changed))
        set_mark(record, CHECK_LASTMOD_UNFOUNDED, true);
    else if (changed)
        set_mark(record, CHECK_LASTMOD_UNFOUNDED, false);
    mark_stale(p, &before, s);
    set_mark(record, CHECK_CLAIMS_ARE_NOW, p->source != NULL && p->source->claims_are_now);
    set_mark(record, CHECK_REDIRECTED, p->hops > 0);
    if (record->marks & CHECK_DROPPED) {
        set_mark(record, CHECK_DROPPED, false);
        request_list(p);
    }
    record->good_at = p->now;
    record->failures = 0;
    record->problem = NULL;
    record->detail = v->same && before.problem == NULL ? before.detail : split_describe_dropped(p);
    record->line = 0;
    record->interval_s = s->dates.first ? interval_first(bounds)
                                        : interval_next(record->interval_s, changed, bounds);
    int64_t fresh =
        freshness_remaining(fetch_header(reply, "Cache-Control"), fetch_header(reply, "Age"));
    if (fresh > (int64_t)bounds.max_s)
        fresh = bounds.max_s;
    if (fresh > (int64_t)record->interval_s)
        record->interval_s = (uint32_t)fresh;
    if (record->marks & CHECK_VALIDATORS_LIE)
        record->interval_s = interval_liar(record->interval_s, bounds);
    return true;
}

static bool is_same_trouble(enum check_state a, enum check_state b)
{
    return a == b || (interval_is_none(a) && interval_is_none(b));
}

/* Names the origin's URL in the detail, since the served URL returns this server's copy. */
static const char *append_origin(struct poll *p, const char *detail)
{
    struct url loc;
    if (!url_split(p->record.loc, strlen(p->record.loc), &loc) || url_same_origin(&loc, &p->url))
        return detail;
    snprintf(p->detail, sizeof p->detail, "%.250s; fetched from %.*s", detail,
             (int)p->url.origin_len, p->url.text);
    return p->detail;
}

static uint32_t settle_bad(struct poll *p, const struct child_verdict *v,
                           struct check_record *record)
{
    struct interval_bounds bounds = run_bounds(p->remote);
    record->failures = is_same_trouble(p->record.state, v->state) ? record->failures + 1 : 1;
    record->problem = v->problem;
    record->detail = *v->detail ? append_origin(p, v->detail) : NULL;
    record->line = v->line;
    int64_t since = record->failures == 1 ? p->now : record->since;
    if (p->source != NULL && interval_is_none(v->state) && !(record->marks & CHECK_DROPPED) &&
        interval_drops(record->failures, since, p->now,
                       p->source->settings->drop_after_ms / 1000)) {
        set_mark(record, CHECK_DROPPED, true);
        request_list(p);
    }
    return interval_trouble(v->state, record->failures, bounds);
}

static bool copy_record(struct check_record *to, const struct check_record *from,
                        struct record_list *keep)
{
    bool failed = false;
    *to = *from;
    const char **const texts[] = {&to->loc,     &to->source,        &to->etag,
                                  &to->remarks, &to->last_modified, &to->newest_lastmod,
                                  &to->problem, &to->detail};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = record_keep(keep, *texts[i], &failed);
    return !failed;
}

static void report_free(struct check_report *report)
{
    if (report != NULL)
        record_list_done(&report->texts);
    free(report);
}

/* Keeps what the result is to show once it is stored. False: out of memory. */
static bool keep_report(struct poll *p, const struct settled *s, struct check_report **out)
{
    const struct check_record *record = &s->write.record;
    bool split = s->dates.changed && split_was(p);
    bool is_stale = (record->marks & CHECK_DATE_STALE) != 0;
    bool was_stale = (p->record.marks & CHECK_DATE_STALE) != 0, failed = false;
    *out = NULL;
    if (record->state == p->record.state && is_stale == was_stale && !split)
        return true;
    struct check_report *report = calloc(1, sizeof *report);
    if (report == NULL)
        return false;
    struct str text = STR_INIT;
    if (split)
        str_append_format(&text, "%s: its %" PRIu64 " page URLs are now a urlset: %s%s%s",
                          record->loc, record->urls, split_did(p),
                          split_describe_dropped(p) != NULL ? "; " : "",
                          split_describe_dropped(p) != NULL ? split_describe_dropped(p) : "");
    report->before = p->record.state;
    report->was_stale = was_stale;
    report->site = record_keep(&report->texts, p->site->origin, &failed);
    report->split = split ? record_keep(&report->texts, str_text(&text), &failed) : NULL;
    failed = !copy_record(&report->record, record, &report->texts) || failed || text.failed;
    str_done(&text);
    if (failed)
        report_free(report);
    else
        *out = report;
    return !failed;
}

static void show_report(struct remote *r, const struct check_report *report)
{
    const struct check_record *record = &report->record;
    struct remote_source *source = run_source(r, record->source);
    const char *name = *record->source != '\0' ? record->source : NULL;
    const struct remote_moved moved = {.record = record,
                                       .site = report->site,
                                       .before = report->before,
                                       .was_stale = report->was_stale};
    bool is_stale = (record->marks & CHECK_DATE_STALE) != 0;
    if (report->split != NULL)
        remote_report(r, 2, "source-file-split", name, "%s", report->split);
    if (r->options.moved != NULL &&
        (record->state != report->before || is_stale != report->was_stale))
        r->options.moved(r->options.moved_context, &moved);
    if (record->state == report->before)
        return;
    if (name == NULL || source != NULL) /* else it is counted no longer */
        watch_count_moved(r, source, record->site_id, (int)report->before, record->state);
    if (record->state == CHECK_GOOD && report->before != CHECK_NEW)
        remote_report(r, 2, "check-recovered", name, "%s is good again", record->loc);
    else if (record->state != CHECK_GOOD)
        remote_report(r, 1, "check-problem", name, "%s is %s (%s): %s", record->loc,
                      check_state_word(record->state),
                      record->problem != NULL ? record->problem : "",
                      record->detail != NULL ? record->detail : "");
}

void check_report_all(struct remote *r, struct check_report **reports, bool stored)
{
    while (*reports != NULL) {
        struct check_report *report = *reports;
        *reports = report->next;
        if (stored)
            show_report(r, report);
        report_free(report);
    }
}

static void add_report(struct remote *r, struct check_report *report)
{
    struct check_report **end = &r->reports;
    while (*end != NULL)
        end = &(*end)->next;
    *end = report;
}

/* Reads the entry's date, and the date that the list claims. */
static enum catalogue_status read_entry(struct poll *p, struct catalogue_view *view)
{
    struct entry_record entry;
    struct source_file file;
    bool found = false, failed = false;
    enum catalogue_status status =
        catalogue_view_entry_by_loc(view, p->record.site_id, p->record.loc, &entry);
    if (status == CATALOGUE_OK) {
        p->served = record_keep(&p->texts, entry.lastmod, &failed);
        p->has_digest = entry.digest != NULL;
        p->held =
            p->has_digest || (p->source != NULL && !same_text(entry.source, p->record.source)) ||
            registry_is_frozen(p->registry, registry_index_by_id(p->registry, entry.index_id));
        p->entry_changed_at = entry.changed_at;
        entry_record_done(&entry);
    } else if (status != CATALOGUE_NOT_FOUND) {
        return status;
    }
    if (p->source != NULL) {
        status = catalogue_view_source_file(view, p->record.source, p->record.loc, &file, &found);
        if (status != CATALOGUE_OK)
            return status;
        p->claim = found ? record_keep(&p->texts, file.claim, &failed) : NULL;
    }
    p->entry_read = !failed;
    return failed ? CATALOGUE_NO_MEMORY : CATALOGUE_OK;
}

/* A 304 changes nothing in the entry of a source's sitemap, so that entry is read only after
 * another response, or before if a caller waits. False: it cannot be read, or somebody wrote it
 * since the poll began, and a later poll must see that date. */
static bool read_entry_late(struct poll *p)
{
    struct catalogue_view *view;
    enum catalogue_status status = catalogue_view_begin(p->remote->catalogue, &view);
    if (status == CATALOGUE_OK) {
        status = read_entry(p, view);
        catalogue_view_end(view);
    }
    return status == CATALOGUE_OK &&
           (p->entry_changed_at < p->now || p->entry_changed_at > run_now(p->remote));
}

/* Discards this poll; the sitemap is polled again soon. */
static void requeue(struct poll *p, uint32_t wait_s)
{
    run_enqueue(p->remote, p->host, p->record.site_id,
                (struct due){p->record.id, (uint32_t)p->now + wait_s, p->record.interval_s});
}

/* A poll only for a copy that found the known content changes nothing in the catalogue, nor does
 * one that found nothing good, which is known, or is for the node that polls by schedule to find
 * out. (In a shared catalogue each result would be a write on all nodes.) False: settle it like any
 * other poll. */
static bool settle_copy(struct poll *p, const struct child_verdict *v, struct remote *r,
                        const struct fetch_reply *reply, const struct sitemap_file *file)
{
    bool good = v->state == CHECK_GOOD && file != NULL;
    bool known = good && p->record.state == CHECK_GOOD && p->record.hash[0] == file->hash[0] &&
                 p->record.hash[1] == file->hash[1];
    bool news = good ? !known : p->record.state == CHECK_GOOD && r->leads;
    if (p->ask == NULL || p->ask->copied == NULL || news)
        return false;
    if (known)
        keep_copy(p, file, NULL);
    remote_request_fail(p->ask, "");
    p->ask = NULL;
    poll_count(r, child_result(v, false), reply->got_bytes, clock_now_ms() - p->began_ms);
    run_enqueue(r, p->host, p->record.site_id,
                (struct due){p->record.id, (uint32_t)p->record.next_at, p->record.interval_s});
    return true;
}

void check_settle(struct poll *p, const struct child_verdict *v, const struct fetch_reply *reply,
                  const struct sitemap_file *file)
{
    struct remote *r = p->remote;
    if (settle_copy(p, v, r, reply, file))
        return;
    struct settled s = {
        .write = {.kind = CHECK_RESULT, .record = p->record, .full_from = p->record.full_at}};
    struct check_record *record = &s.write.record;
    uint32_t wait;
    if (v->state == CHECK_GOOD && !v->same && !split_was(p) && !p->entry_read &&
        !read_entry_late(p)) {
        requeue(p, AGAIN_S);
        return;
    }
    record->state = v->state;
    record->status = reply->status;
    record->checked_at = p->now;
    if (v->state == CHECK_GOOD) {
        if (!settle_good(p, v, reply, file, &s)) {
            poll_count(r, child_result(v, false), reply->got_bytes, clock_now_ms() - p->began_ms);
            if (p->ask != NULL)
                remote_request_fail(p->ask, "it has changed, but its copy cannot be written");
            p->ask = NULL;
            requeue(p, interval_trouble(CHECK_BROKEN, 1, run_bounds(r)));
            return;
        }
        wait = record->interval_s;
        if (public_check_differs(p, record)) {
            uint32_t trouble = interval_trouble(record->state, record->failures, run_bounds(r));
            wait = trouble < wait ? trouble : wait;
        }
    } else {
        wait = settle_bad(p, v, record);
    }
    wait = split_wait(p, reply->got_bytes, wait);
    if (!is_same_trouble(p->record.state, record->state))
        record->since = p->now;
    double stretched =
        run_stretch(r, p->host, p->record.site_id) * interval_jitter(wait, run_chance(r));
    record->next_at = interval_together(p->now + (int64_t)stretched, wait);
    poll_count(r, child_result(v, s.dates.changed), reply->got_bytes, clock_now_ms() - p->began_ms);
    r->batch_is_news = r->batch_is_news || record->state != CHECK_GOOD ||
                       p->record.state != CHECK_GOOD || s.dates.changed;
    struct check_report *report;
    if (keep_report(p, &s, &report) && run_write(r, &s.write)) {
        if (report != NULL)
            add_report(r, report);
    } else {
        report_free(report);
        r->load = true; /* load it again from the catalogue, and poll it again */
        if (p->ask != NULL)
            remote_request_fail(p->ask, "out of memory");
        p->ask = NULL;
    }
    if (p->ask != NULL && p->ask->copied != NULL) { /* the copy exists */
        remote_request_fail(p->ask, "");
        p->ask = NULL;
    }
    if (p->ask != NULL) {
        p->ask->next = r->waiting;
        r->waiting = p->ask;
        p->ask->check_id = record->id;
    }
    run_enqueue(r, p->host, p->record.site_id,
                (struct due){record->id, (uint32_t)record->next_at, record->interval_s});
}

/* ---- beginning ------------------------------------------------------------------------------ */

static bool keep_record(struct poll *p, const struct check_record *from)
{
    return copy_record(&p->record, from, &p->texts);
}

/* Copies the hosts whose pages it may list. */
static bool copy_hosts(struct poll *p)
{
    const struct registry_site *site = p->site;
    size_t count = 0;
    p->hosts = malloc((1 + site->alias_host_count + site->cross_host_count) * sizeof *p->hosts);
    if (p->hosts == NULL)
        return false;
    p->hosts[count++] = site->origin + site->origin_url.host_at;
    for (size_t i = 0; i < site->alias_host_count; i++)
        p->hosts[count++] = site->alias_hosts[i];
    for (size_t i = 0; i < site->cross_host_count; i++)
        p->hosts[count++] = site->cross_hosts[i];
    return true;
}

static size_t of_site(const struct remote *r, int64_t site_id)
{
    size_t count = 0;
    for (const struct poll *p = r->polls; p != NULL; p = p->next)
        count += !p->list && p->record.site_id == site_id;
    return count;
}

/* Whether there is a copy of the known content, if its source serves copies. */
static bool has_copy(const struct poll *p)
{
    return !check_serves(p) || child_store_has(p->remote->options.store, p->record.site_id,
                                               p->record.loc, p->record.hash);
}

/* Whether the host map changed since the sitemap was read. */
static bool map_has_changed(const struct poll *p)
{
    int64_t since = p->source != NULL ? p->source->mapped_at : 0;
    return since != 0 && p->record.full_at <= since;
}

/* Whether to send a conditional request: it has validators, and was read completely not long ago.
 */
static bool is_conditional(const struct poll *p)
{
    const struct check_record *k = &p->record;
    return k->state == CHECK_GOOD && split_is_as_kept(p) && has_copy(p) &&
           !(k->marks & CHECK_VALIDATORS_LIE) && p->now - k->full_at < FULL_EVERY_S &&
           p->now >= k->full_at && !map_has_changed(p) &&
           (k->etag != NULL || k->last_modified != NULL);
}

/* NOT_FOUND: it is no longer watched. BUSY: the site would have more polls under way, with this
 * one, than places were free: several sites with slow hosts leave some to others. */
static enum catalogue_status read_child(struct poll *p, struct catalogue_view *view, int64_t id,
                                        bool asked)
{
    struct check_record record;
    enum catalogue_status status = catalogue_view_registry(view, &p->registry);
    if (status == CATALOGUE_OK)
        status = catalogue_view_check(view, id, &record);
    if (status != CATALOGUE_OK)
        return status;
    if (!keep_record(p, &record))
        return CATALOGUE_NO_MEMORY;
    if (p->record.since > p->now) /* the clock was set back */
        p->record.since = p->now;
    p->site = registry_site_by_id(p->registry, p->record.site_id);
    p->source = run_source(p->remote, p->record.source);
    bool wanted = *p->record.source != '\0' ? p->source != NULL && p->source->settings->check
                                            : p->site != NULL && p->site->check;
    if (p->site == NULL)
        return CATALOGUE_CONFLICT;
    if (!wanted || !run_request_url(p->source, p->record.loc, &p->url))
        return CATALOGUE_NOT_FOUND;
    if (!site_has_room(of_site(p->remote, p->record.site_id) - 1, p->remote->polling - 1, 1,
                       RUN_TRANSFERS)) /* this poll is counted in both */
        return CATALOGUE_BUSY;
    p->splits = split_can(p);
    if (!copy_hosts(p))
        return CATALOGUE_NO_MEMORY;
    return !asked && p->source != NULL && is_conditional(p) && !(p->record.marks & CHECK_DATE_STALE)
               ? CATALOGUE_OK
               : read_entry(p, view);
}

static const char not_now[] =
    "the sitemap cannot be polled now: out of memory, or the catalogue cannot be read or is busy";
const char check_site_removed[] = "the site of the sitemap was removed";

bool check_begin(struct remote *r, struct remote_host *host, struct due due,
                 struct remote_ask *asked, const char **why)
{
    struct catalogue_view *view = NULL;
    struct poll *p = poll_new(r, host);
    enum catalogue_status status =
        p != NULL ? catalogue_view_begin(r->catalogue, &view) : CATALOGUE_NO_MEMORY;
    if (status == CATALOGUE_OK) {
        status = read_child(p, view, due.id, asked != NULL);
        catalogue_view_end(view);
    }
    *why = status == CATALOGUE_CONFLICT                              ? check_site_removed
           : status == CATALOGUE_OK || status == CATALOGUE_NOT_FOUND ? NULL
                                                                     : not_now;
    const char *put_off = status == CATALOGUE_OK ? split_requeue(p, asked != NULL) : NULL;
    if (put_off != NULL) {
        *why = asked != NULL ? put_off : NULL;
    } else if (status == CATALOGUE_OK) {
        const struct check_record *k = &p->record;
        bool whole = !is_conditional(p);
        poll_begin_span(p, asked);
        poll_headers(p, whole ? NULL : k->etag, whole ? NULL : k->last_modified);
        *why = poll_request(p) ? NULL : not_now;
    }
    if (status != CATALOGUE_OK || put_off != NULL || *why != NULL) {
        if (p != NULL)
            poll_free(p);
        return false;
    }
    poll_enter_host(p);
    p->ask = p->splits ? NULL : asked;
    if (asked != NULL && p->splits) /* a split takes too long for the caller to wait */
        remote_request_answer(asked, &p->record, "");
    return true;
}
