// SPDX-License-Identifier: MIT
/*
 * place_test.c - where the sockets of a user's processes are, which directories are good, and what
 * is removed from them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "stat/stat_testing.h"

/* The paths, a blank between two. */
static const char *paths(const char *chosen, const char *runtime, bool all)
{
    static char text[3 * STAT_PATH_MAX];
    struct stat_places places;

    stat_places(chosen, runtime, 1000, all, &places);
    if (places.wrong)
        return "wrong";
    text[0] = '\0';
    for (unsigned i = 0; i < places.count; i++) {
        strcat(text, i ? " " : "");
        strcat(text, places.path[i]);
    }
    return text;
}

static void places_come_from_the_environment(void **state)
{
    char longer[STAT_PATH_MAX + 10];

    (void)state;
    assert_string_equal(paths(NULL, NULL, false), "/tmp/softndk-1000");
    assert_string_equal(paths("", "", false), "/tmp/softndk-1000");
    assert_string_equal(paths(NULL, "/run/user/7", false), "/run/user/7/softndk /tmp/softndk-1000");
    assert_string_equal(paths(NULL, "not/absolute", false), "/tmp/softndk-1000");
    assert_string_equal(paths(NULL, NULL, true), "/run/user/1000/softndk /tmp/softndk-1000");
    assert_string_equal(paths(NULL, "/x", true),
                        "/x/softndk /run/user/1000/softndk /tmp/softndk-1000");
    assert_string_equal(paths(NULL, "/run/user/1000", true),
                        "/run/user/1000/softndk /tmp/softndk-1000");
    assert_string_equal(paths("/var/x", "/run/user/7", true), "/var/x");
    assert_string_equal(paths("0", "/run/user/7", true), "");
    assert_string_equal(paths("off", "/run/user/7", true), "wrong");
    assert_string_equal(paths("x/y", NULL, false), "wrong");
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    assert_string_equal(paths(NULL, longer, false), "/tmp/softndk-1000");
}

/* As after su, which leaves the variable as it was. */
static void a_runtime_directory_of_another_user_is_none(void **state)
{
    struct stat_places places;
    char path[sizeof scratch + 10];

    (void)state;
    snprintf(path, sizeof path, "%s/softndk", scratch);
    unsetenv("SOFTNDK_STAT");
    setenv("XDG_RUNTIME_DIR", scratch, 1);
    stat_places_here(false, &places);
    assert_int_equal(places.count, 2);
    assert_string_equal(places.path[0], path);
    atomic_store(&os_local_user, (int64_t)os_user() + 1);
    stat_places_here(false, &places);
    atomic_store(&os_local_user, -1);
    assert_int_equal(places.count, 1);
    assert_string_not_equal(places.path[0], path);
}

static void names_stand_for_processes(void **state)
{
    char name[STAT_NAME_MAX];
    bool early;

    (void)state;
    stat_name(4711, name);
    assert_string_equal(name, "4711.sock");
    assert_int_equal(stat_name_pid(name, &early), 4711);
    assert_false(early);
    assert_int_equal(stat_name_pid("12.sock.new", &early), 12);
    assert_true(early);
    assert_int_equal(stat_name_pid("2147483647.sock", &early), 2147483647);
    for (const char *const *no =
             (const char *const[]){"", ".sock", "0.sock", "012.sock", "12", "12.sock.", "12.socket",
                                   "x12.sock", "-1.sock", "2147483648.sock",
                                   "99999999999999999999999.sock", NULL};
         *no; no++)
        assert_int_equal(stat_name_pid(*no, &early), 0);
}

/* A sentence with `part` in it. */
static void refused(const char *path, bool make, const char *part)
{
    char why[STAT_WHY_MAX] = "";

    assert_true(os_local_dir(path, make, why, sizeof why) < 0);
    if (!strstr(why, part))
        fail_msg("%s: %s", path, why);
}

static void a_directory_is_this_users_alone(void **state)
{
    char path[sizeof scratch + 20], link[sizeof path], why[STAT_WHY_MAX] = "";
    struct stat st;
    mode_t mask;
    int dir;

    (void)state;
    snprintf(path, sizeof path, "%s/mine", scratch);
    snprintf(link, sizeof link, "%s/link", scratch);
    refused(path, false, "cannot be opened");
    mask = umask(0);
    dir = os_local_dir(path, true, why, sizeof why);
    umask(mask);
    assert_true(dir >= 0);
    assert_int_equal(fstat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    os_local_close(dir);
    dir = os_local_dir(path, true, why, sizeof why); /* once more */
    assert_true(dir >= 0);
    os_local_close(dir);

    assert_int_equal(symlink(path, link), 0);
    refused(link, true, "cannot be opened");
    unlink(link);
    assert_int_equal(chmod(path, 0755), 0);
    refused(path, true, "have mode 0755, need 0700");
    assert_int_equal(chmod(path, 0700), 0);
    atomic_store(&os_local_user, (int64_t)os_user() + 1);
    refused(path, true, "belongs to another user");
    atomic_store(&os_local_user, -1);
    refused("/proc/self/nothing/here", true, "cannot be made");
    assert_int_equal(rmdir(path), 0);
}

/* A socket of that name whose process does not listen any more. */
static void leave(int dir, const char *name)
{
    int fd = os_local_listen(dir, name, 1);

    assert_true(fd >= 0);
    os_local_close(fd);
}

/* The number of a process that has been. */
static uint32_t dead_process(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return (uint32_t)pid;
}

static void what_the_dead_left_is_removed(void **state)
{
    uint32_t dead = dead_process(), elsewhere = dead_process();
    char name[STAT_NAME_MAX], own[STAT_NAME_MAX], other[STAT_NAME_MAX], early[STAT_NAME_MAX + 8];
    int dir = scratch_open(), listening;

    (void)state;
    stat_name(dead, name);
    stat_name(os_pid(), own);
    stat_name(elsewhere, other);
    snprintf(early, sizeof early, "%s.new", name);
    leave(dir, name);
    leave(dir, own);
    leave(dir, early);
    leave(dir, "notes");
    /* Of another process namespace: there is none of that number, and it listens. */
    listening = os_local_listen(dir, other, 1);
    assert_true(listening >= 0);
    stat_tidy(dir, 0);
    assert_true(there(dir, name));
    stat_tidy(dir, 1000);
    assert_false(there(dir, name));
    assert_true(there(dir, own));
    assert_true(there(dir, other));
    assert_true(there(dir, early)); /* it is young */
    assert_true(there(dir, "notes"));
    os_local_close(listening);
    os_local_close(dir);
}

/* A path that is longer than a socket's address. */
static void long_paths_do(void **state)
{
    char path[300], why[STAT_WHY_MAX] = "";
    int dir, listening, client, got;

    (void)state;
    snprintf(path, sizeof path, "%s/%0200d", scratch, 7);
    dir = os_local_dir(path, true, why, sizeof why);
    assert_true(dir >= 0);
    listening = os_local_listen(dir, "1.sock", 1);
    assert_true(listening >= 0);
    assert_false(there(dir, "1.sock.new"));
    assert_int_equal(os_local_accept(listening), -EAGAIN);
    client = os_local_connect(dir, "1.sock");
    assert_true(client >= 0);
    got = os_local_accept(listening);
    assert_true(got >= 0);
    os_local_close(got);
    os_local_close(client);
    os_local_close(listening);
    assert_int_equal(os_local_connect(dir, "1.sock"), -ECONNREFUSED);
    assert_int_equal(os_local_connect(dir, "2.sock"), -ENOENT);
    os_local_remove(dir, "1.sock");
    os_local_close(dir);
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_come_from_the_environment),
        cmocka_unit_test(a_runtime_directory_of_another_user_is_none),
        cmocka_unit_test(names_stand_for_processes),
        cmocka_unit_test(a_directory_is_this_users_alone),
        cmocka_unit_test(what_the_dead_left_is_removed),
        cmocka_unit_test(long_paths_do),
    };

    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
