/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Recognises network file systems by statfs(2), and measures free space. */
#include "db/file/filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "server/base/file.h"

/* FUSE mounts are local (ntfs-3g, virtiofs, an encrypted folder) or remote: the mount's type shows
 * which. */
#define FUSE_TYPE 0x65735546UL

static const char *name_of_type(unsigned long type)
{
    static const struct {
        unsigned long type;
        const char *name;
    } known[] = {
        {0x6969, "NFS"},       {0x517b, "SMB"},       {0xff534d42, "CIFS"},
        {0xfe534d42, "SMB2"},  {0x01021997, "9P"},    {0x5346414f, "AFS"},
        {0x6b414653, "AFS"},   {0x00c36400, "Ceph"},  {0x0bd00bd0, "Lustre"},
        {0x73757245, "Coda"},  {0x564c, "NCP"},       {0x01161970, "GFS2"},
        {0x7461636f, "OCFS2"}, {0x47504653, "GPFS"},  {0x19830326, "BeeGFS"},
        {0xaad7aaea, "PanFS"}, {0x20030528, "PVFS2"}, {0x786f4256, "VirtualBox folder"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == type)
            return known[i].name;
    return NULL;
}

static const char *name_of_mount(const char *mount_type)
{
    static const char *const known[] = {"sshfs",  "glusterfs", "s3fs",   "rclone",  "davfs2",
                                        "davfs",  "gcsfuse",   "goofys", "juicefs", "ceph",
                                        "cephfs", "mount-s3",  "cifs",   "nfs"};
    if (strncmp(mount_type, "fuse.", 5) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(mount_type + 5, known[i]) == 0)
            return known[i];
    return NULL;
}

static bool find_mount(FILE *mountinfo, dev_t device, char *out, size_t size)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;

    while (!found && getline(&line, &room, mountinfo) > 0) {
        unsigned major_number, minor_number;
        const char *type = strstr(line, " - ");
        if (type == NULL || sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) != 2 ||
            makedev(major_number, minor_number) != device)
            continue;
        size_t len = strcspn(type + 3, " \n");
        found = len < size;
        if (found)
            snprintf(out, size, "%.*s", (int)len, type + 3);
    }
    free(line);
    return found;
}

const char *network_name(unsigned long type, dev_t device, FILE *mountinfo)
{
    char mount[64];

    /* f_type is signed on some platforms: compare the low 32 bits. */
    type &= 0xffffffffUL;
    if (type != FUSE_TYPE)
        return name_of_type(type);
    return mountinfo != NULL && find_mount(mountinfo, device, mount, sizeof mount)
               ? name_of_mount(mount)
               : NULL;
}

const char *network_filesystem(const char *path)
{
    struct statfs fs;
    struct stat st;

    if (statfs(path, &fs) != 0 || stat(path, &st) != 0)
        return NULL;
    bool fuse = (unsigned long)fs.f_type == FUSE_TYPE;
    FILE *mountinfo = fuse ? fopen("/proc/self/mountinfo", "re") : NULL;
    const char *name = network_name((unsigned long)fs.f_type, st.st_dev, mountinfo);
    if (mountinfo != NULL)
        fclose(mountinfo);
    return name;
}

bool file_identity_read(const char *path, struct file_identity *out)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    *out = (struct file_identity){st.st_dev, st.st_ino};
    return true;
}

bool file_identity_equal(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode;
}

bool file_is_empty(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size == 0;
}

bool file_identity_holds(const char *path, const struct file_identity *identity)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_dev == identity->device && st.st_ino == identity->inode &&
           st.st_size > 0;
}

bool filesystem_is_read_only(const char *path)
{
    struct statvfs fs;

    return statvfs(path, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0;
}

#define PATH_BYTES 4096

static uint64_t size_of(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 ? (uint64_t)file.st_size : 0;
}

void space_refresh(struct space *s, const char *path, int64_t now_ms)
{
    char wal[PATH_BYTES + 8];
    struct statvfs disk;

    if (s->looked_ms != 0 && now_ms < s->looked_ms + SPACE_LOOK_MS)
        return;
    s->looked_ms = now_ms;
    atomic_store(&s->file_bytes, size_of(path));
    if (strlen(path) < PATH_BYTES) {
        snprintf(wal, sizeof wal, "%s-wal", path);
        atomic_store(&s->wal_bytes, size_of(wal));
    }
    if (statvfs(path, &disk) == 0) {
        atomic_store(&s->disk_bytes, (uint64_t)disk.f_blocks * disk.f_frsize);
        atomic_store(&s->free_bytes, (uint64_t)disk.f_bavail * disk.f_frsize);
    }
}

bool space_is_short(const char *path, uint64_t file_bytes, uint64_t log_bytes)
{
    uint64_t now = size_of(path), growth = file_bytes > now ? file_bytes - now : 0;
    struct statvfs disk;

    return statvfs(path, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize <
               file_reserve_of((uint64_t)disk.f_blocks * disk.f_frsize) / 2 + growth + log_bytes;
}
