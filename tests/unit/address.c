/* address.c - an address is taken exactly, written in one way, or refused with what is wrong and where.
 *
 * Every text is parsed from a heap block of just its size, without a NUL, so that the sanitizer sees a byte
 * read too many. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <linkpool/error.h>
#include <linkpool/link.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "link/address.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define PATH_107     "/23456789" TEN TEN TEN TEN TEN TEN TEN TEN TEN "01234567"
#define TEN          "0123456789"

enum {
    NO_INTERFACE = 1000003,
    WHY = 160
};

/* Each form an address can take, in canonical text. */
static const char *const canonical[] = {
    "10.0.0.7:80",
    "0.0.0.0:1",
    "255.255.255.255:65535",
    "[::]:1",
    "[::1]:80",
    "[2001:db8::1:0:0:1]:443",
    "[2001:db8:0:1:1:1:1:1]:443",
    "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
    "[::ffff:10.0.0.1]:80",
    "[fe80::1]:80",
    "[fe80::1%lo]:80",
    "[ff02::1%lo]:80",
    "[fe80::1%1000003]:80",
    "unix:/",
    "unix:/run/x.sock",
    "unix:/run/with space:80",
    "unix:" PATH_107,
    "unix:@a",
    "unix:@linkpool/abstract",
    "unix:@" PATH_107,
};

static int parse(const char *text, size_t length, struct link_address *address, char why[WHY])
{
    char *exact = malloc(length > 0 ? length : 1);
    int error;

    memcpy(exact, text, length);
    error = link_address_parse(exact, length, address, why, why != NULL ? WHY : 0);
    free(exact);
    return error;
}

static struct link_address accepted(const char *text)
{
    struct link_address address;
    char why[WHY] = "";

    cr_assert(zero(int, parse(text, strlen(text), &address, why)), "%s: %s", text, why);
    return address;
}

static void expect_text(const char *text, const char *expected)
{
    struct link_address address = accepted(text);
    char written[LINK_ADDRESS_TEXT];

    link_address_format(&address, written);
    cr_expect(eq(str, written, (char *)expected));
}

static void expect_refused(const char *text, const char *why)
{
    struct link_address address;
    char told[WHY] = "";

    cr_expect(eq(int, parse(text, strlen(text), &address, told), LINKPOOL_EADDRESS), "%s", text);
    cr_expect(eq(str, told, (char *)why), "%s", text);
}

Test(address, ipv4_is_what_connect_takes)
{
    struct link_address address = accepted("10.1.2.200:8080");

    cr_assert(eq(sz, address.size, sizeof(struct sockaddr_in)));
    cr_assert(eq(int, address.name.in.sin_family, AF_INET));
    cr_assert(zero(int, memcmp(&address.name.in.sin_addr, "\x0a\x01\x02\xc8", 4)));
    cr_assert(zero(int, memcmp(&address.name.in.sin_port, "\x1f\x90", 2)));
}

Test(address, ipv6_is_what_connect_takes)
{
    struct link_address address = accepted("[fe80::1%lo]:258");

    cr_assert(eq(sz, address.size, sizeof(struct sockaddr_in6)));
    cr_assert(eq(int, address.name.in6.sin6_family, AF_INET6));
    cr_assert(zero(int, memcmp(&address.name.in6.sin6_addr, "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16)));
    cr_assert(zero(int, memcmp(&address.name.in6.sin6_port, "\1\2", 2)));
    cr_assert(eq(uint, address.name.in6.sin6_scope_id, if_nametoindex("lo")));
    cr_assert(zero(uint, address.name.in6.sin6_flowinfo));
    cr_assert(zero(uint, accepted("[fe80::1]:258").name.in6.sin6_scope_id));
}

Test(address, a_unix_path_counts_its_NUL_and_an_abstract_name_has_none)
{
    const size_t before = offsetof(struct sockaddr_un, sun_path);
    struct link_address path = accepted("unix:/run/x");
    struct link_address abstract = accepted("unix:@run/x");

    cr_assert(eq(int, path.name.un.sun_family, AF_UNIX));
    cr_assert(eq(sz, path.size, before + sizeof "/run/x"));
    cr_assert(eq(str, path.name.un.sun_path, "/run/x"));
    cr_assert(eq(int, abstract.name.un.sun_family, AF_UNIX));
    cr_assert(eq(sz, abstract.size, before + 1 + strlen("run/x")));
    cr_assert(zero(int, memcmp(abstract.name.un.sun_path, "\0run/x\0", sizeof "\0run/x")));
}

Test(address, the_longest_path_and_abstract_name_are_kept_whole)
{
    cr_assert(eq(sz, accepted("unix:" PATH_107).size, sizeof(struct sockaddr_un)));
    cr_assert(eq(str, accepted("unix:" PATH_107).name.un.sun_path, PATH_107));
    cr_assert(eq(sz, accepted("unix:@" PATH_107).size, sizeof(struct sockaddr_un)));
    cr_assert(zero(int, memcmp(accepted("unix:@" PATH_107).name.un.sun_path + 1, PATH_107, 107)));
}

Test(address, canonical_text_comes_back_as_it_was)
{
    for (size_t i = 0; i < COUNT(canonical); i++)
        expect_text(canonical[i], canonical[i]);
}

Test(address, ipv6_is_written_as_RFC_5952_asks)
{
    expect_text("[0:0:0:0:0:0:0:1]:80", "[::1]:80");
    expect_text("[2001:0DB8::0001]:80", "[2001:db8::1]:80");
    expect_text("[2001:db8:0:0:1:0:0:1]:80", "[2001:db8::1:0:0:1]:80");
    expect_text("[2001:db8:0:0:0:1:0:0]:80", "[2001:db8::1:0:0]:80");
    expect_text("[2001:db8::1:1:1:1:1]:80", "[2001:db8:0:1:1:1:1:1]:80");
    expect_text("[ABCD:EF01:2345:6789:ABCD:EF01:2345:6789]:80", "[abcd:ef01:2345:6789:abcd:ef01:2345:6789]:80");
}

Test(address, mapped_ipv4_stays_ipv6_and_has_one_text)
{
    expect_text("[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.1]:80");
    expect_text("[::FFFF:a00:1]:80", "[::ffff:10.0.0.1]:80");
    expect_text("[0000:0000:0000:0000:0000:ffff:010a:0001]:80", "[::ffff:1.10.0.1]:80");
    expect_text("[0000:0000:0000:0000:0000:ffff:255.255.255.255]:80", "[::ffff:255.255.255.255]:80");
    cr_assert(eq(int, accepted("[::ffff:10.0.0.1]:80").name.any.sa_family, AF_INET6));
}

Test(address, a_scope_by_number_is_the_scope_by_name)
{
    char by_number[64];

    snprintf(by_number, sizeof by_number, "[fe80::1%%%u]:80", if_nametoindex("lo"));
    expect_text(by_number, "[fe80::1%lo]:80");
    expect_text("[FE80:0::1%lo]:80", "[fe80::1%lo]:80");
}

Test(address, a_number_that_no_interface_has_stays_a_number)
{
    char name[IF_NAMESIZE];

    cr_assert(eq(ptr, if_indextoname(NO_INTERFACE, name), NULL), "this machine has interface %d", NO_INTERFACE);
    cr_assert(eq(uint, accepted("[fe80::1%1000003]:80").name.in6.sin6_scope_id, NO_INTERFACE));
    expect_text("[fe80::1%4294967295]:80", "[fe80::1%4294967295]:80");
}

Test(address, different_places_have_different_texts)
{
    static const char *const places[] = {"10.0.0.1:80", "10.0.0.1:81", "[::ffff:10.0.0.1]:80", "[fe80::1]:80",
        "[fe80::1%lo]:80", "[fe80::1%1000003]:80", "unix:/run/a", "unix:/run/ab", "unix:/run/a/", "unix://run/a",
        "unix:@/run/a", "unix:@run/a", "unix:/run/A"};
    char texts[COUNT(places)][LINK_ADDRESS_TEXT];

    for (size_t i = 0; i < COUNT(places); i++) {
        struct link_address address = accepted(places[i]);
        link_address_format(&address, texts[i]);
        for (size_t j = 0; j < i; j++)
            cr_assert(ne(str, texts[i], texts[j]));
    }
}

Test(address, refuses_an_empty_text_or_host)
{
    expect_refused("", "the text is empty, at byte 0");
    expect_refused(":80", "the host is missing, at byte 0");
    expect_refused(":", "the host is missing, at byte 0");
    expect_refused("[]:80", "the host is missing, at byte 1");
    expect_refused("[%lo]:80", "the host is missing, at byte 1");
}

Test(address, refuses_ipv4_that_others_read_otherwise)
{
    expect_refused("127.1:80", "fewer than four numbers in the IPv4 address, at byte 5");
    expect_refused("2130706433:80", "a number over 255 in the IPv4 address, at byte 0");
    expect_refused("0x7f.1:80", "not an IPv4 address, and names are not resolved yet, at byte 1");
    expect_refused("010.0.0.1:80", "a leading zero in the IPv4 address, at byte 0");
    expect_refused("10.0.0.01:80", "a leading zero in the IPv4 address, at byte 7");
    expect_refused("10.0.00.1:80", "a leading zero in the IPv4 address, at byte 5");
    expect_refused("10.0.0.256:80", "a number over 255 in the IPv4 address, at byte 7");
    expect_refused("10.0.0.18446744073709551617:80", "a number over 255 in the IPv4 address, at byte 7");
    expect_refused("10.0.0.1.:80", "more than four numbers in the IPv4 address, at byte 8");
    expect_refused("1.2.3.4.5:80", "more than four numbers in the IPv4 address, at byte 7");
    expect_refused("10..0.1:80", "a number of the IPv4 address is missing, at byte 3");
    expect_refused("10.0.0.:80", "a number of the IPv4 address is missing, at byte 7");
    expect_refused(".10.0.0:80", "a number of the IPv4 address is missing, at byte 0");
    expect_refused("10.0.0.-1:80", "not an IPv4 address, and names are not resolved yet, at byte 7");
    expect_refused(" 10.0.0.1:80", "a byte that no host has, at byte 0");
    expect_refused("10.0.0.1 :80", "a byte that no host has, at byte 8");
    expect_refused("10.0.0.1%lo:80", "a byte that no host has, at byte 8");
}

Test(address, refuses_names_since_they_are_not_resolved_yet)
{
    expect_refused("db:5432", "not an IPv4 address, and names are not resolved yet, at byte 0");
    expect_refused("3com.example:80", "not an IPv4 address, and names are not resolved yet, at byte 1");
    expect_refused("A.example:080", "not an IPv4 address, and names are not resolved yet, at byte 0");
    expect_refused("b\xc3\xbc"
                   "cher.example:80",
        "not an IPv4 address, and names are not resolved yet, at byte 0");
    expect_refused("\xc3\xa4.example:80", "not an IPv4 address, and names are not resolved yet, at byte 0");
    expect_refused("UNIX:/run/x", "not an IPv4 address, and names are not resolved yet, at byte 0");
    expect_refused("/run/x.sock", "a unix address begins with unix:, at byte 0");
    expect_refused("@abstract", "a unix address begins with unix:, at byte 0");
    expect_refused("user@10.0.0.1:80", "not an IPv4 address, and names are not resolved yet, at byte 0");
    expect_refused("1@10.0.0.1:80", "a byte that no host has, at byte 1");
}

Test(address, refuses_a_port_that_is_not_1_to_65535_in_plain_digits)
{
    expect_refused("10.0.0.7", "a colon and the port are missing, at byte 8");
    expect_refused("10.0.0.7:", "the digits of the port are missing, at byte 9");
    expect_refused("10.0.0.7:0", "the port is 0, at byte 9");
    expect_refused("10.0.0.7:65536", "the port is over 65535, at byte 9");
    expect_refused("10.0.0.7:4294967376", "the port is over 65535, at byte 9");
    expect_refused("10.0.0.7:18446744073709551696", "the port is over 65535, at byte 9");
    expect_refused("10.0.0.7:080", "a leading zero in the port, at byte 9");
    expect_refused("10.0.0.7:00", "a leading zero in the port, at byte 9");
    expect_refused("10.0.0.7:+80", "the digits of the port are missing, at byte 9");
    expect_refused("10.0.0.7: 80", "the digits of the port are missing, at byte 9");
    expect_refused("10.0.0.7:80 ", "a byte that is no digit after the port, at byte 11");
    expect_refused("10.0.0.7:80/x", "a byte that is no digit after the port, at byte 11");
    expect_refused("10.0.0.7:80:90", "a byte that is no digit after the port, at byte 11");
    expect_refused("[::1]", "a colon and the port are missing, at byte 5");
    expect_refused("[::1]80", "a colon and the port are missing, at byte 5");
    expect_refused("[::1]:0", "the port is 0, at byte 6");
    expect_refused("[::1]:80]", "a byte that is no digit after the port, at byte 8");
}

Test(address, refuses_what_is_no_ipv6_in_brackets)
{
    expect_refused("::1:80", "an IPv6 address needs brackets, as in [::1]:80, at byte 0");
    expect_refused("2001:db8::1:80", "an IPv6 address needs brackets, as in [::1]:80, at byte 0");
    expect_refused("[::1:80", "the closing bracket is missing, at byte 7");
    expect_refused("[", "the closing bracket is missing, at byte 1");
    expect_refused("[10.0.0.1]:80", "not an IPv6 address, at byte 1");
    expect_refused("[1:2:3]:80", "not an IPv6 address, at byte 1");
    expect_refused("[1::2::3]:80", "not an IPv6 address, at byte 1");
    expect_refused("[::12345]:80", "not an IPv6 address, at byte 1");
    expect_refused("[::ffff:10.0.0.01]:80", "not an IPv6 address, at byte 1");
    expect_refused("[::ffff:10.0.1]:80", "not an IPv6 address, at byte 1");
    expect_refused("[localhost]:80", "a byte that no IPv6 address has, at byte 1");
    expect_refused("[::1 ]:80", "a byte that no IPv6 address has, at byte 4");
    expect_refused("[[::1]]:80", "a byte that no IPv6 address has, at byte 1");
    expect_refused("[0000:0000:0000:0000:0000:ffff:255.255.255.2555]:80", "too long for an IPv6 address, at byte 46");
}

Test(address, refuses_a_scope_that_is_unknown_or_means_nothing)
{
    expect_refused("[fe80::1%]:80", "the scope is missing, at byte 9");
    expect_refused("[fe80::1%no-such]:80", "no interface has this name, at byte 9");
    expect_refused("[fe80::1%lo ]:80", "no interface has this name, at byte 9");
    expect_refused("[fe80::1%lo:1]:80", "no interface has this name, at byte 9");
    expect_refused("[fe80::1%lo%lo]:80", "no interface has this name, at byte 9");
    expect_refused("[fe80::1%0123456789abcde]:80", "no interface has this name, at byte 9");
    expect_refused("[fe80::1%loxxxxxxxxxxxxxx]:80", "no interface has this name, at byte 9");
    expect_refused("[fe80::1%1x]:80", "no interface has this name, at byte 9");
    expect_refused("[fe80::1%+1]:80", "no interface has this name, at byte 9");
    expect_refused("[fe80::1%0]:80", "the number of the scope is 0, at byte 9");
    expect_refused("[fe80::1%01]:80", "a leading zero in the number of the scope, at byte 9");
    expect_refused("[fe80::1%4294967296]:80", "the number of the scope is over 4294967295, at byte 9");
    expect_refused("[fe80::1%25lo]:80", "%25 is an escape of URLs: write % alone, at byte 9");
    expect_refused("[fe80::1%251000003]:80", "%25 is an escape of URLs: write % alone, at byte 9");
    expect_refused("[::1%lo]:80", "a scope where there is none: the address is not link-local, at byte 5");
    expect_refused("[2001:db8::1%1]:80", "a scope where there is none: the address is not link-local, at byte 13");
    expect_refused("[ff05::1%lo]:80", "a scope where there is none: the address is not link-local, at byte 9");
    expect_refused("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%averyveryverylongzone]:80",
        "a scope where there is none: the address is not link-local, at byte 47");
}

Test(address, a_scope_that_cannot_be_looked_up_for_want_of_descriptors_is_not_called_unknown)
{
    struct rlimit limit;
    rlim_t soft;
    char why[WHY] = "";

    cr_assert(zero(int, getrlimit(RLIMIT_NOFILE, &limit)));
    soft = limit.rlim_cur;
    limit.rlim_cur = 0;
    cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &limit)));
    int error = link_address_check("[fe80::1%lo]:80", why, sizeof why);
    limit.rlim_cur = soft;
    cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &limit)));
    cr_assert(eq(int, error, LINKPOOL_EADDRESS));
    cr_assert(eq(str, why, "the interfaces cannot be looked up now, at byte 9"));
}

Test(address, refuses_unix_addresses_that_are_cut_empty_or_relative)
{
    static const char *const neither = "neither an absolute path nor @ and an abstract name, at byte 5";

    expect_refused("unix:", neither);
    expect_refused("unix:run/x.sock", neither);
    expect_refused("unix:./x", neither);
    expect_refused("unix: /x", neither);
    expect_refused("unix:@", "the abstract name is empty, at byte 6");
    expect_refused("unix:" PATH_107 "8", "a path of 108 bytes or more: 107 is the most, at byte 112");
    expect_refused("unix:" PATH_107 "89", "a path of 108 bytes or more: 107 is the most, at byte 112");
    expect_refused("unix:@" PATH_107 "8", "an abstract name of 108 bytes or more: 107 is the most, at byte 113");
}

Test(address, refuses_a_NUL_wherever_it_stands)
{
    struct link_address address;
    char why[WHY], expected[WHY], text[LINK_ADDRESS_TEXT];

    for (size_t i = 0; i < COUNT(canonical); i++)
        for (size_t at = 0; at < strlen(canonical[i]); at++) {
            memcpy(text, canonical[i], strlen(canonical[i]));
            text[at] = '\0';
            snprintf(expected, sizeof expected, "a NUL byte, at byte %zu", at);
            cr_assert(eq(int, parse(text, strlen(canonical[i]), &address, why), LINKPOOL_EADDRESS));
            cr_assert(eq(str, why, expected));
        }
}

/* What must hold of any text: taken, it has one text that is taken as the same address; refused, the address is as
 * it was, and what is wrong is printable and names a byte of the text or its end. */
static void expect_sound(const char *text, size_t length)
{
    struct link_address address, again, untouched;
    char why[WHY] = "", written[LINK_ADDRESS_TEXT];
    size_t at = SIZE_MAX;

    memset(&address, 0xa5, sizeof address);
    untouched = address;
    if (parse(text, length, &address, why) == 0) {
        link_address_format(&address, written);
        if (parse(written, strlen(written), &again, why) != 0 || memcmp(&address, &again, sizeof again) != 0)
            cr_fatal("%.*s became %s: %s", (int)length, text, written, why);
        return;
    }
    for (const char *c = why; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            cr_fatal("unprintable: %.*s", (int)length, text);
    const char *comma = strrchr(why, ',');
    if (comma == NULL || sscanf(comma, ", at byte %zu", &at) != 1 || at > length)
        cr_fatal("%.*s: %s", (int)length, text, why);
    if (memcmp(&address, &untouched, sizeof address) != 0)
        cr_fatal("touched by %.*s", (int)length, text);
}

Test(address, every_truncation_is_sound)
{
    for (size_t i = 0; i < COUNT(canonical); i++)
        for (size_t length = 0; length <= strlen(canonical[i]); length++)
            expect_sound(canonical[i], length);
}

Test(address, every_change_of_a_byte_is_sound)
{
    char text[LINK_ADDRESS_TEXT];

    for (size_t i = 0; i < COUNT(canonical); i++)
        for (size_t at = 0; at < strlen(canonical[i]); at++)
            for (int byte = 0; byte < 256; byte++) {
                memcpy(text, canonical[i], strlen(canonical[i]));
                text[at] = (char)byte;
                expect_sound(text, strlen(canonical[i]));
            }
}

Test(address, every_mix_of_what_addresses_are_made_of_is_sound)
{
    static const char *const parts[] = {
        "1", "0", "255", ".", ":", "::", "[", "]", "%", "fe80", "lo", "unix:", "/", "@"};
    uint32_t seed = 1;

    for (int i = 0; i < 200000; i++) {
        char text[64] = "";
        for (int n = 0; n < 12; n++) {
            seed = seed * 1664525 + 1013904223; /* Numerical Recipes' generator: the high bits are good enough */
            strcat(text, parts[(seed >> 16) % COUNT(parts)]);
            expect_sound(text, strlen(text));
        }
    }
}

Test(address, a_text_of_64_KiB_is_refused)
{
    static const char *const starts[] = {
        "unix:/", "unix:@", "[", "[fe80::1%", "10.0.0.1:", "a", "1", ".", ":", "[::]:0"};
    static const char fillers[] = "a0/:.%]@1";
    const size_t length = 65536;
    char *text = malloc(length);

    for (size_t i = 0; i < COUNT(starts); i++)
        for (const char *filler = fillers; *filler != '\0'; filler++) {
            struct link_address address;
            memset(text, *filler, length);
            memcpy(text, starts[i], strlen(starts[i]));
            cr_assert(eq(int, parse(text, length, &address, NULL), LINKPOOL_EADDRESS));
            expect_sound(text, length);
        }
    free(text);
}

Test(address, writes_an_address_of_other_origin_within_its_size)
{
    const socklen_t before = offsetof(struct sockaddr_un, sun_path);
    struct link_address address;
    char text[LINK_ADDRESS_TEXT];

    memset(&address, 'x', sizeof address);
    memcpy(address.name.un.sun_path, PATH_107, 107);
    address.name.un.sun_family = AF_UNIX;
    address.size = sizeof address; /* more than there is */
    link_address_format(&address, text);
    cr_assert(eq(str, text, "unix:" PATH_107 "x"));
    address.size = before + 3;
    link_address_format(&address, text);
    cr_assert(eq(str, text, "unix:/23"));
    address.size = before;
    link_address_format(&address, text);
    cr_assert(eq(str, text, "unix:"));
    address.size = 0;
    link_address_format(&address, text);
    cr_assert(eq(str, text, "unix:"));
    address.name.any.sa_family = AF_UNSPEC;
    link_address_format(&address, text);
    cr_assert(eq(str, text, ""));
}

Test(address, check_gives_the_canonical_text_or_what_is_wrong)
{
    char text[LINK_ADDRESS_TEXT];

    cr_assert(zero(int, link_address_check("[0::1]:80", text, sizeof text)));
    cr_assert(eq(str, text, "[::1]:80"));
    cr_assert(eq(int, link_address_check("[::1]:65536", text, sizeof text), LINKPOOL_EADDRESS));
    cr_assert(eq(str, text, "the port is over 65535, at byte 6"));
    cr_assert(eq(int, link_address_check("", text, sizeof text), LINKPOOL_EADDRESS));
    cr_assert(eq(str, text, "the text is empty, at byte 0"));
}

Test(address, check_writes_no_more_than_it_may)
{
    char text[] = "untouched";

    cr_assert(zero(int, link_address_check("10.0.0.7:80", text, 5)));
    cr_assert(eq(str, text, "10.0"));
    cr_assert(eq(str, text + 5, "ched"));
    cr_assert(eq(int, link_address_check("10.0.0.7:0", text, 4), LINKPOOL_EADDRESS));
    cr_assert(eq(str, text, "the"));
    cr_assert(zero(int, link_address_check("10.0.0.7:80", NULL, 0)));
    cr_assert(eq(int, link_address_check("10.0.0.7:0", NULL, 0), LINKPOOL_EADDRESS));
}
