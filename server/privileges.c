/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Switches to the configured user, and drops capabilities. */
#include "server/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/process.h"
#include "server/log/log.h"

static void make_folder(const char *database, const struct passwd *who)
{
    char *copy = strdup(database);
    const char *folder = copy == NULL ? NULL : dirname(copy);

    /* If the folder cannot be created, or belongs to another user, the catalogue reports that. */
    if (folder != NULL && mkdir(folder, 0700) == 0) {
        /* If that user owns the parent folder, they may have put a symbolic link here meanwhile. */
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fchown(fd, who->pw_uid, who->pw_gid) != 0)
            rmdir(folder);
        if (fd >= 0)
            close(fd);
    }
    free(copy);
}

static bool become(const struct passwd *who)
{
    return initgroups(who->pw_name, who->pw_gid) == 0 &&
           setresgid(who->pw_gid, who->pw_gid, who->pw_gid) == 0 &&
           setresuid(who->pw_uid, who->pw_uid, who->pw_uid) == 0;
}

/* Whether the process can no longer get its former rights back. */
static bool is_for_good(const struct passwd *who)
{
    uid_t real, effective, saved;

    return getresuid(&real, &effective, &saved) == 0 && real == who->pw_uid &&
           effective == who->pw_uid && saved == who->pw_uid && setuid(0) != 0 && seteuid(0) != 0;
}

/* A unit may grant capabilities to bind a low port (AmbientCapabilities=), which are not needed any
 * more. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    syscall(SYS_capset, &header, none);
}

static bool become_user(const char *user, const char *database)
{
    const struct passwd *who = process_find_user(user);

    if (who == NULL) {
        log_failure(user, "%s", errno == 0 ? "user not found" : strerror(errno));
        return false;
    }
    if (who->pw_uid == 0) {
        log_failure(user, "is root; name an unprivileged user, such as user = sitemapd");
        return false;
    }
    if (geteuid() != 0) {
        if (geteuid() == who->pw_uid)
            return true;
        log_failure(user, "permission denied: only root can switch to another user");
        return false;
    }
    make_folder(database, who);
    if (!become(who)) {
        log_failure(user, "cannot switch to this user: %s", strerror(errno));
        return false;
    }
    if (!is_for_good(who)) {
        log_failure(user, "root privileges could be regained, so the server does not start");
        return false;
    }
    return true;
}

bool privileges_drop(const char *user, const char *database)
{
    if (user != NULL && !become_user(user, database))
        return false;
    if (geteuid() != 0)
        drop_capabilities();
    else if (getpid() != 1)
        log_event(LOG_LEVEL_WARNING, "runs-as-root",
                  "the server runs as root: set a user to switch to (user = sitemapd in [server], "
                  "or --user); only the catalogue's folder and the access log's need to belong to "
                  "that user");
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return true;
}

void privileges_hide_memory(void)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
