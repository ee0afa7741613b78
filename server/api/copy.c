/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* An answer has a *place* while its file is made or waits for its turn: one for the tokens of each
 * site, a few for tokens for all sites. So a client that repeats its request, or disconnects,
 * delays others at most by the answers before theirs. A complete file has no place. Until its last
 * byte is sent it counts against max_spool like uploaded lists (for a token of one site, against
 * that site's half), and as one of the few files that a site, and all sites, may have open. The
 * listener bounds how slow a client may be (reply_timeout). A copy of the catalogue counts against
 * the free space of the disk instead. */
#include "server/api/copy.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/catalogue.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/base/file.h"

#define PLACES_ALL_SITES 4u
#define PLACES_ONE_SITE  1u
/* Maximum number of files being made or sent, for which descriptors are reserved
 * (server/sockets.c): of all tokens, of all tokens for one site, of the tokens of the same site. */
#define FILES              32u
#define FILES_SITES        24u
#define FILES_ONE_SITE     4u
#define BACKUPS            2u
#define ROOM_STEP          (1u << 20)
#define ROWS_BETWEEN_LOOKS 256u /* of a site's copy, between checks whether the client has left */
#define COPY_MARK          ".sitemapd-copy-"
#define RANDOM_CHARS       6u /* of mkostemp */

const size_t copy_size = sizeof(struct copy);

/* ---- places and room ------------------------------------------------------------------- */

static bool reserve_one(atomic_uint *of, unsigned max)
{
    if (atomic_fetch_add(of, 1) < max)
        return true;
    atomic_fetch_sub(of, 1);
    return false;
}

static bool reserve_place(struct copy *copy)
{
    int64_t site_id = copy->call.request->grant.site_id;

    copy->one_site = site_id != 0;
    copy->placed = site_uses_take_own(&copy->call.app->copies_made, site_id, 1,
                                      copy->one_site ? PLACES_ONE_SITE : PLACES_ALL_SITES);
    return copy->placed;
}

bool copy_reserve_whole(struct app_context *app)
{
    return reserve_one(&app->backups_open, BACKUPS);
}

/* Counts the file among all files; for a token of one site among those of sites and of that site; a
 * copy of the catalogue among such copies. */
static bool reserve_file(struct copy *copy)
{
    struct app_context *app = copy->call.app;

    if (!reserve_one(&app->copies_open, FILES))
        return false;
    if (copy->one_site && !reserve_one(&app->copies_sites_open, FILES_SITES))
        goto none_of_sites;
    if (copy->one_site &&
        !site_uses_take_own(&app->copies, copy->call.request->grant.site_id, 1, FILES_ONE_SITE))
        goto none_of_site;
    if (copy->whole && !copy_reserve_whole(app))
        goto none_of_sites;
    copy->has_file = true;
    return true;

none_of_site:
    atomic_fetch_sub(&app->copies_sites_open, 1);
none_of_sites:
    atomic_fetch_sub(&app->copies_open, 1);
    return false;
}

static void give_file_back(struct copy *copy)
{
    struct app_context *app = copy->call.app;

    if (!copy->has_file)
        return;
    if (copy->whole)
        atomic_fetch_sub(&app->backups_open, 1);
    if (copy->one_site) {
        site_uses_give(&app->copies, copy->call.request->grant.site_id, 1);
        atomic_fetch_sub(&app->copies_sites_open, 1);
    }
    atomic_fetch_sub(&app->copies_open, 1);
    copy->has_file = false;
}

static void leave_place(struct copy *copy)
{
    if (copy->placed)
        site_uses_give(&copy->call.app->copies_made, copy->call.request->grant.site_id, 1);
    copy->placed = false;
}

static void copy_cleanup(struct call *call)
{
    struct copy *copy = (struct copy *)call;
    struct app_context *app = call->app;

    if (copy->file != NULL)
        fclose(copy->file);
    spool_room_give(&app->spool_room, call->request->grant.site_id, copy->taken);
    give_file_back(copy);
    leave_place(copy);
}

bool copy_goes_on(struct copy *copy)
{
    copy->gone = request_is_gone(copy->call.request);
    return !copy->gone && !atomic_load(&copy->call.app->stopping);
}

static bool reserve_room(struct copy *copy)
{
    if (!copy_goes_on(copy))
        return false;
    copy->full = copy->one_site && !file_has_reserve(fileno(copy->file));
    if (copy->full)
        return false;
    copy->crowded =
        !spool_room_take(&copy->call.app->spool_room, copy->call.request->grant.site_id, ROOM_STEP);
    copy->taken += copy->crowded ? 0 : ROOM_STEP;
    return !copy->crowded;
}

bool copy_room(struct copy *copy, size_t bytes)
{
    if (atomic_load(&copy->call.app->stopping))
        return false;
    copy->bytes += bytes;
    while (copy->bytes > copy->taken)
        if (!reserve_room(copy))
            return false;
    return true;
}

bool copy_write(struct copy *copy, const char *bytes, size_t len)
{
    return copy_room(copy, len) && fwrite(bytes, 1, len, copy->file) == len;
}

/* ---- the file -------------------------------------------------------------------------- */

/* A name for a file beside the database. */
static char *name_file(const struct app_context *app)
{
    char *name = NULL;

    return asprintf(&name, "%s" COPY_MARK "XXXXXX", app->database) < 0 ? NULL : name;
}

char *copy_make_file(const struct app_context *app)
{
    char *name = name_file(app);
    int fd = name != NULL ? mkostemp(name, O_CLOEXEC) : -1;

    if (fd >= 0) {
        close(fd);
        return name;
    }
    free(name);
    return NULL;
}

/* Suffixes of the files that SQLite creates beside an open database. */
static const char *const beside[] = {"-wal", "-shm", "-journal"};

void copy_remove_file(const char *name)
{
    char other[4096];

    unlink(name);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (snprintf(other, sizeof other, "%s%s", name, beside[i]) < (int)sizeof other)
            unlink(other);
}

/* Opens a file without a name, if the file system supports that, so that no crash leaves it behind.
 */
static bool open_file(struct copy *copy)
{
    char *name = name_file(copy->call.app), *folder = name != NULL ? strdup(name) : NULL;
    int fd = folder != NULL ? open(dirname(folder), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

    if (fd < 0 && name != NULL && (fd = mkostemp(name, O_CLOEXEC)) >= 0)
        unlink(name);
    free(folder);
    free(name);
    if (fd >= 0)
        copy->file = fdopen(fd, "w+");
    if (fd >= 0 && copy->file == NULL)
        close(fd);
    return copy->file != NULL;
}

static bool is_random(const char *text)
{
    for (size_t i = 0; i < RANDOM_CHARS; i++)
        if (!isalnum((unsigned char)text[i]))
            return false;
    return true;
}

/* Whether a file name is that of a copy: made by name_file; with the ending of catalogue_backup,
 * while incomplete; or with an ending of SQLite, while the copy was checked. */
static bool is_copy(const char *name, const char *database)
{
    size_t len = strlen(database), mark = strlen(COPY_MARK);

    if (strncmp(name, database, len) != 0 || strncmp(name + len, COPY_MARK, mark) != 0 ||
        !is_random(name + len + mark))
        return false;
    name += len + mark + RANDOM_CHARS;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (strcmp(name, beside[i]) == 0)
            return true;
    return *name == '\0' || (*name == '.' && is_random(name + 1) && name[1 + RANDOM_CHARS] == '\0');
}

void copies_remove_left(const char *database)
{
    const char *slash = strrchr(database, '/'), *base = slash != NULL ? slash + 1 : database;
    char *path = strdup(database);
    DIR *folder = path != NULL ? opendir(dirname(path)) : NULL;
    struct dirent *file;
    struct stat st;

    while (folder != NULL && (file = readdir(folder)) != NULL)
        if (is_copy(file->d_name, base) &&
            fstatat(dirfd(folder), file->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            unlinkat(dirfd(folder), file->d_name, 0);
    if (folder != NULL)
        closedir(folder);
    free(path);
}

static void reply_failed(struct copy *copy)
{
    struct reply *reply = &copy->call.request->reply;
    int error = errno;

    reply_done(reply);
    if (copy->gone) /* its client left */
        errors_reply_status(reply, CATALOGUE_CANCELLED);
    else if (copy->crowded)
        errors_reply_spool(reply, SPOOL_CROWDED);
    else if (atomic_load(&copy->call.app->stopping))
        errors_reply_status(reply, CATALOGUE_CANCELLED);
    else
        errors_reply_status(reply,
                            copy->full || error == ENOSPC || error == EDQUOT || error == EFBIG
                                ? CATALOGUE_NO_SPACE
                                : CATALOGUE_UNAVAILABLE);
}

static void reply_whole(struct copy *copy)
{
    struct reply *reply = &copy->call.request->reply;
    struct stat st;
    int fd = -1;

    if (fflush(copy->file) != 0 || fstat(fileno(copy->file), &st) != 0 ||
        (fd = fcntl(fileno(copy->file), F_DUPFD_CLOEXEC, 0)) < 0) {
        reply_failed(copy);
        return;
    }
    fclose(copy->file); /* the reply has the descriptor */
    copy->file = NULL;
    reply->status = 200;
    reply->content_type = copy->content_type;
    reply_file(reply, fd, (uint64_t)st.st_size);
    reply_header(reply, "Cache-Control", "no-store");
}

/* ---- lists and pages ------------------------------------------------------------------- */

/* If `make` fills the reply, the file is not sent. */
static void run(void *context)
{
    struct copy *copy = context;

    errno = 0;
    copy->gone = request_is_gone(copy->call.request); /* the client left while the request waited */
    if (copy->gone || !open_file(copy)) {
        reply_failed(copy);
    } else {
        call_look(&copy->call, copy->make);
        if (copy->call.request->reply.status == 0)
            reply_whole(copy);
        else if (copy->gone || copy->crowded || copy->full || ferror(copy->file) ||
                 atomic_load(&copy->call.app->stopping))
            reply_failed(copy);
    }
    leave_place(copy);
    request_resume(copy->call.request);
}

static enum handled begin(struct copy *copy, void (*job)(void *context))
{
    struct reply *reply = &copy->call.request->reply;

    copy->call.cleanup = copy_cleanup;
    if (reserve_place(copy) && reserve_file(copy) &&
        workers_run(copy->call.app->copiers, 0, job, copy))
        return HANDLE_LATER;
    reply_problem(
        reply, 503, "too-many-copies", NULL,
        !copy->placed
            ? "busy: an export or rendering for tokens of this scope is already being prepared; "
              "retry later"
            : "busy: too many exports, backups and renderings are being downloaded; retry later");
    reply_header(reply, "Retry-After", "10");
    return HANDLED;
}

enum handled copy_run(struct copy *copy, const char *content_type, call_work *make)
{
    copy->content_type = content_type;
    copy->make = make;
    return begin(copy, run);
}

static const char lines[] = "application/x-ndjson";

bool copy_wants_lines(const struct request *request)
{
    const char *accept = request_header(request, HEADER_ACCEPT);

    if (accept == NULL || strncasecmp(accept, lines, sizeof lines - 1) != 0)
        return false;
    accept += sizeof lines - 1;
    accept += strspn(accept, " \t");
    while (*accept == ';') { /* the parameters of the media type; with q=0 it is not acceptable */
        accept += 1 + strspn(accept + 1, " \t");
        if (strncasecmp(accept, "q=0", 3) == 0 &&
            strspn(accept + 3, ".0") == strcspn(accept + 3, " \t;,"))
            return false;
        accept += strcspn(accept, ";,");
    }
    return *accept == '\0' || *accept == ',';
}

enum handled copy_lines(struct copy *copy, call_work *make)
{
    static const char *const paging[] = {"after", "limit", "loc", "checks"};
    struct call *call = &copy->call;

    for (size_t i = 0; i < sizeof paging / sizeof *paging; i++) {
        if (call_parameter(call, paging[i]) == NULL)
            continue;
        reply_problem(&call->request->reply, 400, "malformed-parameter", paging[i],
                      "cannot be combined with application/x-ndjson, which is the whole list");
        return HANDLED;
    }
    return copy_run(copy, lines, make);
}

/* ---- the whole catalogue --------------------------------------------------------------- */

/* A row of a site was copied. */
static bool row_copied(void *context)
{
    struct copy *copy = context;

    return copy->rows++ % ROWS_BETWEEN_LOOKS != 0 || copy_goes_on(copy);
}

static bool pages_copied(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    return copy_goes_on(context);
}

/* db/ writes the copy to a named file, whose name is removed once the copy is complete. */
static void copy_catalogue(struct copy *copy)
{
    struct reply *reply = &copy->call.request->reply;
    struct catalogue *c = copy->call.app->catalogue;
    char *name = copy_make_file(copy->call.app), why[256];
    enum catalogue_status status = CATALOGUE_UNAVAILABLE;

    if (name != NULL) { /* the name must be free */
        unlink(name);
        status =
            copy->site_id != 0
                ? catalogue_site_copy(c, copy->site_id, name, row_copied, copy, why, sizeof why)
                : catalogue_backup(c, name, pages_copied, copy, why, sizeof why);
    }
    if (status == CATALOGUE_OK) {
        copy->file = fopen(name, "re");
        unlink(name);
    }
    free(name);
    if (copy->file != NULL)
        reply_whole(copy);
    else if (status == CATALOGUE_NOT_FOUND)
        errors_reply_not_found(reply, "site");
    else
        errors_reply_status(reply, status != CATALOGUE_OK ? status : CATALOGUE_UNAVAILABLE);
}

bool copy_has_space(const struct app_context *app)
{
    struct catalogue_stats stats;

    catalogue_stats_get(app->catalogue, &stats);
    return stats.disk_free_bytes == 0 ||
           stats.disk_free_bytes / 2 > stats.file_bytes + stats.wal_file_bytes;
}

static void run_whole(void *context)
{
    struct copy *copy = context;

    copy->gone = request_is_gone(copy->call.request);
    if (copy->gone)
        reply_failed(copy);
    else
        call_look(&copy->call, NULL); /* the token is still valid */
    if (copy->call.request->reply.status == 0 && !copy_has_space(copy->call.app))
        errors_reply_status(&copy->call.request->reply, CATALOGUE_NO_SPACE);
    if (copy->call.request->reply.status == 0)
        copy_catalogue(copy);
    leave_place(copy);
    request_resume(copy->call.request);
}

/* Sends a copy of the whole catalogue or of a site, which contains the hashes of tokens. */
static enum handled send_whole(struct request *request, int64_t site_id)
{
    struct copy *copy = request->state;

    if (request->grant.site_id != 0 || !grant_has_whole(&request->grant)) {
        errors_reply_rule(&request->reply, RULE_ALL_SITES, NULL, NULL);
        return HANDLED;
    }
    copy->content_type = "application/vnd.sqlite3";
    copy->whole = true;
    copy->site_id = site_id;
    return begin(copy, run_whole);
}

/* GET /v1/backup */
enum handled backup_get(void *context, struct request *request)
{
    (void)context;
    return send_whole(request, 0);
}

/* GET /v1/sites/{id}/copy */
enum handled site_copy_get(void *context, struct request *request)
{
    int64_t id = call_id(request->path_tail);

    (void)context;
    return send_whole(request, id > 0 ? id : -1);
}
