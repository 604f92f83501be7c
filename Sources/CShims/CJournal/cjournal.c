#include "CJournal.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// As sd-journal.h declares them.
#define CJOURNAL_FUNCTIONS(F) \
    F(int, open, (cjournal **, int)) \
    F(int, open_directory, (cjournal **, const char *, int)) \
    F(int, open_files, (cjournal **, const char **, int)) \
    F(void, close, (cjournal *)) \
    F(int, set_data_threshold, (cjournal *, size_t)) \
    F(int, add_match, (cjournal *, const void *, size_t)) \
    F(int, add_disjunction, (cjournal *)) \
    F(void, flush_matches, (cjournal *)) \
    F(int, seek_head, (cjournal *)) \
    F(int, seek_tail, (cjournal *)) \
    F(int, seek_cursor, (cjournal *, const char *)) \
    F(int, next, (cjournal *)) \
    F(int, previous, (cjournal *)) \
    F(int, get_cursor, (cjournal *, char **)) \
    F(int, get_realtime_usec, (cjournal *, uint64_t *)) \
    F(int, get_cutoff_realtime_usec, (cjournal *, uint64_t *, uint64_t *)) \
    F(int, enumerate_available_data, (cjournal *, const void **, size_t *)) \
    F(int, get_fd, (cjournal *)) \
    F(int, process, (cjournal *)) \
    F(int, get_timeout, (cjournal *, uint64_t *))

// SD_JOURNAL_LOCAL_ONLY
#define LOCAL_ONLY 1

static struct {
    bool is_loaded;
#define POINTER(result, name, arguments) result(*name) arguments;
    CJOURNAL_FUNCTIONS(POINTER)
#undef POINTER
} library;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local bool reads_journals;
static uintptr_t page_size;
static struct sigaction others;

// The library maps files. Where one is truncated meanwhile, or its server is gone, its page is read as zeros, which the library takes for
// damage, as systemd's own programs do it: src/basic/sigbus.c.
static void read_zeros(int number, siginfo_t *fault, void *context) {
    (void)context;
    int saved = errno;
    void *page = (void *)((uintptr_t)fault->si_addr & ~(page_size - 1));
    if (!reads_journals || fault->si_code != BUS_ADRERR ||
        mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
        // The instruction is repeated, and fails as it would have; what a process sent comes again.
        sigaction(SIGBUS, &others, NULL);
        if (fault->si_code <= 0) raise(number);
    }
    errno = saved;
}

static void survive_truncation(void) {
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = read_zeros, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, &others);
}

// The threads of loops have all signals blocked.
static void read_here(void) {
    reads_journals = true;
    sigset_t faults;
    sigemptyset(&faults);
    sigaddset(&faults, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}

static bool load(char *words, size_t size) {
    if (library.is_loaded) return true;
    void *object = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *reason = dlerror();
        snprintf(words, size, "%s", reason ? reason : "dlopen failed");
        return false;
    }
#define FIND(result, name, arguments) \
    *(void **)&library.name = dlsym(object, "sd_journal_" #name); \
    if (!library.name) { \
        snprintf(words, size, "it lacks sd_journal_%s: it is too old", #name); \
        dlclose(object); \
        return false; \
    }
    CJOURNAL_FUNCTIONS(FIND)
#undef FIND
    survive_truncation();
    library.is_loaded = true;
    return true;
}

bool cjournal_load(char *words, size_t size) {
    pthread_mutex_lock(&loading);
    bool loaded = load(words, size);
    pthread_mutex_unlock(&loading);
    return loaded;
}

static int with_threshold(int result, cjournal **journal, size_t longest) {
    if (result < 0) return result;
    result = library.set_data_threshold(*journal, longest);
    if (result < 0) library.close(*journal);
    return result;
}

int cjournal_open(cjournal **journal, const char *directory, size_t longest) {
    read_here();
    int result = directory ? library.open_directory(journal, directory, 0) : library.open(journal, LOCAL_ONLY);
    return with_threshold(result, journal, longest);
}

int cjournal_open_files(cjournal **journal, const char **paths, size_t longest) {
    read_here();
    return with_threshold(library.open_files(journal, paths, 0), journal, longest);
}

void cjournal_close(cjournal *journal) { library.close(journal); }

int cjournal_match(cjournal *journal, const char *match, size_t length) {
    return library.add_match(journal, match, length);
}
int cjournal_or(cjournal *journal) { return library.add_disjunction(journal); }
void cjournal_match_all(cjournal *journal) { library.flush_matches(journal); }

int cjournal_seek_head(cjournal *journal) { return library.seek_head(journal); }
int cjournal_seek_tail(cjournal *journal) { return library.seek_tail(journal); }
int cjournal_seek_cursor(cjournal *journal, const char *cursor) { return library.seek_cursor(journal, cursor); }

int cjournal_next(cjournal *journal) { return library.next(journal); }
int cjournal_previous(cjournal *journal) { return library.previous(journal); }
int cjournal_cursor(cjournal *journal, char **cursor) { return library.get_cursor(journal, cursor); }
int cjournal_time(cjournal *journal, uint64_t *microseconds) {
    return library.get_realtime_usec(journal, microseconds);
}
int cjournal_times(cjournal *journal, uint64_t *from, uint64_t *to) {
    return library.get_cutoff_realtime_usec(journal, from, to);
}
int cjournal_field(cjournal *journal, const void **data, size_t *length) {
    return library.enumerate_available_data(journal, data, length);
}

int cjournal_descriptor(cjournal *journal) { return library.get_fd(journal); }
int cjournal_process(cjournal *journal) { return library.process(journal); }

int64_t cjournal_patience(cjournal *journal) {
    uint64_t until;
    if (library.get_timeout(journal, &until) < 0 || until == UINT64_MAX) return -1;
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) < 0) return 0;
    uint64_t then = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    return until > then ? (int64_t)(until - then) : 0;
}
