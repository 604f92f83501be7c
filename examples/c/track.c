// Tracks one event: cc -o track track.c && ./track DIRECTORY NAME
// The name must need no escapes: no quotes, backslashes or control characters.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void refuse_if(const char *directory, const char *state) {
    char path[4096], word[16] = "";
    snprintf(path, sizeof path, "%s%s", directory, state);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%15s", word) == 1 && (!strcmp(word, "critical") || !strcmp(word, "none"))) exit(75);
    if (file) fclose(file);
}

int main(int argc, char **argv) {
    if (argc != 3 || strpbrk(argv[2], "\"\\\n")) return 64;
    refuse_if(argv[1], "/.spoolship/state");
    refuse_if(argv[1], "/../.spoolship/state");
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
