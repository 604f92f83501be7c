#include "CMaxMind.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <maxminddb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cmaxmind {
    void *library;
    MMDB_s database;
    int (*get_value)(MMDB_entry_s *, MMDB_entry_data_s *, const char *const *);
    MMDB_lookup_result_s (*lookup)(MMDB_s *, const struct sockaddr *, int *);
    void (*close)(MMDB_s *);
};

cmaxmind *cmaxmind_open(const char *path, char *message, size_t size) {
    void *library = dlopen("libmaxminddb.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(message, size, "libmaxminddb.so.0 is not there: install the package libmaxminddb0");
        return NULL;
    }
    int (*open)(const char *, uint32_t, MMDB_s *) = (int (*)(const char *, uint32_t, MMDB_s *))dlsym(library, "MMDB_open");
    const char *(*text)(int) = (const char *(*)(int))dlsym(library, "MMDB_strerror");
    cmaxmind *result = calloc(1, sizeof *result);
    if (result) {
        result->library = library;
        result->get_value = (int (*)(MMDB_entry_s *, MMDB_entry_data_s *, const char *const *))dlsym(library, "MMDB_aget_value");
        result->lookup = (MMDB_lookup_result_s (*)(MMDB_s *, const struct sockaddr *, int *))dlsym(library, "MMDB_lookup_sockaddr");
        result->close = (void (*)(MMDB_s *))dlsym(library, "MMDB_close");
    }
    if (!result || !open || !text || !result->get_value || !result->lookup || !result->close) {
        snprintf(message, size, "libmaxminddb.so.0 has not the functions that it should have");
        free(result);
        dlclose(library);
        return NULL;
    }
    int status = open(path, MMDB_MODE_MMAP, &result->database);
    if (status != MMDB_SUCCESS) {
        snprintf(message, size, "%s", text(status));
        free(result);
        dlclose(library);
        return NULL;
    }
    return result;
}

void cmaxmind_close(cmaxmind *database) {
    if (!database) return;
    database->close(&database->database);
    dlclose(database->library);
    free(database);
}

int cmaxmind_country(cmaxmind *database, const char *address, char code[2]) {
    static const char *const paths[][3] = {{"country", "iso_code", NULL}, {"registered_country", "iso_code", NULL}};
    struct sockaddr_storage storage;
    memset(&storage, 0, sizeof storage);
    struct sockaddr_in *four = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&storage;
    // No name is ever resolved: an address or nothing.
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
        storage.ss_family = AF_INET;
    } else if (inet_pton(AF_INET6, address, &six->sin6_addr) == 1) {
        storage.ss_family = AF_INET6;
    } else {
        return 0;
    }
    int status = MMDB_SUCCESS;
    MMDB_lookup_result_s found = database->lookup(&database->database, (struct sockaddr *)&storage, &status);
    if (status != MMDB_SUCCESS || !found.found_entry) return 0;
    for (size_t index = 0; index < 2; index++) {
        MMDB_entry_data_s data;
        if (database->get_value(&found.entry, &data, paths[index]) != MMDB_SUCCESS || !data.has_data) continue;
        if (data.type != MMDB_DATA_TYPE_UTF8_STRING || data.data_size != 2) continue;
        memcpy(code, data.utf8_string, 2);
        return 1;
    }
    return 0;
}
