// SPDX-License-Identifier: MIT
/*
 * Tests of zwfile.c and ntpath.c: names, dispositions, sharing, and where octets go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "nt/left.h"
#include "nt/nt_testing.h"

#define SYNC  FILE_SYNCHRONOUS_IO_NONALERT
#define SHARE (FILE_SHARE_READ | FILE_SHARE_WRITE)

static char scratch[64];
static char one[] = "x";

struct open {
    ACCESS_MASK access;
    ULONG share, disposition, options;
    HANDLE root;
};

static NTSTATUS open_file(const WCHAR *path, const struct open *o, HANDLE *file, ULONG_PTR *did)
{
    OBJECT_ATTRIBUTES oa;
    UNICODE_STRING name;
    IO_STATUS_BLOCK iosb;
    NTSTATUS status;

    RtlInitUnicodeString(&name, path);
    InitializeObjectAttributes(&oa, &name, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, o->root, NULL);
    status = ZwCreateFile(file, o->access, &oa, &iosb, NULL, FILE_ATTRIBUTE_NORMAL, o->share,
                          o->disposition, o->options, NULL, 0);
    assert_int_equal(iosb.Status, status);
    if (did)
        *did = iosb.Information;
    return status;
}

static NTSTATUS write_text(HANDLE file, const char *text, LARGE_INTEGER *at)
{
    IO_STATUS_BLOCK iosb = {.Information = 99};
    NTSTATUS status = ZwWriteFile(file, NULL, NULL, NULL, &iosb, (PVOID)(uintptr_t)text,
                                  (ULONG)strlen(text), at, NULL);

    assert_int_equal(iosb.Status, status);
    assert_int_equal(iosb.Information, status == STATUS_SUCCESS ? strlen(text) : 0);
    return status;
}

static void host_holds(const char *path, const char *want)
{
    char whole[200], text[200];
    size_t n;
    FILE *f;

    snprintf(whole, sizeof whole, "%s/%s", scratch, path);
    f = fopen(whole, "r");
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    assert_string_equal(text, want);
}

static bool host_has(const char *path)
{
    char whole[200];
    struct stat st;

    snprintf(whole, sizeof whole, "%s/%s", scratch, path);
    return stat(whole, &st) == 0;
}

static const struct open appender = {
    .access = FILE_APPEND_DATA | SYNCHRONIZE,
    .share = SHARE,
    .disposition = FILE_OPEN_IF,
    .options = SYNC,
};

/* ---- names ---------------------------------------------------------------------------------- */

static void a_drivers_log_is_appended_to(void **state)
{
    size_t handles = nt_left_count(NT_LEFT_HANDLE);
    LARGE_INTEGER beginning = {.QuadPart = 0};
    HANDLE file;
    ULONG_PTR did;

    (void)state;
    for (int run = 0; run < 2; run++) {
        assert_int_equal(open_file(u"\\??\\C:\\result.txt", &appender, &file, &did),
                         STATUS_SUCCESS);
        assert_int_equal(did, run ? FILE_OPENED : FILE_CREATED);
        assert_int_equal(write_text(file, "one ", NULL), STATUS_SUCCESS);
        assert_int_equal(write_text(file, "two ", &beginning), STATUS_SUCCESS); /* no matter */
        assert_int_equal(nt_left_count(NT_LEFT_HANDLE), handles + 1);
        assert_int_equal(ZwClose(file), STATUS_SUCCESS);
    }
    host_holds("C/result.txt", "one two one two ");
    assert_int_equal(nt_left_count(NT_LEFT_HANDLE), handles);
}

static void names_lead_below_one_folder(void **state)
{
    static const struct {
        const WCHAR *path;
        const char *host; /* NULL: it fails */
        NTSTATUS status;
    } cases[] = {
        {u"\\??\\C:\\a.txt", "C/a.txt", 0},
        {u"\\DosDevices\\d:\\b.txt", "D/b.txt", 0},
        {u"\\GLOBAL??\\C:\\c.txt", "C/c.txt", 0},
        {u"\\SystemRoot\\Temp\\d.txt", "C/Windows/Temp/d.txt", 0},
        {u"\\Device\\HarddiskVolume1\\e.txt", "C/e.txt", 0},
        {u"\\??\\C:\\WINDOWS\\temp\\f.txt", "C/Windows/Temp/f.txt", 0},
        {u"\\??\\C:\\\u00e4\u20ac.txt", "C/\xc3\xa4\xe2\x82\xac.txt", 0},
        {u"\\??\\C:\\no\\such.txt", NULL, STATUS_OBJECT_PATH_NOT_FOUND},
        {u"\\??\\C:\\a.txt\\x", NULL, STATUS_OBJECT_PATH_NOT_FOUND},
        {u"\\??\\C:\\..\\x.txt", NULL, STATUS_OBJECT_NAME_INVALID},
        {u"\\??\\C:\\.\\x.txt", NULL, STATUS_OBJECT_NAME_INVALID},
        {u"\\??\\C:\\x/y", NULL, STATUS_OBJECT_NAME_INVALID},
        {u"\\??\\C:\\x*", NULL, STATUS_OBJECT_NAME_INVALID},
        {u"\\??\\C:\\x\ty", NULL, STATUS_OBJECT_NAME_INVALID},
        {u"\\??\\1:\\x", NULL, STATUS_OBJECT_NAME_NOT_FOUND},
        {u"\\??\\COM1", NULL, STATUS_OBJECT_NAME_NOT_FOUND},
        {u"\\??", NULL, STATUS_OBJECT_NAME_NOT_FOUND},
        {u"\\Device\\Tcp", NULL, STATUS_OBJECT_NAME_NOT_FOUND},
        {u"C:\\x", NULL, STATUS_OBJECT_PATH_SYNTAX_BAD},
        {u"", NULL, STATUS_OBJECT_PATH_SYNTAX_BAD},
    };
    static WCHAR longest[300] = u"\\??\\C:\\";
    HANDLE file;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(open_file(cases[i].path, &appender, &file, NULL), cases[i].status);
        if (cases[i].status == STATUS_SUCCESS) {
            ZwClose(file);
            assert_true(host_has(cases[i].host));
        }
    }
    for (int i = 7; i < 7 + 256; i++)
        longest[i] = 'x';
    assert_int_equal(open_file(longest, &appender, &file, NULL), STATUS_OBJECT_NAME_INVALID);
    assert_false(host_has("x.txt"));
}

static void a_name_may_begin_at_a_directory(void **state)
{
    struct open directory = {.access = FILE_LIST_DIRECTORY | SYNCHRONIZE,
                             .share = SHARE,
                             .disposition = FILE_OPEN_IF,
                             .options = FILE_DIRECTORY_FILE | SYNC};
    struct open below = appender;
    HANDLE dir, file;
    ULONG_PTR did;

    (void)state;
    assert_int_equal(open_file(u"\\??\\C:\\Logs", &directory, &dir, &did), STATUS_SUCCESS);
    assert_int_equal(did, FILE_CREATED);
    below.root = dir;
    assert_int_equal(open_file(u"one.log", &below, &file, NULL), STATUS_SUCCESS);
    assert_int_equal(write_text(file, "x", NULL), STATUS_SUCCESS);
    ZwClose(file);
    host_holds("C/Logs/one.log", "x");
    assert_int_equal(open_file(u"\\one.log", &below, &file, NULL), STATUS_OBJECT_PATH_SYNTAX_BAD);
    assert_int_equal(write_text(dir, "x", NULL), STATUS_ACCESS_DENIED);
    ZwClose(dir);
    assert_int_equal(open_file(u"\\??\\C:\\logs", &directory, &dir, &did), STATUS_SUCCESS);
    assert_int_equal(did, FILE_OPENED);
    ZwClose(dir);
    assert_int_equal(open_file(u"\\??\\C:\\Logs\\one.log", &directory, &dir, NULL),
                     STATUS_NOT_A_DIRECTORY);
    below = appender;
    below.options |= FILE_NON_DIRECTORY_FILE;
    assert_int_equal(open_file(u"\\??\\C:\\Logs", &below, &file, NULL), STATUS_FILE_IS_A_DIRECTORY);
    directory.access |= FILE_APPEND_DATA;
    assert_int_equal(open_file(u"\\??\\C:\\Logs", &directory, &dir, NULL), STATUS_SUCCESS);
    assert_int_equal(write_text(dir, "x", NULL), STATUS_INVALID_DEVICE_REQUEST);
    ZwClose(dir);
}

/* ---- dispositions ---------------------------------------------------------------------------- */

static void dispositions_do_what_they_say(void **state)
{
    static const struct {
        ULONG disposition;
        NTSTATUS missing_status;
        ULONG_PTR missing_did;
        NTSTATUS existing_status;
        ULONG_PTR existing_did;
        const char *left; /* of "old" */
    } cases[] = {
        {FILE_SUPERSEDE, 0, FILE_CREATED, 0, FILE_SUPERSEDED, ""},
        {FILE_OPEN, STATUS_OBJECT_NAME_NOT_FOUND, FILE_DOES_NOT_EXIST, 0, FILE_OPENED, "old"},
        {FILE_CREATE, 0, FILE_CREATED, STATUS_OBJECT_NAME_COLLISION, FILE_EXISTS, "old"},
        {FILE_OPEN_IF, 0, FILE_CREATED, 0, FILE_OPENED, "old"},
        {FILE_OVERWRITE, STATUS_OBJECT_NAME_NOT_FOUND, FILE_DOES_NOT_EXIST, 0, FILE_OVERWRITTEN,
         ""},
        {FILE_OVERWRITE_IF, 0, FILE_CREATED, 0, FILE_OVERWRITTEN, ""},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct open o = {.access = FILE_GENERIC_WRITE, .share = SHARE, .options = SYNC};
        WCHAR path[] = u"\\??\\C:\\disposition0";
        char host[] = "C/disposition0";
        HANDLE file;
        ULONG_PTR did;

        path[18] = host[13] = (char)('0' + i);
        o.disposition = cases[i].disposition;
        assert_int_equal(open_file(path, &o, &file, &did), cases[i].missing_status);
        assert_int_equal(did, cases[i].missing_did);
        if (cases[i].missing_status == STATUS_SUCCESS)
            ZwClose(file);
        o.disposition = FILE_OVERWRITE_IF;
        assert_int_equal(open_file(path, &o, &file, NULL), STATUS_SUCCESS);
        assert_int_equal(write_text(file, "old", NULL), STATUS_SUCCESS);
        ZwClose(file);
        o.disposition = cases[i].disposition;
        assert_int_equal(open_file(path, &o, &file, &did), cases[i].existing_status);
        assert_int_equal(did, cases[i].existing_did);
        if (cases[i].existing_status == STATUS_SUCCESS)
            ZwClose(file);
        host_holds(host, cases[i].left);
    }
}

static void options_must_fit(void **state)
{
    struct open o = appender;
    HANDLE file;

    (void)state;
    o.disposition = 6;
    assert_int_equal(open_file(u"\\??\\C:\\o", &o, &file, NULL), STATUS_INVALID_PARAMETER);
    o = appender;
    o.access = FILE_APPEND_DATA; /* synchronous without SYNCHRONIZE */
    assert_int_equal(open_file(u"\\??\\C:\\o", &o, &file, NULL), STATUS_INVALID_PARAMETER);
    o = appender;
    o.options = SYNC | FILE_SYNCHRONOUS_IO_ALERT;
    assert_int_equal(open_file(u"\\??\\C:\\o", &o, &file, NULL), STATUS_INVALID_PARAMETER);
    o.options = SYNC | FILE_DIRECTORY_FILE | FILE_NON_DIRECTORY_FILE;
    assert_int_equal(open_file(u"\\??\\C:\\o", &o, &file, NULL), STATUS_INVALID_PARAMETER);
}

/* ---- sharing -------------------------------------------------------------------------------- */

static void who_does_not_share_is_alone(void **state)
{
    struct open reader = {.access = FILE_GENERIC_READ,
                          .share = FILE_SHARE_READ,
                          .disposition = FILE_OPEN_IF,
                          .options = SYNC};
    struct open writer = appender,
                asker = {.access = FILE_READ_ATTRIBUTES, .disposition = FILE_OPEN};
    HANDLE first, second, third;

    (void)state;
    assert_int_equal(open_file(u"\\??\\C:\\shared", &reader, &first, NULL), STATUS_SUCCESS);
    assert_int_equal(open_file(u"\\??\\C:\\Shared", &reader, &second, NULL), STATUS_SUCCESS);
    assert_int_equal(open_file(u"\\??\\C:\\shared", &writer, &third, NULL),
                     STATUS_SHARING_VIOLATION);
    assert_int_equal(open_file(u"\\??\\C:\\shared", &asker, &third, NULL), STATUS_SUCCESS);
    ZwClose(third);
    ZwClose(first);
    ZwClose(second);
    assert_int_equal(open_file(u"\\??\\C:\\shared", &writer, &first, NULL), STATUS_SUCCESS);
    assert_int_equal(open_file(u"\\??\\C:\\shared", &writer, &second, NULL), STATUS_SUCCESS);
    assert_int_equal(open_file(u"\\??\\C:\\shared", &reader, &third, NULL),
                     STATUS_SHARING_VIOLATION); /* it does not bear writers */
    writer.share = 0;
    assert_int_equal(open_file(u"\\??\\C:\\other", &writer, &third, NULL), STATUS_SUCCESS);
    ZwClose(first);
    ZwClose(second);
    ZwClose(third);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void octets_go_where_they_are_sent(void **state)
{
    struct open o = {.access = FILE_GENERIC_WRITE,
                     .share = SHARE,
                     .disposition = FILE_OVERWRITE_IF,
                     .options = SYNC};
    LARGE_INTEGER at = {.QuadPart = 4};
    HANDLE file;

    (void)state;
    assert_int_equal(open_file(u"\\??\\C:\\octets", &o, &file, NULL), STATUS_SUCCESS);
    assert_int_equal(write_text(file, "abc", NULL), STATUS_SUCCESS);
    assert_int_equal(write_text(file, "def", NULL), STATUS_SUCCESS); /* behind the last */
    assert_int_equal(write_text(file, "X", &at), STATUS_SUCCESS);
    host_holds("C/octets", "abcdXf");
    assert_int_equal(write_text(file, "Y", NULL), STATUS_SUCCESS); /* behind X */
    host_holds("C/octets", "abcdXY");
    at.HighPart = -1;
    at.LowPart = FILE_WRITE_TO_END_OF_FILE;
    assert_int_equal(write_text(file, "Z", &at), STATUS_SUCCESS);
    at.LowPart = FILE_USE_FILE_POINTER_POSITION;
    assert_int_equal(write_text(file, "!", &at), STATUS_SUCCESS);
    assert_int_equal(write_text(file, "", NULL), STATUS_SUCCESS);
    host_holds("C/octets", "abcdXYZ!");
    at.QuadPart = -7;
    assert_int_equal(write_text(file, "x", &at), STATUS_INVALID_PARAMETER);
    ZwClose(file);

    o.options = 0; /* asynchronous: there is no position */
    o.disposition = FILE_OPEN;
    assert_int_equal(open_file(u"\\??\\C:\\octets", &o, &file, NULL), STATUS_SUCCESS);
    assert_int_equal(write_text(file, "x", NULL), STATUS_INVALID_PARAMETER);
    at.QuadPart = 0;
    assert_int_equal(write_text(file, "_", &at), STATUS_SUCCESS);
    host_holds("C/octets", "_bcdXYZ!");
    ZwClose(file);
}

static void what_cannot_be_written_says_why(void **state)
{
    struct open o = {
        .access = FILE_GENERIC_READ, .share = SHARE, .disposition = FILE_OPEN_IF, .options = SYNC};
    unsigned findings = nt_finding_count();
    HANDLE file;

    (void)state;
    assert_int_equal(open_file(u"\\??\\C:\\read", &o, &file, NULL), STATUS_SUCCESS);
    assert_int_equal(write_text(file, "x", NULL), STATUS_ACCESS_DENIED);
    ZwClose(file);
    assert_int_equal(ZwWriteFile(file, NULL, NULL, NULL, NULL, one, 1, NULL, NULL),
                     STATUS_INVALID_HANDLE);
    ASSERT_FINDING(findings, "ZwWriteFile: ");
    assert_int_equal(open_file(u"\\??\\C:\\apc", &appender, &file, NULL), STATUS_SUCCESS);
    assert_int_equal(
        ZwWriteFile(file, NULL, (PIO_APC_ROUTINE)(uintptr_t)1, NULL, NULL, one, 1, NULL, NULL),
        STATUS_SUCCESS);
    ASSERT_FINDING(findings + 1, "there are no APCs here");
    assert_int_equal(ZwWriteFile(file, file, NULL, NULL, NULL, one, 1, NULL, NULL),
                     STATUS_INVALID_HANDLE);
    ZwClose(file);
}

static void levels_are_checked(void **state)
{
    unsigned findings = nt_finding_count();
    HANDLE file;

    (void)state;
    nt_irql_set(DISPATCH_LEVEL);
    open_file(u"\\??\\C:\\level", &appender, &file, NULL);
    write_text(file, "x", NULL);
    ZwClose(file);
    nt_irql_set(PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings + 3);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void append_lines(void *arg)
{
    HANDLE file;

    if (open_file(u"\\??\\C:\\lines", &appender, &file, NULL) != STATUS_SUCCESS)
        abort();
    for (int i = 0; i < 200; i++)
        if (ZwWriteFile(file, NULL, NULL, NULL, NULL, arg, 16, NULL, NULL) != STATUS_SUCCESS)
            abort();
    ZwClose(file);
}

static void writers_who_append_lose_nothing(void **state)
{
    static char lines[3][17] = {"aaaaaaaaaaaaaaa\n", "bbbbbbbbbbbbbbb\n", "ccccccccccccccc\n"};
    struct os_thread *threads[3];
    unsigned count[3] = {0};
    char whole[200], line[32];
    FILE *f;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(os_thread_start(&threads[i], "append", append_lines, lines[i]), 0);
    for (int i = 0; i < 3; i++)
        os_thread_join(threads[i]);
    snprintf(whole, sizeof whole, "%s/C/lines", scratch);
    f = fopen(whole, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        assert_in_range(line[0], 'a', 'c');
        assert_string_equal(line, lines[line[0] - 'a']);
        count[line[0] - 'a']++;
    }
    fclose(f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(count[i], 200);
}

static int set_up(void **state)
{
    (void)state;
    scratch_make(scratch);
    setenv("SOFTNDK_FILES", scratch, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drivers_log_is_appended_to),
        cmocka_unit_test(names_lead_below_one_folder),
        cmocka_unit_test(a_name_may_begin_at_a_directory),
        cmocka_unit_test(dispositions_do_what_they_say),
        cmocka_unit_test(options_must_fit),
        cmocka_unit_test(who_does_not_share_is_alone),
        cmocka_unit_test(octets_go_where_they_are_sent),
        cmocka_unit_test(what_cannot_be_written_says_why),
        cmocka_unit_test(levels_are_checked),
        cmocka_unit_test(writers_who_append_lose_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
