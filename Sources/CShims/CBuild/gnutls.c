/*
 * GnuTLS calls this function when it is loaded, and sets itself up only if the answer is 0 (GNUTLS_SKIP_GLOBAL_INIT in
 * gnutls.h). It is loaded because Debian's libcurl can fetch by RTMP and LDAP, which the agent forbids
 * (CURLOPT_PROTOCOLS_STR); both set it up themselves before they use it. The set-up takes 0.1 MB of memory, and touches 0.7 MB
 * of libraries. The linker must export the name (Makefile, exports.map): otherwise GnuTLS calls its own function, which
 * answers 0.
 */
int _gnutls_global_init_skip(void);

int _gnutls_global_init_skip(void) { return 1; }
