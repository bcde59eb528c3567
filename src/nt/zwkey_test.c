// SPDX-License-Identifier: MIT
/*
 * Tests of the registry: the calls of drivers (zwkey.c), the tree (registry.c), its file
 * (regtext.c), and handles (handle.c). With an argument the program is another process that writes
 * to the same file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <softndk.h>

#include "nt/left.h"
#include "nt/nt_testing.h"

static char scratch[64], file[96];

static NTSTATUS open_key(const WCHAR *path, HANDLE root, HANDLE *key)
{
    OBJECT_ATTRIBUTES oa;
    UNICODE_STRING name;

    RtlInitUnicodeString(&name, path);
    InitializeObjectAttributes(&oa, &name, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, root, NULL);
    return ZwOpenKey(key, KEY_READ | KEY_WRITE, &oa);
}

static NTSTATUS create_key(const WCHAR *path, HANDLE root, ULONG options, HANDLE *key,
                           ULONG *disposition)
{
    OBJECT_ATTRIBUTES oa;
    UNICODE_STRING name;

    RtlInitUnicodeString(&name, path);
    InitializeObjectAttributes(&oa, &name, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, root, NULL);
    return ZwCreateKey(key, KEY_ALL_ACCESS, &oa, 0, NULL, options, disposition);
}

static NTSTATUS set_value(HANDLE key, const WCHAR *name, ULONG type, const void *data, ULONG size)
{
    UNICODE_STRING s;

    RtlInitUnicodeString(&s, name);
    return ZwSetValueKey(key, &s, 0, type, (PVOID)(uintptr_t)data, size);
}

/* The data of a value, in one call with room enough. */
static NTSTATUS get_value(HANDLE key, const WCHAR *name, ULONG *type, void *data, ULONG *size)
{
    union {
        KEY_VALUE_PARTIAL_INFORMATION info;
        char room[9000];
    } a;
    UNICODE_STRING s;
    ULONG length;
    NTSTATUS status;

    RtlInitUnicodeString(&s, name);
    status = ZwQueryValueKey(key, &s, KeyValuePartialInformation, &a, sizeof a, &length);
    if (status != STATUS_SUCCESS)
        return status;
    assert_int_equal(length, FIELD_OFFSET(KEY_VALUE_PARTIAL_INFORMATION, Data) + a.info.DataLength);
    *type = a.info.Type;
    *size = a.info.DataLength;
    memcpy(data, a.info.Data, a.info.DataLength);
    return STATUS_SUCCESS;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void keys_are_made_below_what_exists(void **state)
{
    size_t handles = nt_left_count(NT_LEFT_HANDLE);
    HANDLE key, child, same;
    ULONG disposition = 0;

    (void)state;
    assert_int_equal(open_key(u"\\Registry\\Machine\\SOFTWARE\\Made", NULL, &key),
                     STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(create_key(u"\\Registry\\Machine\\SOFTWARE\\Made\\Deep", NULL, 0, &key, NULL),
                     STATUS_OBJECT_NAME_NOT_FOUND); /* its parent is missing */
    assert_int_equal(
        create_key(u"\\Registry\\Machine\\SOFTWARE\\Made", NULL, 0, &key, &disposition),
        STATUS_SUCCESS);
    assert_int_equal(disposition, REG_CREATED_NEW_KEY);
    assert_int_equal(nt_left_count(NT_LEFT_HANDLE), handles + 1);
    assert_int_equal(create_key(u"Deep\\", key, 0, &child, &disposition), STATUS_SUCCESS);
    assert_int_equal(disposition, REG_CREATED_NEW_KEY);
    assert_int_equal(
        create_key(u"\\REGISTRY\\machine\\Software\\mADE\\deep", NULL, 0, &same, &disposition),
        STATUS_SUCCESS);
    assert_int_equal(disposition, REG_OPENED_EXISTING_KEY);
    assert_int_equal(set_value(child, u"v", REG_DWORD, "\1\0\0\0", 4), STATUS_SUCCESS);
    assert_int_equal(set_value(same, u"V", REG_DWORD, "\2\0\0\0", 4), STATUS_SUCCESS);
    {
        ULONG type, size;
        UCHAR data[4];

        assert_int_equal(get_value(child, u"v", &type, data, &size), STATUS_SUCCESS);
        assert_int_equal(data[0], 2); /* they are one key, and one value */
    }
    assert_int_equal(open_key(u"Deep", key, &same), STATUS_SUCCESS);
    ZwClose(same);
    assert_int_equal(open_key(u"", key, &same), STATUS_SUCCESS); /* the root itself */
    ZwClose(same);
    ZwClose(child);
    ZwClose(key);
    assert_int_equal(nt_left_count(NT_LEFT_HANDLE), handles + 1); /* `same` of above */
}

static void names_must_be_whole_paths(void **state)
{
    static WCHAR letters[] = u"\\ab";
    UNICODE_STRING odd = {.Length = 5, .MaximumLength = 8, .Buffer = letters};
    OBJECT_ATTRIBUTES oa;
    static WCHAR longest[300] = u"\\Registry\\";
    HANDLE key;

    (void)state;
    assert_int_equal(open_key(u"Registry\\Machine", NULL, &key), STATUS_OBJECT_PATH_SYNTAX_BAD);
    assert_int_equal(open_key(u"", NULL, &key), STATUS_OBJECT_PATH_SYNTAX_BAD);
    assert_int_equal(open_key(u"\\Device\\Thing", NULL, &key), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(open_key(u"\\", NULL, &key), STATUS_OBJECT_NAME_NOT_FOUND);
    for (int i = 10; i < 10 + 256; i++)
        longest[i] = 'x';
    assert_int_equal(open_key(longest, NULL, &key), STATUS_OBJECT_NAME_INVALID);
    InitializeObjectAttributes(&oa, &odd, 0, NULL, NULL);
    assert_int_equal(ZwOpenKey(&key, KEY_READ, &oa), STATUS_OBJECT_NAME_INVALID);
    oa.Length = 3;
    assert_int_equal(ZwOpenKey(&key, KEY_READ, &oa), STATUS_INVALID_PARAMETER);
    assert_int_equal(open_key(u"\\Registry\\Machine", NULL, &key), STATUS_SUCCESS);
    {
        HANDLE root = key;

        assert_int_equal(open_key(u"\\Registry\\Machine", root, &key),
                         STATUS_OBJECT_PATH_SYNTAX_BAD);
        ZwClose(root);
    }
}

/* ---- values --------------------------------------------------------------------------------- */

static HANDLE new_key(const WCHAR *name)
{
    HANDLE software, key;

    assert_int_equal(open_key(u"\\Registry\\Machine\\Software", NULL, &software), STATUS_SUCCESS);
    assert_int_equal(create_key(name, software, 0, &key, NULL), STATUS_SUCCESS);
    ZwClose(software);
    return key;
}

static void values_come_back_as_they_were_set(void **state)
{
    static char letters[] = "efgh";
    HANDLE key = new_key(u"Values");
    UCHAR data[9000], bytes[8192];
    ULONG type, size;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (UCHAR)(i * 7);
    assert_int_equal(get_value(key, u"none", &type, data, &size), STATUS_OBJECT_NAME_NOT_FOUND);
    assert_int_equal(set_value(key, u"big", REG_BINARY, bytes, sizeof bytes), STATUS_SUCCESS);
    assert_int_equal(get_value(key, u"BIG", &type, data, &size), STATUS_SUCCESS);
    assert_int_equal(type, REG_BINARY);
    assert_int_equal(size, sizeof bytes);
    assert_memory_equal(data, bytes, sizeof bytes);
    assert_int_equal(set_value(key, u"big", REG_SZ, u"x", 4), STATUS_SUCCESS); /* replaced */
    assert_int_equal(get_value(key, u"big", &type, data, &size), STATUS_SUCCESS);
    assert_int_equal(type, REG_SZ);
    assert_int_equal(size, 4);
    assert_int_equal(set_value(key, u"empty", REG_NONE, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(get_value(key, u"empty", &type, data, &size), STATUS_SUCCESS);
    assert_int_equal(size, 0);
    assert_int_equal(set_value(key, NULL, REG_DWORD, "abcd", 4), STATUS_SUCCESS); /* the default */
    assert_int_equal(ZwSetValueKey(key, NULL, 0, REG_DWORD, letters, 4), STATUS_SUCCESS);
    assert_int_equal(get_value(key, u"", &type, data, &size), STATUS_SUCCESS);
    assert_memory_equal(data, "efgh", 4);
    assert_int_equal(set_value(key, u"x", REG_SZ, NULL, 4), STATUS_INVALID_PARAMETER);
    ZwClose(key);
}

static void answers_are_cut_where_the_room_ends(void **state)
{
    const ULONG fixed = FIELD_OFFSET(KEY_VALUE_PARTIAL_INFORMATION, Data);
    static char digits[] = "0123456789";
    HANDLE key = new_key(u"Answers");
    UNICODE_STRING name = RTL_CONSTANT_STRING(u"value");
    union {
        KEY_VALUE_PARTIAL_INFORMATION partial;
        KEY_VALUE_BASIC_INFORMATION basic;
        KEY_VALUE_FULL_INFORMATION full;
        char bytes[100];
    } a;
    ULONG length = 0;

    (void)state;
    assert_int_equal(ZwSetValueKey(key, &name, 0, REG_BINARY, digits, 10), STATUS_SUCCESS);

    assert_int_equal(ZwQueryValueKey(key, &name, KeyValuePartialInformation, NULL, 0, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(length, fixed + 10);
    memset(&a, '#', sizeof a);
    assert_int_equal(
        ZwQueryValueKey(key, &name, KeyValuePartialInformation, &a, fixed - 1, &length),
        STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(a.bytes[0], '#');
    assert_int_equal(
        ZwQueryValueKey(key, &name, KeyValuePartialInformation, &a, fixed + 4, &length),
        STATUS_BUFFER_OVERFLOW);
    assert_int_equal(length, fixed + 10);
    assert_int_equal(a.partial.DataLength, 10); /* all of it, though not all is there */
    assert_memory_equal(a.partial.Data, "0123######", 10);
    assert_int_equal(
        ZwQueryValueKey(key, &name, KeyValuePartialInformation, &a, fixed + 10, &length),
        STATUS_SUCCESS);
    assert_memory_equal(a.partial.Data, "0123456789#", 11);

    memset(&a, '#', sizeof a);
    assert_int_equal(ZwQueryValueKey(key, &name, KeyValueBasicInformation, &a, sizeof a, &length),
                     STATUS_SUCCESS);
    assert_int_equal(length, FIELD_OFFSET(KEY_VALUE_BASIC_INFORMATION, Name) + 10);
    assert_int_equal(a.basic.Type, REG_BINARY);
    assert_memory_equal(a.basic.Name, u"value", 10);

    memset(&a, '#', sizeof a);
    assert_int_equal(ZwQueryValueKey(key, &name, KeyValueFullInformation, &a, sizeof a, &length),
                     STATUS_SUCCESS);
    assert_int_equal(a.full.NameLength, 10);
    assert_int_equal(a.full.DataLength, 10);
    assert_memory_equal(a.full.Name, u"value", 10);
    assert_memory_equal(a.bytes + a.full.DataOffset, "0123456789#", 11);
    assert_int_equal(length, a.full.DataOffset + 10);

    assert_int_equal(ZwQueryValueKey(key, &name, MaxKeyValueInfoClass, &a, sizeof a, &length),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(ZwQueryValueKey(key, &name, KeyValueBasicInformation, &a, sizeof a, NULL),
                     STATUS_INVALID_PARAMETER);
    ZwClose(key);
}

/* ---- handles -------------------------------------------------------------------------------- */

static void rights_are_those_asked_for(void **state)
{
    UNICODE_STRING path = RTL_CONSTANT_STRING(u"\\Registry\\Machine\\Software");
    OBJECT_ATTRIBUTES oa;
    HANDLE reader, writer, all;
    ULONG type, size;
    UCHAR data[8];

    (void)state;
    InitializeObjectAttributes(&oa, &path, OBJ_KERNEL_HANDLE, NULL, NULL);
    assert_int_equal(ZwOpenKey(&reader, KEY_READ, &oa), STATUS_SUCCESS);
    assert_int_equal(ZwOpenKey(&writer, GENERIC_WRITE, &oa), STATUS_SUCCESS);
    assert_int_equal(ZwOpenKey(&all, MAXIMUM_ALLOWED, &oa), STATUS_SUCCESS);
    assert_int_equal(set_value(reader, u"r", REG_DWORD, "abcd", 4), STATUS_ACCESS_DENIED);
    assert_int_equal(set_value(writer, u"r", REG_DWORD, "abcd", 4), STATUS_SUCCESS);
    assert_int_equal(get_value(writer, u"r", &type, data, &size), STATUS_ACCESS_DENIED);
    assert_int_equal(get_value(reader, u"r", &type, data, &size), STATUS_SUCCESS);
    assert_int_equal(get_value(all, u"r", &type, data, &size), STATUS_SUCCESS);
    assert_int_equal(set_value(all, u"r", REG_DWORD, "efgh", 4), STATUS_SUCCESS);
    ZwClose(reader);
    ZwClose(writer);
    ZwClose(all);
}

static void a_closed_handle_is_found_and_not_reused(void **state)
{
    unsigned findings = nt_finding_count();
    HANDLE key = new_key(u"Handles"), next;
    ULONG type, size;
    UCHAR data[8];

    (void)state;
    assert_int_equal((uintptr_t)key % 4, 0);
    assert_int_equal(ZwClose(key), STATUS_SUCCESS);
    assert_int_equal(ZwClose(key), STATUS_INVALID_HANDLE);
    ASSERT_FINDING(findings, "ZwClose: ");
    assert_int_equal(get_value(key, u"x", &type, data, &size), STATUS_INVALID_HANDLE);
    ASSERT_FINDING(findings + 1, "ZwQueryValueKey: ");
    assert_int_equal(set_value(NULL, u"x", REG_DWORD, data, 4), STATUS_INVALID_HANDLE);
    assert_int_equal(nt_finding_count(), findings + 3);
    for (int i = 0; i < 300; i++) {
        next = new_key(u"Handles");
        assert_ptr_not_equal(next, key);
        assert_int_equal(ZwClose(next), STATUS_SUCCESS);
    }
    assert_int_equal(nt_finding_count(), findings + 3);
}

static void many_handles_are_open_at_once(void **state)
{
    enum { MANY = 500 };
    static HANDLE keys[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++)
        keys[i] = new_key(u"Many");
    for (int i = 0; i < MANY; i += 2)
        assert_int_equal(ZwClose(keys[i]), STATUS_SUCCESS);
    for (int i = 0; i < MANY; i += 2)
        keys[i] = new_key(u"Many");
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ZwClose(keys[i]), STATUS_SUCCESS);
}

static void levels_are_checked(void **state)
{
    unsigned findings = nt_finding_count();
    ULONG type, size;
    UCHAR data[8];
    HANDLE key;

    (void)state;
    nt_irql_set(APC_LEVEL);
    create_key(u"\\Registry\\Machine\\Software\\Levels", NULL, 0, &key, NULL);
    ZwClose(key);
    open_key(u"\\Registry\\Machine\\Software\\Levels", NULL, &key);
    set_value(key, u"v", REG_DWORD, "abcd", 4);
    get_value(key, u"v", &type, data, &size);
    ZwClose(key);
    nt_irql_set(PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings + 6);
}

/* ---- the file ------------------------------------------------------------------------------- */

static void file_write(const char *text)
{
    FILE *f = fopen(file, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void file_read(char *text, size_t size)
{
    FILE *f = fopen(file, "r");
    size_t n;

    assert_non_null(f);
    n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    fclose(f);
}

/* What the other process prints: for each value of the key, and then it sets some. */
static void print_value(HANDLE key, const WCHAR *name)
{
    ULONG type, size = 0;
    UCHAR data[9000];
    NTSTATUS status = get_value(key, name, &type, data, &size);

    DbgPrint("%ws: ", name);
    if (status != STATUS_SUCCESS)
        DbgPrint("0x%08X", status);
    else
        DbgPrint("%u", type);
    for (ULONG i = 0; i < size; i++)
        DbgPrint(" %02x", data[i]);
    DbgPrint("\n");
}

static int be_another_process(void)
{
    static const WCHAR text[] = u"say \"\u20ac\" \\ \U0001f600";
    HANDLE key, volatile_key;

    if (open_key(u"\\Registry\\Machine\\Software\\Test", NULL, &key) != STATUS_SUCCESS)
        return 3;
    print_value(key, u"number");
    print_value(key, u"plain");
    print_value(key, u"large");
    print_value(key, u"hex");
    print_value(key, u"text");
    print_value(key, u"multi");
    print_value(key, u"a\"b\\c");
    print_value(key, u"");
    set_value(key, u"text", REG_SZ, text, sizeof text);
    set_value(key, u"number", REG_DWORD, "\x5c\x11\0\0", 4);
    set_value(key, u"bytes", REG_BINARY, "\1\2\xff", 3);
    set_value(key, u"odd", REG_SZ, "abc", 3);      /* no wide text at all */
    set_value(key, u"lone", REG_SZ, u"\xd800", 4); /* nor is this one */
    set_value(key, u"lines", REG_SZ, u"a\nb", 8);
    set_value(key, u"quad", REG_QWORD, "\1\2\3\4\5\6\7\10", 8);
    set_value(key, u"", REG_SZ, u"default", 16);
    create_key(u"Fleeting", key, REG_OPTION_VOLATILE, &volatile_key, NULL);
    set_value(volatile_key, u"v", REG_SZ, u"gone", 10);
    ZwClose(volatile_key);
    create_key(u"Empty", key, 0, &volatile_key, NULL);
    ZwClose(volatile_key);
    ZwClose(key);
    return 0;
}

static void the_file_is_read_and_written(void **state)
{
    char said[4000], text[6000];

    (void)state;
    file_write("\xef\xbb\xbfWindows Registry Editor Version 5.00\r\n"
               "\r\n"
               "; a comment\r\n"
               "[HKEY_LOCAL_MACHINE\\SOFTWARE\\Test]\r\n"
               "\"number\"=dword:0000115C\r\n"
               "\"plain\"= 4444  \n"
               "\"large\"=0x1122334455\n"
               "\"hex\"=hex:01, 02,\\\r\n"
               "  ff\r\n"
               "\"text\"=\"a \\\"b\\\" \\\\ \xc3\xa9\"\n"
               "\"multi\"=hex(7):61,00,00,00\n"
               "\"a\\\"b\\\\c\"=dword:1\n"
               "@=\"d\"\n");
    setenv("SOFTNDK_REGISTRY", file, 1);
    assert_int_equal(self_run("write", said, sizeof said), 0);
    assert_string_equal(said,
                        "number: 4 5c 11 00 00\n"
                        "plain: 4 5c 11 00 00\n"
                        "large: 11 55 44 33 22 11 00 00 00\n"
                        "hex: 3 01 02 ff\n"
                        "text: 1 61 00 20 00 22 00 62 00 22 00 20 00 5c 00 20 00 e9 00 00 00\n"
                        "multi: 7 61 00 00 00\n"
                        "a\"b\\c: 4 01 00 00 00\n"
                        ": 1 64 00 00 00\n");
    file_read(text, sizeof text);
    assert_string_equal(text, "[\\Registry\\Machine\\SOFTWARE\\Test]\n"
                              "\"number\"=dword:0000115c\n"
                              "\"plain\"=dword:0000115c\n"
                              "\"large\"=hex(b):55,44,33,22,11,00,00,00\n"
                              "\"hex\"=hex:01,02,ff\n"
                              "\"text\"=\"say \\\"\xe2\x82\xac\\\" \\\\ \xf0\x9f\x98\x80\"\n"
                              "\"multi\"=hex(7):61,00,00,00\n"
                              "\"a\\\"b\\\\c\"=dword:00000001\n"
                              "@=\"default\"\n"
                              "\"bytes\"=hex:01,02,ff\n"
                              "\"odd\"=hex(1):61,62,63\n"
                              "\"lone\"=hex(1):00,d8,00,00\n"
                              "\"lines\"=hex(1):61,00,0a,00,62,00,00,00\n"
                              "\"quad\"=hex(b):01,02,03,04,05,06,07,08\n"
                              "[\\Registry\\Machine\\SOFTWARE\\Test\\Empty]\n");
    /* Once more from what was written: nothing changes. */
    assert_int_equal(self_run("write", said, sizeof said), 0);
    assert_non_null(strstr(said, "text: 1 73 00 61 00 79 00 20 00 22 00 ac 20 22 00 20 00 5c 00 20 "
                                 "00 3d d8 00 de 00 00\n"));
    assert_non_null(strstr(said, "large: 11 55 44 33 22 11 00 00 00\n"));
    {
        char again[6000];

        file_read(again, sizeof again);
        assert_string_equal(again, text);
    }
    unsetenv("SOFTNDK_REGISTRY");
}

static void lines_without_sense_are_told(void **state)
{
    char said[4000];

    (void)state;
    file_write("\"early\"=dword:1\n"
               "[\\Registry\\Machine\\Software\\Test]\n"
               "nonsense\n"
               "\"x\"=hex:0g\n"
               "\"y\"=dword:123456789\n"
               "\"z=1\n"
               "\"w\"=\"open\n"
               "[Elsewhere]\n"
               "[\\Registry\\Machine\\Software\\Test\n"
               "[\\Registry\\Machine\\Software\\Test]\n"
               "\"number\"=dword:7\n");
    setenv("SOFTNDK_REGISTRY", file, 1);
    assert_int_equal(self_run("write", said, sizeof said), 0);
    for (int line = 1; line <= 9; line++) {
        char want[160];

        snprintf(want, sizeof want, "%s:%d: no registry key or value: ", file, line);
        if (line == 2)
            assert_null(strstr(said, want));
        else if (!strstr(said, want))
            fail_msg("no \"%s\" in \"%s\"", want, said);
    }
    assert_non_null(strstr(said, "number: 4 07 00 00 00\n"));
    setenv("SOFTNDK_REGISTRY", scratch, 1); /* a directory */
    assert_int_equal(self_run("write", said, sizeof said), 3 << 8);
    assert_non_null(strstr(said, "SOFTNDK_REGISTRY: cannot "));
    unsetenv("SOFTNDK_REGISTRY");
}

/* ---- for programs --------------------------------------------------------------------------- */

static void gather(void *context, const char *text)
{
    strcat(context, text);
    strcat(context, "\n");
}

static void programs_set_values_for_drivers(void **state)
{
    static const char key[] =
        "\\Registry\\Machine\\SYSTEM\\CurrentControlSet\\Services\\Nvme\\Parameters";
    static char all[20000];
    ULONG type, size;
    UCHAR data[100];
    HANDLE h;

    (void)state;
    assert_int_equal(softndk_registry_set(key, "Port", "4420"), STATUS_SUCCESS);
    assert_int_equal(softndk_registry_set(key, "Target", "192.168.0.1"), STATUS_SUCCESS);
    assert_int_equal(softndk_registry_set(key, "Blob", "hex:1,2"), STATUS_SUCCESS);
    assert_int_equal(
        open_key(u"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\nvme\\parameters",
                 NULL, &h),
        STATUS_SUCCESS);
    assert_int_equal(get_value(h, u"Port", &type, data, &size), STATUS_SUCCESS);
    assert_int_equal(type, REG_DWORD);
    assert_memory_equal(data, "\x44\x11\0\0", 4);
    assert_int_equal(get_value(h, u"Target", &type, data, &size), STATUS_SUCCESS);
    assert_int_equal(type, REG_SZ);
    assert_memory_equal(data, u"192.168.0.1", 24);
    ZwClose(h);
    softndk_registry_tell(gather, all);
    assert_non_null(strstr(all, "Services\\Nvme\\Parameters]\n\"Port\"=dword:00001144\n"
                                "\"Target\"=\"192.168.0.1\"\n\"Blob\"=hex:01,02\n"));
    assert_int_equal(softndk_registry_set("Elsewhere", "a", "1"), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_registry_set("\\Registry\\\\x", "a", "1"), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_registry_set(key, "a", "hex:x"), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_registry_set(NULL, "a", "1"), STATUS_INVALID_PARAMETER);
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("SOFTNDK_REGISTRY");
    scratch_make(scratch);
    snprintf(file, sizeof file, "%s/registry", scratch);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(scratch);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_made_below_what_exists),
        cmocka_unit_test(names_must_be_whole_paths),
        cmocka_unit_test(values_come_back_as_they_were_set),
        cmocka_unit_test(answers_are_cut_where_the_room_ends),
        cmocka_unit_test(rights_are_those_asked_for),
        cmocka_unit_test(a_closed_handle_is_found_and_not_reused),
        cmocka_unit_test(many_handles_are_open_at_once),
        cmocka_unit_test(levels_are_checked),
        cmocka_unit_test(the_file_is_read_and_written),
        cmocka_unit_test(lines_without_sense_are_told),
        cmocka_unit_test(programs_set_values_for_drivers),
    };

    (void)argv;
    if (argc > 1)
        return be_another_process();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
