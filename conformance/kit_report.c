// SPDX-License-Identifier: MIT
/* What is told: lines of text, or one JSON document; and a JUnit file beside either. */
#include "kit_internal.h"
#include "kit_run.h"

static VOID print(const char *format, ...) KIT_PRINTF(1, 2);
static VOID print(const char *format, ...)
{
    char text[2048];
    va_list arguments;

    va_start(arguments, format);
    kit_os_format(text, sizeof text, format, arguments);
    va_end(arguments);
    kit_os_print(text);
}

static VOID print_file(struct kit_os_file *file, const char *format, ...) KIT_PRINTF(2, 3);
static VOID print_file(struct kit_os_file *file, const char *format, ...)
{
    char text[4096];
    va_list arguments;

    va_start(arguments, format);
    kit_os_format(text, sizeof text, format, arguments);
    va_end(arguments);
    kit_os_write(file, text);
}

static const char *const verdicts[] = {"PASS", "FAIL", "SKIP"};
static const char *const verdicts_json[] = {"pass", "fail", "skip"};

/* Text as the inside of a JSON string or of an XML attribute. */
static const char *quote(const char *text, char *out, SIZE_T size, BOOLEAN xml)
{
    SIZE_T used = 0;

    for (; *text && used + 8 < size; text++) {
        UCHAR c = (UCHAR)*text;

        if (c < ' ')
            c = ' ';
        if (xml && (c == '<' || c == '>' || c == '&' || c == '"'))
            kit_print_to(out + used, size - used, "&#%u;", c);
        else if (!xml && (c == '"' || c == '\\'))
            kit_print_to(out + used, size - used, "\\%c", c);
        else
            kit_print_to(out + used, size - used, "%c", c);
        used += kit_length(out + used);
    }
    out[used] = '\0';
    return out;
}

VOID kit_report_list(enum kit_format format, const struct kit_case *test, ULONG told)
{
    char title[256];

    if (format == KIT_JSON)
        print("%s\n  {\"id\": \"%s\", \"topic\": \"%s\", \"title\": \"%s\", \"reference\": \"%s\","
              " \"function\": \"%s\"}",
              told ? "," : "{\"program\": \"ndkconform\", \"cases\": [", test->id,
              kit_topic_of(test)->name, quote(test->title, title, sizeof title, FALSE),
              test->reference, test->function);
    else
        print("%-9s %-11s %-72s %s\n", test->id, kit_topic_of(test)->name, test->title,
              test->reference);
}

VOID kit_report_list_end(enum kit_format format, ULONG told)
{
    if (format == KIT_JSON)
        print(told ? "\n]}\n" : "{\"program\": \"ndkconform\", \"cases\": []}\n");
}

BOOLEAN kit_report_begin(struct kit_report *report, enum kit_format format, const char *junit,
                         const struct kit_probe *probe)
{
    RtlZeroMemory(report, sizeof *report);
    report->format = format;
    if (junit) {
        report->junit = kit_os_create(junit);
        if (!report->junit)
            return FALSE;
        print_file(report->junit, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                  "<testsuites>\n<testsuite name=\"ndkconform\">\n");
    }
    if (format == KIT_JSON)
        print("{\"program\": \"ndkconform\", \"provider\": \"%s\", \"ndkpi\": \"%u.%u\","
              " \"adapter_flags\": %u, \"cases\": [",
              kit_door.name, probe->info.Version.Major, probe->info.Version.Minor,
              (unsigned)probe->info.AdapterFlags);
    return TRUE;
}

static VOID case_json(struct kit_report *report, const struct kit_case *test,
                      const struct kit_outcome *outcome)
{
    char title[256], reason[1024];

    print("%s\n  {\"id\": \"%s\", \"topic\": \"%s\", \"title\": \"%s\", \"reference\": \"%s\","
          " \"function\": \"%s\", \"verdict\": \"%s\", \"reason\": \"%s\", \"ms\": %u}",
          report->told ? "," : "", test->id, kit_topic_of(test)->name,
          quote(test->title, title, sizeof title, FALSE), test->reference, test->function,
          verdicts_json[outcome->verdict], quote(outcome->text, reason, sizeof reason, FALSE),
          (unsigned)outcome->ms);
}

static VOID case_junit(struct kit_report *report, const struct kit_case *test,
                       const struct kit_outcome *outcome)
{
    char title[256], reason[1024];

    quote(test->title, title, sizeof title, TRUE);
    quote(outcome->text, reason, sizeof reason, TRUE);
    print_file(report->junit, "<testcase classname=\"%s\" name=\"%s %s\" time=\"%u.%03u\">",
               kit_topic_of(test)->name, test->id, title, (unsigned)(outcome->ms / 1000),
               (unsigned)(outcome->ms % 1000));
    if (outcome->verdict == KIT_FAIL)
        print_file(report->junit, "<failure message=\"%s\"/>", reason);
    if (outcome->verdict == KIT_SKIP)
        print_file(report->junit, "<skipped message=\"%s\"/>", reason);
    print_file(report->junit, "</testcase>\n");
}

VOID kit_report_case(struct kit_report *report, const struct kit_case *test,
                     const struct kit_outcome *outcome)
{
    report->passed += outcome->verdict == KIT_PASS;
    report->failed += outcome->verdict == KIT_FAIL;
    report->skipped += outcome->verdict == KIT_SKIP;
    if (report->format == KIT_JSON)
        case_json(report, test, outcome);
    else if (outcome->verdict == KIT_PASS)
        print("%s %-9s %s\n", verdicts[outcome->verdict], test->id, test->title);
    else
        print("%s %-9s %s (%s)\n", verdicts[outcome->verdict], test->id, test->title,
              outcome->text);
    if (report->junit)
        case_junit(report, test, outcome);
    report->told++;
}

BOOLEAN kit_report_end(struct kit_report *report)
{
    if (report->format == KIT_JSON)
        print("\n], \"passed\": %u, \"failed\": %u, \"skipped\": %u}\n", (unsigned)report->passed,
              (unsigned)report->failed, (unsigned)report->skipped);
    else
        print("%u passed, %u failed, %u skipped\n", (unsigned)report->passed,
              (unsigned)report->failed, (unsigned)report->skipped);
    if (!report->junit)
        return TRUE;
    print_file(report->junit, "</testsuite>\n</testsuites>\n");
    return kit_os_finish(report->junit);
}
