/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "db/file/filesystem.h"

static void test_types(void **state)
{
    static const struct {
        unsigned long type;
        const char *name;
    } rows[] = {
        {0x6969, "NFS"},
        {0x517b, "SMB"},
        {0xff534d42, "CIFS"},
        {0xfe534d42, "SMB2"},
        {0x01021997, "9P"},
        {0x5346414f, "AFS"},
        {0x00c36400, "Ceph"},
        {0x0bd00bd0, "Lustre"},
        {0xef53, NULL},
        {0x58465342, NULL},
        {0x9123683e, NULL},
        {0x01021994, NULL},
        {0x794c7630, NULL},
        {0x65735546, NULL},
        {0x2fc12fc1, NULL},
        {0, NULL},
        {(unsigned long)(int)0xfe534d42, "SMB2"}, /* sign-extended */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = network_name(rows[i].type, 0, NULL);
        if (rows[i].name == NULL)
            assert_null(name);
        else
            assert_string_equal(name, rows[i].name);
    }
}

static void test_mounts(void **state)
{
    static char text[] = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
                         "nonsense\n"
                         "61 22 0:45 / /srv/a\\040-\\040b rw,nosuid master:3 propagate_from:2 - "
                         "fuse.sshfs me@h:/ rw\n"
                         "62 22 0:46 / /srv/c rw - tmpfs tmpfs rw\n"
                         "63 22 0:48 / /srv/d rw - fuse.glusterfs a rw\n"
                         "64 22 0:49 / /srv/d rw - fuse.rclone a rw\n"
                         "65 22 0:50 / /srv/d rw - fuse a rw\n"
                         "66 22 0:51 / /srv/d rw - fuseblk a rw\n" /* ntfs-3g */
                         "67 22 0:52 / /srv/d rw - virtiofs a rw\n"
                         "68 22 0:53 / /srv/d rw - fuse.gocryptfs a rw\n"
                         "69 22 0:54 / /srv/d rw - sshfs a rw\n";
    static const struct {
        unsigned minor_number;
        const char *name;
    } rows[] = {{45, "sshfs"}, {46, NULL}, {47, NULL}, {48, "glusterfs"}, {49, "rclone"},
                {50, NULL},    {51, NULL}, {52, NULL}, {53, NULL},        {54, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *file = fmemopen(text, strlen(text), "r");
        const char *name = network_name(0x65735546, makedev(0, rows[i].minor_number), file);
        fclose(file);
        if (rows[i].name == NULL)
            assert_null(name);
        else
            assert_string_equal(name, rows[i].name);
    }
}

static void test_here(void **state)
{
    assert_null(network_filesystem("/proc"));
    assert_null(network_filesystem("/does/not/exist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_mounts),
        cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
