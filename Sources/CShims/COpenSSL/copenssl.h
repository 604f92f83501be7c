/// OpenSSL for Swift, which cannot see its macros.
#ifndef COPENSSL_H
#define COPENSSL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/// A new key on the curve P-256.
static inline EVP_PKEY *shim_openssl_new_key(void) {
    return EVP_EC_gen("P-256");
}

/// Adds an extension in the words of openssl.cnf; 0 when it cannot be.
static inline int shim_openssl_add_extension(X509 *certificate, X509 *issuer, int id, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
    if (extension == NULL) return 0;
    int added = X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

/// A BIO with a copy of the bytes; BIO_new_mem_buf would keep the pointer, which Swift does not promise to keep.
static inline BIO *shim_openssl_copy(const void *bytes, size_t size) {
    BIO *bio = BIO_new(BIO_s_mem());
    size_t written = 0;
    if (bio != NULL && size > 0 && BIO_write_ex(bio, bytes, size, &written) != 1) {
        BIO_free(bio);
        return NULL;
    }
    return bio;
}

/// The bytes that a memory BIO holds.
static inline long shim_openssl_memory(BIO *bio, const char **bytes) {
    return BIO_get_mem_data(bio, (char **)bytes);
}

/// The least version that a context speaks; 0 when it cannot be.
static inline long shim_openssl_set_minimum(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version);
}

/// The other side cannot ask for another handshake.
static inline void shim_openssl_forbid_renegotiation(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
}

/// Adds a certificate to the chain that a context shows; 0 when it cannot be.
static inline long shim_openssl_add_to_chain(SSL_CTX *context, X509 *certificate) {
    return SSL_CTX_add1_chain_cert(context, certificate);
}

/// The name that the server is asked for by; 0 when it cannot be.
static inline long shim_openssl_set_server_name(SSL *tls, const char *name) {
    return SSL_set_tlsext_host_name(tls, name);
}

/// Frees what a function that makes DER has allocated.
static inline void shim_openssl_free(void *bytes) {
    OPENSSL_free(bytes);
}

/// Why a certificate was not accepted.
typedef struct {
    /// OpenSSL's number; 0: it was.
    int error;
    /// Which of the chain it is about; 0: the server's own.
    int depth;
    /// Whether it is one of those that are trusted here, and not one that the server has sent.
    int is_ours;
    /// What it is called, or its issuer where that is missing. Hostile.
    char name[128];
    /// Set by the caller: whether a server may be identified by its subject's CN.
    int allows_common_name;
} shim_openssl_verdict;

/// Whether a certificate names servers as RFC 9525 has it: by subjectAltName.
static int shim_openssl_has_names(X509 *certificate) {
    return certificate != NULL && X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) >= 0;
}

static int shim_openssl_verify(X509_STORE_CTX *store, void *context) {
    shim_openssl_verdict *verdict = context;
    int is_good = X509_verify_cert(store);
    if (is_good == 1 && !verdict->allows_common_name && !shim_openssl_has_names(X509_STORE_CTX_get0_cert(store))) {
        // OpenSSL and libcurl would go on to compare the name with the CN.
        X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
        X509_STORE_CTX_set_error_depth(store, 0);
        X509_STORE_CTX_set_current_cert(store, X509_STORE_CTX_get0_cert(store));
        is_good = 0;
    }
    if (is_good == 1) return 1;
    verdict->error = X509_STORE_CTX_get_error(store);
    verdict->depth = X509_STORE_CTX_get_error_depth(store);
    verdict->is_ours = verdict->depth >= X509_STORE_CTX_get_num_untrusted(store);
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    if (certificate == NULL) return is_good;
    int lacks_issuer = verdict->error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT
        || verdict->error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
        || verdict->error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
    X509_NAME *name = lacks_issuer ? X509_get_issuer_name(certificate) : X509_get_subject_name(certificate);
    if (X509_NAME_get_text_by_NID(name, NID_commonName, verdict->name, sizeof verdict->name) < 0) {
        X509_NAME_oneline(name, verdict->name, sizeof verdict->name);
    }
    return is_good;
}

/// Has certificates judged as ever, and what was wrong with one noted.
static inline void shim_openssl_note_verdict(SSL_CTX *context, shim_openssl_verdict *verdict) {
    SSL_CTX_set_cert_verify_callback(context, shim_openssl_verify, verdict);
}

#endif
