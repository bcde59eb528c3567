// SPDX-License-Identifier: MIT
/*
 * softndk-run - runs drivers that were written for Windows and built by softndk-cc. See args.c for
 * what it takes, drive.c for what it does.
 */
#include <stdlib.h>

#include "common/tool_args.h"
#include "common/tool_stop.h"
#include "run.h"

int main(int argc, char **argv)
{
    static struct run run;
    int result;

    tool_name = "softndk-run";
    result = args_read(argc, argv, &run);
    if (result != -1)
        return result;
    if (!runtime_prepare(&run, argv))
        return RUN_UNLOADED;
    setenv("SOFTNDK_STACKS", "8", 0); /* reports tell who made what */
    if (run.pend && softndk_set_pend(run.pend) != STATUS_SUCCESS)
        return tool_usage_error("--pend: never, always, early or random:SEED (have \"%s\")",
                                run.pend);
    if (run.fail && softndk_set_fail(run.fail) != STATUS_SUCCESS)
        return tool_usage_error("--fail: call:n:status[:repeat],... (have \"%s\")", run.fail);
    if (!tool_stop_begin()) {
        tool_say("no thread for signals");
        return RUN_UNLOADED;
    }
    if (!runtime_sanitized())
        crash_watch(&run);
    return tool_finish(drive(&run));
}
