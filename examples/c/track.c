// Tracks one event: cc -o track track.c && ./track DIRECTORY NAME
// The name must need no escapes: no quotes, backslashes or control characters.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// The spool is the nearest directory above in which the agent says what it accepts. Where anybody may write, it says nothing.
static void refuse_if_not_accepted(const char *directory) {
    char up[4096], path[4200], word[16] = "";
    snprintf(up, sizeof up - 64, "%s", directory);
    for (int level = 0; level <= 16; level++, strcat(up, "/..")) {
        struct stat status;
        if (stat(up, &status) == 0 && status.st_mode & S_IWOTH) continue;
        snprintf(path, sizeof path, "%s/.spoolship/state", up);
        FILE *file = fopen(path, "re");
        if (!file) continue;
        if (fscanf(file, "%15s", word) == 1 && (!strcmp(word, "critical") || !strcmp(word, "none"))) exit(75);
        fclose(file);
        return;
    }
}

int main(int argc, char **argv) {
    if (argc != 3 || strpbrk(argv[2], "\"\\\n")) return 64;
    refuse_if_not_accepted(argv[1]);
    char hidden[4096], final[4096], when[32];
    time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    snprintf(hidden, sizeof hidden, "%s/.event-XXXXXX.tmp", argv[1]);
    int descriptor = mkstemps(hidden, 4);
    if (descriptor < 0) return perror(argv[1]), 73;
    int bad = dprintf(descriptor, "{\"name\":\"%s\",\"timestamp\":\"%s\",\"pid\":%d,\"properties\":{\"language\":\"C\",\"number\":1.5}}",
                      argv[2], when, (int)getpid()) < 0;
    bad |= fchmod(descriptor, 0640) < 0 || fsync(descriptor) < 0; // The agent reads as the group.
    snprintf(final, sizeof final, "%s/%.*s.json", argv[1], 12, strrchr(hidden, '/') + 2);
    if (bad || rename(hidden, final) < 0) return perror("track"), unlink(hidden), 74;
    if (syncfs(descriptor) < 0) return perror("track"), 74; // The new name survives a power cut as well.
    return 0;
}
