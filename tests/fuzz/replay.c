// SPDX-License-Identifier: MIT
/*
 * The corpus of a fuzz target, once: `fuzz_NAME FILE|DIRECTORY...`. Prints how many inputs there
 * were; none at all is a failure.
 */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static unsigned count;

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(1 << 20);
    size_t size;

    need(data);
    if (!file) {
        perror(path);
        exit(1);
    }
    size = fread(data, 1, 1 << 20, file);
    fclose(file);
    /* A block of its own size: a sanitizer sees what reads beyond it. */
    data = realloc(data, size ? size : 1);
    need(data);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    count++;
}

static void run_path(const char *path)
{
    char name[4096];
    struct stat about;
    struct dirent *entry;
    DIR *directory;

    if (stat(path, &about) == 0 && !S_ISDIR(about.st_mode)) {
        run_file(path);
        return;
    }
    directory = opendir(path);
    if (!directory) {
        perror(path);
        exit(1);
    }
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            run_path(name);
        }
    closedir(directory);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run_path(argv[i]);
    printf("%u inputs\n", count);
    return count == 0;
}
