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

#endif
