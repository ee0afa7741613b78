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
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = network_name_of_type(rows[i].type);
        if (rows[i].name == NULL)
            assert_null(name);
        else
            assert_string_equal(name, rows[i].name);
    }
}

static void test_mounts(void **state)
{
    (void)state;
    assert_string_equal(network_name_of_mount("fuse.sshfs"), "sshfs");
    assert_string_equal(network_name_of_mount("fuse.glusterfs"), "glusterfs");
    assert_string_equal(network_name_of_mount("fuse.rclone"), "rclone");
    assert_null(network_name_of_mount("fuse"));
    assert_null(network_name_of_mount("fuseblk")); /* ntfs-3g */
    assert_null(network_name_of_mount("virtiofs"));
    assert_null(network_name_of_mount("fuse.gocryptfs"));
    assert_null(network_name_of_mount("sshfs"));
}

static void test_mountinfo(void **state)
{
    static char text[] = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
                         "nonsense\n"
                         "61 22 0:45 / /srv/a\\040-\\040b rw,nosuid master:3 propagate_from:2 - "
                         "fuse.sshfs me@h:/ rw\n"
                         "62 22 0:46 / /srv/c rw - tmpfs tmpfs rw\n";
    static const struct {
        unsigned minor_number;
        const char *type;
    } rows[] = {{45, "fuse.sshfs"}, {46, "tmpfs"}, {47, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[16] = "untouched";
        FILE *file = fmemopen(text, strlen(text), "r");
        bool found = network_find_mount(file, makedev(0, rows[i].minor_number), out, sizeof out);
        fclose(file);
        assert_int_equal(found, rows[i].type != NULL);
        assert_string_equal(out, found ? rows[i].type : "untouched");
    }
}

static void test_here(void **state)
{
    (void)state;
    assert_null(network_filesystem("/proc"));
    assert_null(network_filesystem("/does/not/exist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_mounts),
        cmocka_unit_test(test_mountinfo),
        cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
