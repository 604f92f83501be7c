// The floor: what the work on the same events costs at the least, part by part, as one program on one core.
//
// Reads the files in blocks, validates each line with simdjson, adds members as long as the agent's, compresses chunks of a given size with zstd or gzip at
// the agent's level, puts the frames through SQLite as the agent does (one insert, one delete, transactions of about
// 2 MiB), encrypts the frames with AES-128-GCM, and sends them as requests to a receiver. Prints CPU seconds as JSON.
//
// usage: floor COMPRESSION CHUNK_BYTES CHUNK_EVENTS DATABASE URL CA_FILE FILE...
#include <curl/curl.h>
#include "cgzip.h"
#include <openssl/evp.h>
#include <simdjson.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <zstd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

static double cpu() {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void check(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "floor: %s failed\n", what);
    exit(1);
}

static size_t swallow(char *, size_t size, size_t count, void *) { return size * count; }

int main(int argc, char **argv) {
    if (argc < 8) {
        fprintf(stderr, "usage: floor zstd|gzip CHUNK_BYTES CHUNK_EVENTS DATABASE URL CA_FILE FILE...\n");
        return 64;
    }
    const bool zstd = !strcmp(argv[1], "zstd");
    const size_t chunk_bytes = strtoul(argv[2], nullptr, 10), chunk_events = strtoul(argv[3], nullptr, 10);

    // Reading, in blocks of 1 MiB.
    double start = cpu();
    std::vector<char> all;
    std::vector<char> block(1 << 20);
    for (int i = 7; i < argc; i++) {
        int file = open(argv[i], O_RDONLY);
        check(file >= 0, argv[i]);
        ssize_t n;
        while ((n = read(file, block.data(), block.size())) > 0) all.insert(all.end(), block.data(), block.data() + n);
        close(file);
    }
    // The copy into one vector is the measurement's own: it is taken out by reading once more, without it.
    start = cpu();
    for (int i = 7; i < argc; i++) {
        int file = open(argv[i], O_RDONLY);
        while (read(file, block.data(), block.size()) > 0) {}
        close(file);
    }
    const double reading = cpu() - start;
    const size_t size = all.size();
    all.resize(size + simdjson::SIMDJSON_PADDING);

    // Validation, line by line.
    start = cpu();
    simdjson::dom::parser parser;
    size_t events = 0;
    for (const char *line = all.data(), *end = all.data() + size; line < end;) {
        const char *next = (const char *)memchr(line, '\n', end - line);
        check(parser.parse(line, next - line, false).error() == simdjson::SUCCESS, "simdjson");
        events++;
        line = next + 1;
    }
    const double validating = cpu() - start;

    // The members that the agent adds: copied in front of the closing brace, the id with a counter.
    start = cpu();
    std::string added =
        ",\"app\":\"app-00\",\"device\":{\"sdk_name\":\"spoolship\",\"sdk_version\":\"0.1.0\",\"os_name\":\"Debian GNU/Linux\","
        "\"os_version\":\"12\",\"kernel\":\"6.18.44-fc-v657\",\"install_id\":\"6e0dfba6-e924-4eb2-84a6-50c613814f97\","
        "\"time_zone_offset\":0},\"observed_at\":\"2026-11-21T05:25:21.868Z\",\"id\":\"01a1fc90-f94c-77c7-93f4-836d5c82edfd\"}\n";
    char *counter = &added[added.size() - 3 - 12];
    std::vector<char> full(size + events * added.size());
    size_t length = 0, number = 0;
    for (const char *line = all.data(), *end = all.data() + size; line < end;) {
        const char *next = (const char *)memchr(line, '\n', end - line);
        const size_t kept = next - line - 1;
        for (size_t digit = 0, left = number++; digit < 12; digit++, left >>= 4)
            counter[11 - digit] = "0123456789abcdef"[left & 15];
        memcpy(full.data() + length, line, kept);
        memcpy(full.data() + length + kept, added.data(), added.size());
        length += kept + added.size();
        line = next + 1;
    }
    const double adding = cpu() - start;

    // Compression of whole chunks.
    start = cpu();
    std::vector<std::string> frames;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
    cgzip_packer *packer = cgzip_packer_new();
    std::vector<char> room(ZSTD_compressBound(chunk_bytes * 2) + 65536);
    size_t wire = 0;
    for (size_t at = 0; at < length;) {
        size_t end = at, count = 0;
        while (end < length && count < chunk_events) {
            const char *next = (const char *)memchr(full.data() + end, '\n', length - end);
            const size_t after = next - full.data() + 1;
            if (count > 0 && after - at > chunk_bytes) break;
            end = after;
            count++;
        }
        const size_t packed = zstd
            ? ZSTD_compress2(context, room.data(), room.size(), full.data() + at, end - at)
            : cgzip_pack(packer, (const uint8_t *)full.data() + at, end - at, (uint8_t *)room.data(), room.size());
        check(packed > 0 && !(zstd && ZSTD_isError(packed)), "compression");
        frames.emplace_back(room.data(), packed);
        wire += packed;
        at = end;
    }
    const double compressing = cpu() - start;

    // The frames through SQLite: inserted, and deleted in the next transaction.
    start = cpu();
    sqlite3 *db;
    check(sqlite3_open(argv[4], &db) == SQLITE_OK, "sqlite3_open");
    sqlite3_exec(db, chunk_bytes >= 32768 ? "PRAGMA page_size=16384" : "PRAGMA page_size=4096", 0, 0, 0);
    sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF;"
                     "CREATE TABLE chunk (id INTEGER PRIMARY KEY, frame BLOB NOT NULL)", 0, 0, 0);
    sqlite3_stmt *insert, *remove;
    check(sqlite3_prepare_v2(db, "INSERT INTO chunk VALUES (?, ?)", -1, &insert, 0) == SQLITE_OK, "prepare");
    check(sqlite3_prepare_v2(db, "DELETE FROM chunk WHERE id = ?", -1, &remove, 0) == SQLITE_OK, "prepare");
    size_t done = 0, removed = 0;
    while (removed < frames.size()) {
        sqlite3_exec(db, "BEGIN IMMEDIATE", 0, 0, 0);
        const size_t before = done;
        for (size_t bytes = 0; done < frames.size() && bytes < (2 << 20); done++) {
            sqlite3_bind_int64(insert, 1, done + 1);
            sqlite3_bind_blob(insert, 2, frames[done].data(), frames[done].size(), SQLITE_STATIC);
            check(sqlite3_step(insert) == SQLITE_DONE, "insert");
            sqlite3_reset(insert);
            bytes += frames[done].size() * 4;
        }
        for (const size_t until = done == before ? done : before; removed < until; removed++) {
            sqlite3_bind_int64(remove, 1, removed + 1);
            check(sqlite3_step(remove) == SQLITE_DONE, "delete");
            sqlite3_reset(remove);
        }
        check(sqlite3_exec(db, "COMMIT", 0, 0, 0) == SQLITE_OK, "commit");
    }
    const double storing = cpu() - start;

    // AES-128-GCM of what is sent, in records of 16 KiB as TLS makes them.
    start = cpu();
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    unsigned char key[16] = {1}, nonce[12] = {2};
    std::vector<unsigned char> sealed(16384 + 32);
    for (const auto &frame : frames) {
        for (size_t at = 0; at < frame.size(); at += 16384) {
            int n = 0;
            EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), 0, key, nonce);
            EVP_EncryptUpdate(cipher, sealed.data(), &n, (const unsigned char *)frame.data() + at,
                              (int)std::min<size_t>(16384, frame.size() - at));
            EVP_EncryptFinal_ex(cipher, sealed.data() + n, &n);
        }
    }
    const double sealing = cpu() - start;

    // The requests, one after the other on a connection that is kept (their share of TLS included).
    start = cpu();
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, argv[5]);
    curl_easy_setopt(curl, CURLOPT_CAINFO, argv[6]);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
    for (size_t i = 0; i < frames.size(); i++) {
        curl_slist *headers = curl_slist_append(nullptr, "Expect:");
        headers = curl_slist_append(headers, zstd ? "Content-Encoding: zstd" : "Content-Encoding: gzip");
        headers = curl_slist_append(headers, ("Idempotency-Key: floor-" + std::to_string(getpid()) + "-" + std::to_string(i)).c_str());
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, frames[i].data());
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)frames[i].size());
        check(curl_easy_perform(curl) == CURLE_OK, "request");
        long status = 0;
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        check(status / 100 == 2, "request (status)");
        curl_slist_free_all(headers);
    }
    curl_easy_cleanup(curl);
    const double sending = cpu() - start;

    printf("{\"events\": %zu, \"bytes\": %zu, \"wire_bytes\": %zu, \"frames\": %zu, \"read\": %.3f, \"validate\": %.3f, "
           "\"add\": %.3f, \"compress\": %.3f, \"sqlite\": %.3f, \"aes_gcm\": %.3f, \"requests\": %.3f, \"total\": %.3f}\n",
           events, size, wire, frames.size(), reading, validating, adding, compressing, storing, sealing, sending,
           // The requests encrypt by themselves; the separate figure only tells how much of them it is.
           reading + validating + adding + compressing + storing + sending);
}
