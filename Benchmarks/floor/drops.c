/* The floor under drop files: the bare calls that claiming, reading and removing take, file by file, and nothing else:
 * open, fstat, rename to a hidden name without replacing, read, close; and, 512 at a time, unlink. The directory is watched
 * as the agent watches it, because what is watched costs whoever changes it.
 *
 * usage: drops DIRECTORY     prints {"files": N, "cpu": SECONDS}; the files are gone then
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { group = 512 };

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void fail(const char *call) {
    perror(call);
    exit(1);
}

static char claims[group][300], buffer[1 << 16];

static void remove_claims(int directory, int count, int watch) {
    for (int index = 0; index < count; index++)
        if (unlinkat(directory, claims[index], 0) != 0) fail("unlinkat");
    while (read(watch, buffer, sizeof buffer) > 0) continue;
}

int main(int count, char **words) {
    if (count != 2) return fprintf(stderr, "usage: drops DIRECTORY\n"), 64;
    double began = cpu();
    int directory = open(words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = directory < 0 ? NULL : fdopendir(directory);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (!stream || watch < 0) fail("open");
    if (inotify_add_watch(watch, words[1], IN_CREATE | IN_MOVE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB) < 0)
        fail("inotify_add_watch");
    unsigned long files = 0;
    int claimed = 0;
    struct dirent *entry;
    while ((entry = readdir(stream))) {
        if (entry->d_name[0] == '.') continue;
        int file = openat(directory, entry->d_name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;
        if (file < 0 || fstat(file, &status) != 0) fail("openat");
        snprintf(claims[claimed], sizeof claims[0], ".spoolship.%016lx.%s", 0xB5C0FBCFEC4D3B2Ful + files, entry->d_name);
        if (renameat2(directory, entry->d_name, directory, claims[claimed], RENAME_NOREPLACE) != 0) fail("renameat2");
        if (read(file, buffer, sizeof buffer) != status.st_size) fail("read");
        close(file);
        files++;
        if (++claimed < group) continue;
        remove_claims(directory, claimed, watch);
        claimed = 0;
    }
    remove_claims(directory, claimed, watch);
    printf("{\"files\": %lu, \"cpu\": %.6f}\n", files, cpu() - began);
    return 0;
}
