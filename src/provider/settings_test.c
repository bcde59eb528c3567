// SPDX-License-Identifier: MIT
/*
 * What an adapter is opened with: the order of the sources, where profiles are looked for, what is
 * said when one is missing or bad; and the profiles that come with the library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cmocka.h>

#include "os/os.h"
#include "provider/settings.h"

static char place[] = "/tmp/softndk-profiles-XXXXXX";

static const char *at(const char *name)
{
    static char path[sizeof place + 80];

    snprintf(path, sizeof path, "%s/%s", place, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void forget_environment(void)
{
    unsetenv("SOFTNDK_OPTIONS");
    unsetenv("SOFTNDK_PROFILE");
    unsetenv("SOFTNDK_TIMEOUTS");
    unsetenv("SOFTNDK_PROFILE_DIR");
}

static struct options taken(const char *text)
{
    struct options o;
    char error[1024] = "";

    memset(&o, 0xee, sizeof o);
    if (!settings_for_open(&o, text, error, sizeof error))
        fail_msg("refused: %s", error);
    return o;
}

/* The whole sentence, or with a star at its end its beginning. */
static void refused(const char *text, const char *sentence)
{
    struct options o, before;
    char error[1024] = "";
    size_t n = strlen(sentence);

    memset(&o, 0xee, sizeof o);
    before = o;
    if (settings_for_open(&o, text, error, sizeof error))
        fail_msg("taken: %s", text);
    if (n && sentence[n - 1] == '*')
        error[n - 1] = '*', error[n] = '\0';
    assert_string_equal(error, sentence);
    assert_memory_equal(&o, &before, sizeof o);
}

/* ---- order ---------------------------------------------------------------------------------- */

static void later_sources_win(void **state)
{
    struct options o, standard;

    (void)state;
    forget_environment();
    options_defaults(&standard);
    o = taken(NULL);
    assert_memory_equal(&o, &standard, sizeof o);
    put("mine", "shards = 1\nfrmr_pages = 101\nspin_us = 1\n");
    setenv("SOFTNDK_PROFILE_DIR", place, 1);
    setenv("SOFTNDK_PROFILE", "mine", 1);
    o = taken(NULL);
    assert_int_equal(o.shards, 1);
    assert_int_equal(o.frmr_pages, 101);
    assert_int_equal(o.connect_ms, 10000);
    setenv("SOFTNDK_OPTIONS", "frmr_pages=102,spin_us=2", 1);
    o = taken(NULL);
    assert_int_equal(o.shards, 1);
    assert_int_equal(o.frmr_pages, 102);
    assert_int_equal(o.spin_us, 2);
    o = taken("spin_us=3");
    assert_int_equal(o.shards, 1);
    assert_int_equal(o.frmr_pages, 102);
    assert_int_equal(o.spin_us, 3);
}

/* The text's profile, else that of SOFTNDK_OPTIONS, else SOFTNDK_PROFILE; one only, and before all
 * options, wherever it stands. */
static void one_profile_is_chosen(void **state)
{
    struct options o;

    (void)state;
    forget_environment();
    put("one", "shards = 11\n");
    put("two", "shards = 12\nspin_us = 2\n");
    put("three", "shards = 13\n");
    setenv("SOFTNDK_PROFILE_DIR", place, 1);
    setenv("SOFTNDK_PROFILE", "one", 1);
    assert_int_equal(taken(NULL).shards, 11);
    setenv("SOFTNDK_OPTIONS", "spin_us=5,profile=two", 1);
    o = taken(NULL);
    assert_int_equal(o.shards, 12);
    assert_int_equal(o.spin_us, 5);
    o = taken("shards=14,profile=two,profile=three");
    assert_int_equal(o.shards, 14);
    assert_int_equal(taken("profile=three").shards, 13);
    assert_int_equal(taken("profile=three").spin_us, 5);
    /* default is what there is without a profile */
    assert_int_equal(taken("profile=default").shards, 0);
    setenv("SOFTNDK_OPTIONS", "", 1);
    setenv("SOFTNDK_PROFILE", "", 1);
    assert_int_equal(taken("").shards, 0);
}

static void timeouts_off_comes_with_the_environment(void **state)
{
    struct options o;

    (void)state;
    forget_environment();
    setenv("SOFTNDK_TIMEOUTS", "off", 1);
    setenv("SOFTNDK_OPTIONS", "connect_ms=7", 1);
    o = taken(NULL);
    assert_int_equal(o.connect_ms + o.request_ms + o.establish_ms + o.disconnect_ms, 0);
    assert_int_equal(o.user_timeout_ms + o.keepalive_s + o.nudge_ms, 0);
    assert_int_equal(o.holdback_ms, 3600000);
    assert_int_equal(taken("connect_ms=8").connect_ms, 8);
    assert_int_equal(taken("holdback_ms=0").holdback_ms, 0);
    setenv("SOFTNDK_OPTIONS", "holdback_ms=0", 1); /* at once, not never */
    assert_int_equal(taken(NULL).holdback_ms, 0);
    setenv("SOFTNDK_TIMEOUTS", "on", 1);
    assert_int_equal(taken(NULL).connect_ms, 10000);
    setenv("SOFTNDK_TIMEOUTS", "maybe", 1);
    refused(NULL, "SOFTNDK_TIMEOUTS: have \"maybe\", need on or off");
}

/* ---- what is wrong -------------------------------------------------------------------------- */

static void faults_name_their_place(void **state)
{
    char sentence[400];

    (void)state;
    forget_environment();
    setenv("SOFTNDK_PROFILE_DIR", place, 1);
    put("bad", "shards = 2\nshards = 3\n");
    snprintf(sentence, sizeof sentence, "%s:2: option shards: is given twice (first in line 1)",
             at("bad"));
    refused("profile=bad", sentence);
    snprintf(sentence, sizeof sentence, "profile absent: there is no such file in %s", place);
    refused("profile=absent", sentence);
    mkdir(at("dir"), 0700);
    snprintf(sentence, sizeof sentence,
             "profile dir: cannot read %s (error 22, it is no regular file)", at("dir"));
    refused("profile=dir", sentence);
    rmdir(at("dir"));
    refused("profile=../bad", "profile: have \"../bad\", need a name of*");
    refused("profile=", "profile: have \"\", need a name of*");
    refused("shards=x", "option shards: have \"x\", need*");
    setenv("SOFTNDK_PROFILE", "no/name", 1);
    refused(NULL, "SOFTNDK_PROFILE: profile: have \"no/name\", need a name of*");
    setenv("SOFTNDK_OPTIONS", "profile=.x", 1);
    refused(NULL, "SOFTNDK_OPTIONS: profile: have \".x\", need a name of*");
    setenv("SOFTNDK_PROFILE", "default", 1);
    setenv("SOFTNDK_OPTIONS", "shards=many", 1);
    refused(NULL, "SOFTNDK_OPTIONS: option shards: have \"many\", need*");
}

static void a_profile_that_is_too_long(void **state)
{
    char sentence[400];
    FILE *f;

    (void)state;
    forget_environment();
    setenv("SOFTNDK_PROFILE_DIR", place, 1);
    f = fopen(at("long"), "w");
    assert_non_null(f);
    for (unsigned i = 0; i <= PROFILE_TEXT_MAX; i++)
        fputc('\n', f);
    assert_int_equal(fclose(f), 0);
    snprintf(sentence, sizeof sentence, "profile long: cannot read %s (error 27, it is too long)",
             at("long"));
    refused("profile=long", sentence);
}

/* Without its file, too; a file of that name is read all the same. */
static void default_needs_no_file(void **state)
{
    struct options o, standard;

    (void)state;
    forget_environment();
    options_defaults(&standard);
    setenv("SOFTNDK_PROFILE_DIR", "/nonexistent", 1);
    o = taken("profile=default");
    assert_memory_equal(&o, &standard, sizeof o);
    setenv("SOFTNDK_PROFILE_DIR", place, 1);
    put("default", "shards = 9\n");
    assert_int_equal(taken("profile=default").shards, 9);
    unlink(at("default"));
}

/* ---- the profiles of the library ------------------------------------------------------------ */

struct told {
    unsigned count;
    char names[16][40];
    bool compiled_in;
};

static void tell(void *context, const char *name, const char *about, const char *path)
{
    struct told *told = context;

    assert_true(told->count < 16);
    assert_true(strlen(about) > 10);
    snprintf(told->names[told->count++], sizeof told->names[0], "%s", name);
    if (!path)
        told->compiled_in = true;
    else
        assert_int_equal(access(path, R_OK), 0);
}

/* Found beside this program in the build tree, by nobody's telling. */
static void they_are_found_and_good(void **state)
{
    static const char *const all[] = {"cx3", "default", "iwarp-rnic", "strict"};
    struct options o, standard;
    struct told told = {0};
    char text[60];

    (void)state;
    forget_environment();
    options_defaults(&standard);
    settings_profiles(tell, &told);
    assert_true(told.count >= 4);
    for (unsigned i = 0; i < 4; i++) {
        unsigned found = 0;

        for (unsigned k = 0; k < told.count; k++)
            found += strcmp(told.names[k], all[i]) == 0;
        assert_int_equal(found, 1);
        snprintf(text, sizeof text, "profile=%s", all[i]);
        o = taken(text);
        assert_int_equal(memcmp(&o, &standard, sizeof o) == 0, strcmp(all[i], "default") == 0);
    }
    assert_false(told.compiled_in);
    memset(&told, 0, sizeof told);
    setenv("SOFTNDK_PROFILE_DIR", "/nonexistent", 1);
    settings_profiles(tell, &told);
    assert_int_equal(told.count, 1);
    assert_true(told.compiled_in);
}

/* The file default says every option, at its default. */
static void default_is_the_table(void **state)
{
    const char *source = getenv("SOFTNDK_SOURCE_DIR");
    char path[1024], line[200], error[300], *text;
    size_t count, length;
    const struct option_info *table = options_table(&count);
    struct options o, standard;

    (void)state;
    snprintf(path, sizeof path, "%s/profiles/default", source ? source : "..");
    if (os_file_read(path, PROFILE_TEXT_MAX, &text, &length) < 0) {
        print_message("skipped: %s is not there\n", path);
        skip();
    }
    for (size_t i = 0; i < count; i++) {
        char room[OPTION_TEXT_MAX];

        snprintf(line, sizeof line, "\n%s = %s\n", table[i].name,
                 option_text(&table[i], table[i].standard, room));
        if (!strstr(text, line))
            fail_msg("profiles/default has no line \"%s = %s\"", table[i].name,
                     option_text(&table[i], table[i].standard, room));
    }
    options_defaults(&standard);
    memset(&o, 0, sizeof o); /* what it does not say stays 0, or is told below */
    o.port_high = 65535;
    assert_true(profile_apply(&o, path, text, length, error, sizeof error));
    assert_memory_equal(&o, &standard, sizeof o);
    free(text);
}

/* ---- */

static int setup(void **state)
{
    (void)state;
    return mkdtemp(place) ? 0 : -1;
}

static int teardown(void **state)
{
    static const char *const left[] = {"mine", "one", "two", "three", "bad", "long"};

    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        unlink(at(left[i]));
    return rmdir(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_sources_win),
        cmocka_unit_test(one_profile_is_chosen),
        cmocka_unit_test(timeouts_off_comes_with_the_environment),
        cmocka_unit_test(faults_name_their_place),
        cmocka_unit_test(a_profile_that_is_too_long),
        cmocka_unit_test(default_needs_no_file),
        cmocka_unit_test(they_are_found_and_good),
        cmocka_unit_test(default_is_the_table),
    };

    return cmocka_run_group_tests_name("settings", tests, setup, teardown);
}
