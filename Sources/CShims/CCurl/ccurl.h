/// libcurl for Swift, which cannot call its variadic functions.
#ifndef CCURL_H
#define CCURL_H

#include <curl/curl.h>

static inline CURLcode shim_curl_global_init(void) {
    return curl_global_init(CURL_GLOBAL_DEFAULT);
}

static inline CURLcode shim_curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

/// Strings are copied by the library, except for CURLOPT_POSTFIELDS.
static inline CURLcode shim_curl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

/// Where a request goes, taken apart here once: as text alone, the library takes it apart and puts it together again for each
/// request. What is no URL is given as text alone, and ends the transfer with the library's own error. `parts` must outlive
/// the transfer.
static inline CURLcode shim_curl_set_url(CURL *easy, CURLU *parts, const char *url) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, url);
    if (code != CURLE_OK) return code;
    // As the library does it.
    const unsigned int flags = CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME;
    const int isURL = parts != NULL && curl_url_set(parts, CURLUPART_URL, url, flags) == CURLUE_OK;
    return curl_easy_setopt(easy, CURLOPT_CURLU, isURL ? parts : NULL);
}

static inline CURLcode shim_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

/// The bytes are copied.
static inline CURLcode shim_curl_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t size) {
    struct curl_blob blob = {(void *)bytes, size, CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, size == 0 ? NULL : &blob);
}

static inline CURLcode shim_curl_set_write(CURL *easy, curl_write_callback function, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, function);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
}

static inline CURLcode shim_curl_set_header(CURL *easy, curl_write_callback function, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, function);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
}

/// The function is given the `SSL_CTX *` of each connection that is made.
static inline CURLcode shim_curl_set_tls(CURL *easy, curl_ssl_ctx_callback function, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, function);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, context);
}

/// The function is called before each request that goes over a connection, and may refuse the request.
static inline CURLcode shim_curl_set_prerequest(CURL *easy, curl_prereq_callback function, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, function);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
}

/// The body of a POST, which must stay where it is until the transfer ends.
static inline CURLcode shim_curl_set_body(CURL *easy, const void *bytes, size_t size) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_POSTFIELDS, bytes);
}

static inline long shim_curl_info_long(CURL *easy, CURLINFO information) {
    long value = 0;
    return curl_easy_getinfo(easy, information, &value) == CURLE_OK ? value : 0;
}

static inline curl_off_t shim_curl_info_offset(CURL *easy, CURLINFO information) {
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, information, &value) == CURLE_OK ? value : 0;
}

/// The socket of a transfer that only connects; -1 when there is none. It is the library's.
static inline int shim_curl_active_socket(CURL *easy) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK ? socket : -1;
}

/// The `SSL *` of the connection that a transfer uses; NULL without TLS. Only inside a callback of the transfer.
static inline void *shim_curl_tls(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return NULL;
    return session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

/// The last value of a header of the answer; NULL when there is none. Valid until the handle's next transfer.
static inline const char *shim_curl_header(CURL *easy, const char *name) {
    struct curl_header *header = NULL;
    return curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value : NULL;
}

static inline void shim_curl_multi_callbacks(CURLM *multi, curl_socket_callback socket, curl_multi_timer_callback timer,
                                             void *context) {
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}

static inline void shim_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    curl_multi_setopt(multi, option, value);
}

/// What a finished transfer ended with; the message holds it in a union.
static inline CURLcode shim_curl_result(const CURLMsg *message) {
    return message->data.result;
}

#endif
