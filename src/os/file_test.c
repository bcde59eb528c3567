// SPDX-License-Identifier: MIT
/* Files: where the code stands, whole files within a limit, names in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cmocka.h>

#include "os/os_testing.h"

static char place[] = "/tmp/softndk-file-XXXXXX";

static const char *at(const char *name)
{
    static char path[sizeof place + 80];

    snprintf(path, sizeof path, "%s/%s", place, name);
    return path;
}

static void put(const char *name, const char *text, size_t length)
{
    FILE *f = fopen(at(name), "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

static void the_module_is_this_program(void **state)
{
    char dir[1024], self[1024], tight[4];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)state;
    assert_true(n > 0);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    assert_int_equal(os_module_dir(dir, sizeof dir), 0);
    assert_string_equal(dir, self);
    assert_int_equal(os_module_dir(tight, sizeof tight), -ENAMETOOLONG);
}

static void a_file_is_read_whole_or_not(void **state)
{
    char *text = NULL;
    size_t length = 99;

    (void)state;
    put("five", "a\0b\nc", 5);
    assert_int_equal(os_file_read(at("five"), 5, &text, &length), 0);
    assert_int_equal(length, 5);
    assert_memory_equal(text, "a\0b\nc", 6);
    free(text);
    assert_int_equal(os_file_read(at("five"), 4, &text, &length), -EFBIG);
    put("empty", "", 0);
    assert_int_equal(os_file_read(at("empty"), 0, &text, &length), 0);
    assert_int_equal(length, 0);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(os_file_read(at("none"), 5, &text, &length), -ENOENT);
    assert_int_equal(os_file_read(place, 5, &text, &length), -EINVAL);
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    assert_int_equal(os_file_read(at("fifo"), 5, &text, &length), -EINVAL);
}

static void names_come_in_order(void **state)
{
    char names[8][OS_FILE_NAME_MAX], longest[OS_FILE_NAME_MAX + 1];

    (void)state;
    put("zero", "", 0);
    put(".hidden", "", 0);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    put(longest, "", 0);
    assert_int_equal(mkdir(at("dir"), 0700), 0);
    assert_int_equal(os_dir_list(place, names, 8), 3); /* no directory, no FIFO */
    assert_string_equal(names[0], "empty");
    assert_string_equal(names[1], "five");
    assert_string_equal(names[2], "zero");
    assert_int_equal(os_dir_list(place, names, 2), 2);
    assert_int_equal(os_dir_list(at("none"), names, 8), -ENOENT);
    assert_int_equal(os_dir_list(at("five"), names, 8), -ENOTDIR);
    assert_int_equal(rmdir(at("dir")), 0);
    unlink(at(longest));
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(place) ? 0 : -1;
}

static int teardown(void **state)
{
    static const char *const left[] = {"zero", ".hidden", "five", "empty", "fifo"};

    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        unlink(at(left[i]));
    return rmdir(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_module_is_this_program),
        cmocka_unit_test(a_file_is_read_whole_or_not),
        cmocka_unit_test(names_come_in_order),
    };

    return cmocka_run_group_tests_name("file", tests, setup, teardown);
}
