// SPDX-License-Identifier: MIT
/*
 * What the provider has answered, over all cases: function, status, and how it came. For --answers,
 * which shows what a run has proved of the status tables and what not. Any thread, <=
 * DISPATCH_LEVEL.
 */
#include "kit_internal.h"
#include "kit_run.h"

#define ANSWERS 1024
#define NAME    40

static struct {
    struct kit_os_lock lock;
    BOOLEAN on;
    ULONG count;
    struct {
        char name[NAME];
        NTSTATUS status;
        enum kit_how how;
        ULONG times;
    } rows[ANSWERS];
    struct kit_os_file *file;
} answers;

BOOLEAN kit_answers_on(const char *path)
{
    answers.file = kit_os_create(path);
    if (!answers.file)
        return FALSE;
    kit_os_lock_init(&answers.lock);
    answers.on = TRUE;
    return TRUE;
}

VOID kit_answered(const char *name, NTSTATUS status, enum kit_how how)
{
    ULONG i;

    if (!answers.on)
        return;
    kit_os_lock(&answers.lock);
    for (i = 0; i < answers.count; i++)
        if (answers.rows[i].status == status && answers.rows[i].how == how &&
            kit_same(answers.rows[i].name, name))
            break;
    if (i == answers.count && i < ANSWERS) {
        answers.count++;
        kit_print_to(answers.rows[i].name, NAME, "%s", name);
        answers.rows[i].status = status;
        answers.rows[i].how = how;
    }
    if (i < ANSWERS)
        answers.rows[i].times++;
    kit_os_unlock(&answers.lock);
}

static BOOLEAN is_letter(char c)
{
    return (BOOLEAN)((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'));
}

/* A check's words that begin with a function's name speak of its return value. */
VOID kit_answered_in_words(const char *what, NTSTATUS status)
{
    char name[NAME];
    SIZE_T n = 0;

    if (!answers.on || !kit_starts(what, "Ndk"))
        return;
    for (; is_letter(what[n]) && n + 1 < NAME; n++)
        name[n] = what[n];
    name[n] = '\0';
    kit_answered(name, status, KIT_INLINE);
}

BOOLEAN kit_answers_write(VOID)
{
    static const char *const hows[] = {"inline", "async", "completion"};
    char line[128];

    for (ULONG i = 0; i < answers.count; i++) {
        kit_print_to(line, sizeof line, "%s %s %s %u\n", answers.rows[i].name,
                     kit_status_name(answers.rows[i].status), hows[answers.rows[i].how],
                     (unsigned)answers.rows[i].times);
        kit_os_write(answers.file, line);
    }
    return kit_os_finish(answers.file);
}
