// SPDX-License-Identifier: MIT
/*
 * The configuration's text: what is taken, what is refused and in which words with which line, how
 * host addresses are given out; and texts broken in every way, which must neither crash the reader
 * nor leave two of anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "ndis/config.h"
#include "base/mixed_text_test.h"

static bool add(struct config *config, const char *text, size_t length, char *error, size_t size)
{
    /* A copy of its exact length, so that a read beyond it shows under a sanitizer. */
    char *copy = malloc(length ? length : 1);
    bool good;

    assert_non_null(copy);
    memcpy(copy, text, length);
    error[0] = '\0';
    good = config_add_file(config, "etc/here", copy, length, error, size);
    free(copy);
    return good;
}

static void takes(struct config *config, const char *text)
{
    char error[600];

    config_init(config);
    if (!add(config, text, strlen(text), error, sizeof error))
        fail_msg("refused: %s", error);
}

static void refuses(const char *text, const char *sentence)
{
    struct config config;
    char error[600];

    config_init(&config);
    if (add(&config, text, strlen(text), error, sizeof error))
        fail_msg("taken: %s", text);
    assert_string_equal(error, sentence);
    config_free(&config);
}

static const char *host_of(const struct config *config, const char *ndk)
{
    static char text[OS_ADDR_TEXT_MAX];
    struct os_addr address;

    assert_int_equal(os_addr_parse(ndk, &address), 0);
    for (unsigned i = 0; i < config->pair_count; i++)
        if (memcmp(config->pairs[i].pair.ndk.ip, address.ip, 16) == 0)
            return os_addr_text(&config->pairs[i].pair.host, false, text);
    return "none";
}

/* ---- what is taken -------------------------------------------------------------------------- */

static const char whole[] = "\xef\xbb\xbf# everything\r\n"
                            "[interface 12]\n"
                            "alias = \"Ethernet #2 \xc3\xa4 \\\"x\\\"\"  # as Windows calls it\n"
                            "host = eth0\n"
                            "address = 10.0.0.1\n"
                            "address = fd00::1 = 192.168.7.1\n"
                            "mtu = 9000\n"
                            "mac = 02:00:00:00:00:0C\n"
                            "profile = strict\n"
                            "crc = off\n"
                            "[interface 15]\r\n"
                            "address = 10.0.0.2 = 127.0.0.2\r\n"
                            "address = fe80::5\n"
                            "[peer]\n"
                            "10.0.0.9 = 192.168.7.9\n"
                            "fd00::9=fd01::9\n"
                            "[options]\n"
                            "frmr_pages = 0x20\n"
                            "profile = cx3\n"
                            "[registry]\n"
                            "file = driver.reg\n"
                            "[HKEY_LOCAL_MACHINE\\SOFTWARE\\A]\n"
                            "\"Dep=th\" = dword:40\n"
                            "Mode = \"a # b\"\n"
                            "@ = 7";

static void everything_is_taken(void **state)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 12};
    struct config c;

    (void)state;
    takes(&c, whole);
    assert_int_equal(c.interface_count, 2);
    assert_int_equal(c.interfaces[0].index, 12);
    assert_int_equal(c.interfaces[0].origin.line, 2);
    assert_string_equal(c.interfaces[0].origin.where, "etc/here");
    assert_string_equal(c.interfaces[0].alias, "Ethernet #2 \xc3\xa4 \"x\"");
    assert_string_equal(c.interfaces[0].host, "eth0");
    assert_int_equal(c.interfaces[0].mtu, 9000);
    assert_memory_equal(c.interfaces[0].mac, mac, 6);
    assert_string_equal(c.interfaces[0].settings.profile, "strict");
    assert_string_equal(c.interfaces[0].settings.text, "crc=0");
    assert_ptr_equal(config_interface_of(&c, 15), &c.interfaces[1]);
    assert_null(config_interface_of(&c, 13));
    assert_int_equal(c.pair_count, 6);
    assert_string_equal(host_of(&c, "10.0.0.1"), "127.0.0.3"); /* .2 is written further below */
    assert_string_equal(host_of(&c, "fd00::1"), "192.168.7.1");
    assert_string_equal(host_of(&c, "fe80::5"), "127.0.0.4");
    assert_int_equal(c.pairs[3].pair.ndk.scope_id, 15);
    assert_string_equal(host_of(&c, "fd00::9"), "fd01::9");
    assert_int_equal(c.pairs[5].index, CONFIG_PEER);
    assert_string_equal(c.settings.text, "frmr_pages=32");
    assert_string_equal(c.settings.profile, "cx3");
    assert_string_equal(c.registry, "etc/driver.reg");
    assert_int_equal(c.value_count, 3);
    assert_string_equal(c.values[0].key, "HKEY_LOCAL_MACHINE\\SOFTWARE\\A");
    assert_string_equal(c.values[0].name, "Dep=th");
    assert_string_equal(c.values[0].value, "dword:40");
    assert_string_equal(c.values[1].name, "Mode");
    assert_string_equal(c.values[1].value, "\"a # b\"");
    assert_string_equal(c.values[2].name, "");
    config_free(&c);
}

static void nothing_is_a_configuration(void **state)
{
    struct config c;

    (void)state;
    takes(&c, "\n# nothing\n[peer]\n[options]\n");
    assert_int_equal(c.interface_count + c.pair_count + c.value_count, 0);
    config_free(&c);
}

/* Two processes with one file agree, whatever else their environments say. */
static void host_addresses_are_the_files(void **state)
{
    static const char text[] = "[interface 3]\naddress = 10.0.0.1\naddress = 10.0.0.2\n";
    struct config c;
    char error[300];

    (void)state;
    takes(&c, text);
    assert_string_equal(host_of(&c, "10.0.0.1"), "127.0.0.2");
    assert_string_equal(host_of(&c, "10.0.0.2"), "127.0.0.3");
    assert_true(config_add_interfaces(&c, "I", "4=10.0.0.4, 5=10.0.0.5=127.0.0.5\t4=10.0.0.6",
                                      error, sizeof error));
    assert_string_equal(host_of(&c, "10.0.0.1"), "127.0.0.2");
    assert_string_equal(host_of(&c, "10.0.0.4"), "127.0.0.4");
    assert_string_equal(host_of(&c, "10.0.0.6"), "127.0.0.6");
    assert_true(config_add_peers(&c, "P", "10.0.0.9=192.168.1.1", error, sizeof error));
    assert_int_equal(c.interface_count, 3);
    assert_false(config_add_peers(&c, "P", "10.0.0.10=127.0.0.2", error, sizeof error));
    assert_string_equal(error, "P:1: host address 127.0.0.2: is given twice (first in etc/here:2, "
                               "automatically)");
    config_free(&c);
}

static void the_host_addresses_run_out(void **state)
{
    static char text[20000];
    size_t used = 0;

    (void)state;
    for (unsigned i = 0; i < 254; i++) {
        if (i % 16 == 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "[interface %u]\n", i + 1);
        used += (size_t)snprintf(text + used, sizeof text - used, "address = 10.0.0.%u\n", i + 1);
    }
    refuses(text, "etc/here:270: no host address 127.0.0.2 to 127.0.0.254 is left (need one "
                  "written behind =)");
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void faults_are_named_with_their_line(void **state)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"\nx = 1\n", "2: have \"x\" before any [section]"},
        {"[nonsense]", "1: unknown section [nonsense] (need interface INDEX, peer, options, "
                       "registry, or a registry key, HKEY_LOCAL_MACHINE\\...)"},
        {"[peer", "1: have \"[peer\", need [section]"},
        {"[peer] x", "1: have \"[peer] x\", need [section]"},
        {"[interface 0]", "1: have interface \"0\", need an index from 1 to 16777215"},
        {"[interface 16777216]",
         "1: have interface \"16777216\", need an index from 1 to 16777215"},
        {"[interface 4294967297]",
         "1: have interface \"4294967297\", need an index from 1 to 16777215"},
        {"[interface x]", "1: have interface \"x\", need an index from 1 to 16777215"},
        {"[interface 1 2]", "1: have interface \"1 2\", need an index from 1 to 16777215"},
        {"\n[interface 12]\nhost = lo\n\n[interface 12]\n",
         "5: interface 12: is given twice (first in etc/here:2)"},
        {"[interface 12]\n[peer]\n",
         "1: interface 12: has neither an address nor a host interface"},
        {"[interface 1]\nspeed = 5", "2: unknown key \"speed\" (need alias, host, address, mtu, "
                                     "mac, *NetworkDirect, profile, or an option: ndkinfo "
                                     "--options)"},
        {"[interface 1]\n*NetworkDirect = 2",
         "2: *NetworkDirect: have \"2\", need 0 (no NDK) or 1"},
        {"[interface 1]\n*NetworkDirect = 10",
         "2: *NetworkDirect: have \"10\", need 0 (no NDK) or 1"},
        {"[interface 1]\n*NetworkDirect = 0\n*networkdirect = 0",
         "3: *NetworkDirect: is given twice (first in line 2)"},
        {"[interface 1]\nhost", "2: have \"host\", need key = value"},
        {"[interface 1]\nhost =", "2: host: have \"\", need a name"},
        {"[interface 1]\nhost = a\nhost = a", "3: host: is given twice (first in line 2)"},
        {"[interface 1]\nalias = \"a\" b", "2: there is something behind the text in quotes"},
        {"[interface 1]\nalias = \"a", "2: a quote is not closed"},
        {"[interface 1]\nalias = caf\xc3\xa9", "2: octet 0xc3 in column 12 (need printable ASCII)"},
        {"[interface 1]\nalias = \"\xc3\"",
         "2: octet 0xc3 in column 10 (need printable ASCII or UTF-8)"},
        {"[interface 1]\nalias = \"\xc2\x9b\"",
         "2: octet 0xc2 in column 10 (need printable ASCII or UTF-8)"},
        {"[interface 1]\nhost = x\nalias = A\n[interface 2]\nalias = a\n",
         "5: alias \"a\": interface 1 has it (etc/here:3)"},
        {"[interface 1]\nalias = 0123456789012345678901234567890123456789012345678901234567890123",
         "2: the text is too long (have 64 octets, need <= 63)"},
        {"[interface 1]\nmtu = 575",
         "2: mtu: have \"575\", need a number from 576 to 65536, octets"},
        {"[interface 1]\nmtu = 1500x",
         "2: mtu: have \"1500x\", need a number from 576 to 65536, octets"},
        {"[interface 1]\nmac = 02:00:00:00:00",
         "2: mac: have \"02:00:00:00:00\", need six octets, 02:00:00:00:00:0c"},
        {"[interface 1]\nmac = 02:00:00:00:00:0g",
         "2: mac: have \"02:00:00:00:00:0g\", need six octets, 02:00:00:00:00:0c"},
        {"[interface 1]\nprofile = a/b", "2: profile: have \"a/b\", need a name of at most 32 "
                                         "letters, digits, '-', '_' and '.'"},
        {"[interface 1]\nprofile = a\nprofile = b", "3: profile: is given twice (first in line 2)"},
        {"[interface 1]\nfrmr_pages = 3",
         "2: option frmr_pages: have \"3\", need a number from 16 to 65536, pages"},
        {"[options]\ncrc = 1\ncrc = 1\n", "3: option crc: is given twice (first in line 2)"},
        {"[options]\nnonsense = 1",
         "2: unknown option \"nonsense\" (ndkinfo --options lists them)"},
        {"[interface 1]\naddress = ten",
         "2: NDK address: have \"ten\", need an IPv4 or IPv6 address"},
        {"[interface 1]\naddress = 10.0.0.1:80",
         "2: NDK address: have \"10.0.0.1:80\", need an address without a port"},
        {"[interface 1]\naddress = 0.0.0.0",
         "2: NDK address: have \"0.0.0.0\", need one address, not all"},
        {"[interface 1]\naddress = 239.1.1.1", "2: NDK address: have \"239.1.1.1\", need the "
                                               "address of one interface, not of a group or "
                                               "network"},
        {"[interface 1]\naddress = ff02::1", "2: NDK address: have \"ff02::1\", need the address "
                                             "of one interface, not of a group or network"},
        {"[interface 1]\naddress = ::ffff:10.0.0.1",
         "2: NDK address: have \"::ffff:10.0.0.1\", need an IPv4 address written as one"},
        {"[interface 1]\naddress = fe80::1%7",
         "2: NDK address: have zone 7, need the interface's, 1, or none"},
        {"[interface 1]\naddress = 10.0.0.1 =",
         "2: host address: have \"\", need an IPv4 or IPv6 address"},
        {"[interface 1]\naddress = 10.0.0.1 = ::1",
         "2: host address: have \"::1\", need an IPv4 address for an IPv4 one"},
        {"[interface 1]\naddress = 10.0.0.1\n[interface 2]\naddress = 10.0.0.1\n",
         "4: NDK address 10.0.0.1: is given twice (first in etc/here:2)"},
        {"[peer]\n10.0.0.1 = 127.0.0.9\n10.0.0.2 = 127.0.0.9\n",
         "3: host address 127.0.0.9: is given twice (first in etc/here:2)"},
        {"[peer]\n10.0.0.1 = 127.0.0.9\n10.0.0.1 = 127.0.0.8\n",
         "3: NDK address 10.0.0.1: is given twice (first in etc/here:2)"},
        {"[peer]\n10.0.0.1 =", "2: host address: have \"\", need an IPv4 or IPv6 address"},
        {"[registry]\npath = x", "2: unknown key \"path\" (need file)"},
        {"[registry]\nfile = x\n[registry]\nfile = y", "4: file: is given twice (first in line 2)"},
        {"[\\Registry\\Machine\\]",
         "1: have [\\Registry\\Machine\\], need a registry key without empty names"},
        {"[HKEY_USERS\\a # b]", "1: have \"[HKEY_USERS\\a\", need [section]"},
        {"[HKEY_USERS\\a]\n\"b\" = dword:xyz", "2: registry value: have dword:xyz, need a number, "
                                               "dword:HEX, qword:HEX, hex:..., or a text"},
        {"[HKEY_USERS\\a]\n\"b\" = 1\n[HKEY_USERS\\A]\nB = 2\n",
         "4: registry value \"B\": is given twice (first in line 2)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char sentence[400];

        snprintf(sentence, sizeof sentence, "etc/here:%s", cases[i].sentence);
        refuses(cases[i].text, sentence);
    }
}

static void variables_are_lists(void **state)
{
    static const struct {
        bool peers;
        const char *text, *sentence;
    } cases[] = {
        {false, "12", "V:1: have \"12\", need INDEX=ADDRESS[=HOST]"},
        {false, "12=10.0.0.1,13", "V:2: have \"13\", need INDEX=ADDRESS[=HOST]"},
        {false, "x=10.0.0.1", "V:1: have interface \"x\", need an index from 1 to 16777215"},
        {false, "7=10.0.0.1", "V:1: interface 7: is given twice (first in etc/here:1)"},
        {false, "8=10.0.0.1,8=10.0.0.1",
         "V:2: NDK address 10.0.0.1: is given twice (first in V:1)"},
        {false, "8=\x1b[2J", "V:1: octet 0x1b (need printable ASCII)"},
        {true, "10.0.0.1", "V:1: have \"10.0.0.1\", need ADDRESS=HOST"},
        {true, "10.0.0.1=", "V:1: host address: have \"\", need an IPv4 or IPv6 address"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c;
        char error[400];

        takes(&c, "[interface 7]\nhost = lo\n");
        assert_false((cases[i].peers ? config_add_peers : config_add_interfaces)(
            &c, "V", cases[i].text, error, sizeof error));
        assert_string_equal(error, cases[i].sentence);
        config_free(&c);
    }
}

/* ---- broken texts --------------------------------------------------------------------------- */

/* Whatever the text: refused with a sentence that names the place, or nothing of it twice. */
static void judge(const char *text, size_t length)
{
    struct config c;
    char error[600];

    config_init(&c);
    if (!add(&c, text, length, error, sizeof error)) {
        assert_int_equal(strncmp(error, "etc/here:", 9), 0);
        for (const unsigned char *p = (unsigned char *)error; *p; p++)
            assert_true(*p == '\t' || (*p >= 0x20 && *p != 0x7f));
        config_free(&c);
        return;
    }
    for (unsigned i = 0; i < c.interface_count; i++)
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(c.interfaces[i].index, c.interfaces[k].index);
    for (unsigned i = 0; i < c.pair_count; i++) {
        assert_int_not_equal(c.pairs[i].pair.host.family, OS_FAMILY_NONE);
        for (unsigned k = 0; k < i; k++) {
            assert_false(os_addr_ip_equal(&c.pairs[i].pair.ndk, &c.pairs[k].pair.ndk));
            assert_false(os_addr_ip_equal(&c.pairs[i].pair.host, &c.pairs[k].pair.host));
        }
    }
    config_free(&c);
}

static void every_beginning_of_a_text(void **state)
{
    (void)state;
    for (size_t length = 0; length < sizeof whole; length++)
        judge(whole, length);
}

static void every_octet_changed(void **state)
{
    static const unsigned char octets[] = "\0\n\r\t \"#=[]\\:.%0\x80\xff";
    char text[sizeof whole - 1];

    (void)state;
    for (size_t at = 0; at < sizeof text; at++)
        for (size_t i = 0; i < sizeof octets; i++) {
            memcpy(text, whole, sizeof text);
            text[at] = (char)octets[i];
            judge(text, sizeof text);
        }
}

static void texts_cut_and_mixed(void **state)
{
    static const char alphabet[] = "=#\n\r\t \"[]\\1.,:\0\xff\xc3\xa4";
    const struct mixture mixture = {.good = whole,
                                    .octets = alphabet,
                                    .good_length = sizeof whole - 1,
                                    .octet_count = sizeof alphabet - 1,
                                    .piece = 60,
                                    .pieces = 16};
    char text[1500];

    (void)state;
    for (unsigned round = 0; round < 10000; round++)
        judge(text, mixed_text(&mixture, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_taken),
        cmocka_unit_test(nothing_is_a_configuration),
        cmocka_unit_test(host_addresses_are_the_files),
        cmocka_unit_test(the_host_addresses_run_out),
        cmocka_unit_test(faults_are_named_with_their_line),
        cmocka_unit_test(variables_are_lists),
        cmocka_unit_test(every_beginning_of_a_text),
        cmocka_unit_test(every_octet_changed),
        cmocka_unit_test(texts_cut_and_mixed),
    };

    return cmocka_run_group_tests_name("configuration", tests, NULL, NULL);
}
