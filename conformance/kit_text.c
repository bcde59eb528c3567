// SPDX-License-Identifier: MIT
/* Small texts: names of statuses and types, comparing, numbers. Any thread, any IRQL. */
#include "kit_internal.h"

SIZE_T kit_length(const char *text)
{
    SIZE_T n = 0;

    while (text[n])
        n++;
    return n;
}

BOOLEAN kit_same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

BOOLEAN kit_starts(const char *text, const char *with)
{
    while (*with && *text == *with) {
        text++;
        with++;
    }
    return !*with;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

BOOLEAN kit_glob(const char *pattern, const char *text)
{
    for (; *pattern; pattern++, text++) {
        if (*pattern == '*') {
            do {
                if (kit_glob(pattern + 1, text))
                    return TRUE;
            } while (*text++);
            return FALSE;
        }
        if (!*text || (*pattern != '?' && lower(*pattern) != lower(*text)))
            return FALSE;
    }
    return !*text;
}

BOOLEAN kit_number(const char *text, ULONG *out)
{
    ULONGLONG value = 0;

    if (!*text)
        return FALSE;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return FALSE;
        value = value * 10 + (ULONGLONG)(*text - '0');
        if (value > MAXULONG)
            return FALSE;
    }
    *out = (ULONG)value;
    return TRUE;
}

VOID kit_print_to(char *out, SIZE_T size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    kit_os_format(out, size, format, arguments);
    va_end(arguments);
}

const char *kit_type_name(NDK_OBJECT_TYPE type)
{
    static const char *const names[] = {"object", "adapter",  "qp",        "cq",       "mr", "mw",
                                        "pd",     "endpoint", "connector", "listener", "srq"};

    return (ULONG)type < RTL_NUMBER_OF(names) ? names[type] : "object";
}

#define NAMED(status)                                                                              \
    {                                                                                              \
        status, #status                                                                            \
    }

const char *kit_status_name(NTSTATUS status)
{
    static const struct {
        NTSTATUS status;
        const char *name;
    } names[] = {
        NAMED(STATUS_SUCCESS),
        NAMED(STATUS_PENDING),
        NAMED(STATUS_BUFFER_OVERFLOW),
        NAMED(STATUS_DEVICE_BUSY),
        NAMED(STATUS_NO_MORE_ENTRIES),
        NAMED(STATUS_UNSUCCESSFUL),
        NAMED(STATUS_ACCESS_VIOLATION),
        NAMED(STATUS_INVALID_PARAMETER),
        NAMED(STATUS_INVALID_DEVICE_REQUEST),
        NAMED(STATUS_NO_MEMORY),
        NAMED(STATUS_ACCESS_DENIED),
        NAMED(STATUS_BUFFER_TOO_SMALL),
        NAMED(STATUS_INVALID_PARAMETER_MIX),
        NAMED(STATUS_DATA_OVERRUN),
        NAMED(STATUS_SHARING_VIOLATION),
        NAMED(STATUS_INSUFFICIENT_RESOURCES),
        NAMED(STATUS_IO_TIMEOUT),
        NAMED(STATUS_NOT_SUPPORTED),
        NAMED(STATUS_INTERNAL_ERROR),
        NAMED(STATUS_CANCELLED),
        NAMED(STATUS_REMOTE_RESOURCES),
        NAMED(STATUS_INVALID_ADDRESS),
        NAMED(STATUS_INVALID_DEVICE_STATE),
        NAMED(STATUS_INVALID_BUFFER_SIZE),
        NAMED(STATUS_TOO_MANY_ADDRESSES),
        NAMED(STATUS_ADDRESS_ALREADY_EXISTS),
        NAMED(STATUS_CONNECTION_DISCONNECTED),
        NAMED(STATUS_NOT_FOUND),
        NAMED(STATUS_CONNECTION_REFUSED),
        NAMED(STATUS_CONNECTION_INVALID),
        NAMED(STATUS_CONNECTION_ACTIVE),
        NAMED(STATUS_NETWORK_UNREACHABLE),
        NAMED(STATUS_HOST_UNREACHABLE),
        NAMED(STATUS_CONNECTION_ABORTED),
        NAMED(STATUS_DEVICE_REMOVED),
        NAMED(STATUS_IMPLEMENTATION_LIMIT),
        {(NTSTATUS)0xC0010004, "NDIS_STATUS_BAD_VERSION"},
        {KIT_NO_ANSWER, "no answer"},
    };
    static char numbers[8][16]; /* of unknown ones; eight at a time, good enough for messages */
    static volatile LONG turn;
    char *text;

    for (ULONG i = 0; i < RTL_NUMBER_OF(names); i++)
        if (names[i].status == status)
            return names[i].name;
    text = numbers[(ULONG)kit_os_add(&turn, 1) % RTL_NUMBER_OF(numbers)];
    kit_print_to(text, sizeof numbers[0], "0x%08x", (unsigned)status);
    return text;
}
