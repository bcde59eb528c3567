// SPDX-License-Identifier: MIT
/* The table of topics, and finding cases in it. */
#include "kit_internal.h"
#include "kit_run.h"

#define TOPIC(name) extern const struct kit_topic kit_topic_##name;
#include "kit_topics.def"
#undef TOPIC

const struct kit_topic *const kit_topics[] = {
#define TOPIC(name) &kit_topic_##name,
#include "kit_topics.def"
#undef TOPIC
};
const ULONG kit_topic_count = RTL_NUMBER_OF(kit_topics);

const struct kit_case *kit_find_case(const char *id)
{
    for (ULONG t = 0; t < kit_topic_count; t++)
        for (ULONG i = 0; i < kit_topics[t]->count; i++)
            if (kit_same(kit_topics[t]->cases[i].id, id))
                return &kit_topics[t]->cases[i];
    return NULL;
}

const struct kit_topic *kit_topic_of(const struct kit_case *test)
{
    for (ULONG t = 0; t < kit_topic_count; t++)
        if (test >= kit_topics[t]->cases && test < kit_topics[t]->cases + kit_topics[t]->count)
            return kit_topics[t];
    return kit_topics[0];
}

BOOLEAN kit_matches(const struct kit_case *test, const char *pattern)
{
    return kit_glob(pattern, test->id) || kit_glob(pattern, kit_topic_of(test)->name);
}

static const char *wrong_with(const struct kit_case *test)
{
    if (!test->id || !test->title || !test->reference || !test->function)
        return "lacks an id, a title, a reference or a function";
    if (test->run ? test->server || test->client : !test->server || !test->client)
        return "needs one function, or two halves";
    if (kit_find_case(test->id) != test)
        return "has the id of another case";
    return NULL;
}

BOOLEAN kit_topics_sound(char *text, SIZE_T size)
{
    for (ULONG t = 0; t < kit_topic_count; t++)
        for (ULONG i = 0; i < kit_topics[t]->count; i++) {
            const struct kit_case *test = &kit_topics[t]->cases[i];
            const char *wrong = wrong_with(test);

            if (wrong) {
                kit_print_to(text, size, "row %u of topic %s, %s, %s", (unsigned)i,
                             kit_topics[t]->name, test->id ? test->id : "without id", wrong);
                return FALSE;
            }
        }
    return TRUE;
}
