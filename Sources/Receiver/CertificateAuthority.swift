internal import COpenSSL
package import EventLoops

/// A certificate authority for development: it certifies servers on this machine. Its key has no password.
package final class CertificateAuthority {
    /// A certificate and its private key, in PEM.
    package struct Identity: Sendable, Equatable {
        package var certificate: String
        /// The private key, without a password.
        package var key: String
    }

    /// The content of a certificate to make.
    package struct Request: Sendable, Equatable {
        /// The owner's name, for people; servers are identified by `names`.
        package var commonName: String
        /// Names and IP addresses that the certificate is valid for, in OpenSSL's form: `DNS:localhost`,
        /// `IP:127.0.0.1`.
        package var names: [String]
        package var notBefore: Timestamp
        package var notAfter: Timestamp
        /// Whether the certificate is for a client; otherwise for a server.
        package var isClient: Bool

        /// A request, by default for a server on this machine under the names `localhost`, 127.0.0.1 and
        /// ::1.
        package init(
            commonName: String = "localhost", names: [String] = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"],
            notBefore: Timestamp, notAfter: Timestamp, isClient: Bool = false
        ) {
            self.commonName = commonName
            self.names = names
            self.notBefore = notBefore
            self.notAfter = notAfter
            self.isClient = isClient
        }
    }

    /// The authority's certificate in PEM, which clients must trust.
    package let certificate: String
    /// The authority's private key in PEM.
    package let key: String

    /// OpenSSL's objects of the same key and certificate.
    private let keyHandle: OpaquePointer
    private let certificateHandle: OpaquePointer

    /// Makes a new authority, valid for ten years. Its validity begins an hour ago, because clocks differ.
    ///
    /// - Throws: `ReceiverError` with code `certificate`.
    package init(now: Timestamp, commonName: String = "Spoolship development") throws(ReceiverError) {
        let request = Request(
            commonName: commonName, names: [], notBefore: now - .seconds(3600),
            notAfter: now + .seconds(3650 * 86_400))
        let made = try CertificateAuthority.make(request, issuer: nil)
        (certificateHandle, keyHandle) = made
        let own = CertificateAuthority.identity(made)
        certificate = own.certificate
        key = own.key
    }

    deinit {
        X509_free(certificateHandle)
        EVP_PKEY_free(keyHandle)
    }

    /// Makes a new key and a certificate for it.
    ///
    /// - Throws: `ReceiverError` with code `certificate`, for example for an invalid name.
    package func issue(_ request: Request) throws(ReceiverError) -> Identity {
        let made = try CertificateAuthority.make(request, issuer: (certificateHandle, keyHandle))
        defer {
            X509_free(made.certificate)
            EVP_PKEY_free(made.key)
        }
        return CertificateAuthority.identity(made)
    }

    private typealias Handles = (certificate: OpaquePointer, key: OpaquePointer)

    /// Makes a key and a certificate, which the caller must free.
    ///
    /// - Parameter issuer: certificate and key that sign it; nil to make an authority, which signs itself.
    private static func make(_ request: Request, issuer: Handles?) throws(ReceiverError) -> Handles {
        guard let key = shim_openssl_new_key() else { throw failure("make a key") }
        guard let certificate = X509_new() else { throw failure("make a certificate") }
        var isMade = false
        defer {
            if !isMade {
                X509_free(certificate)
                EVP_PKEY_free(key)
            }
        }
        X509_set_version(certificate, 2)
        // 63 random bits, so that no two certificates of an authority share a serial number (RFC 5280,
        // section 4.1.2.2).
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), UInt64.random(in: 1...UInt64(Int64.max)))
        ASN1_TIME_set(X509_getm_notBefore(certificate), Int(request.notBefore.milliseconds / 1000))
        ASN1_TIME_set(X509_getm_notAfter(certificate), Int(request.notAfter.milliseconds / 1000))
        X509_set_pubkey(certificate, key)
        let name = X509_get_subject_name(certificate)
        guard
            X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC | 0x1000, request.commonName, -1, -1, 0) == 1
        else {
            throw failure("name a certificate \(request.commonName)")
        }
        let issuing = issuer?.certificate ?? certificate
        X509_set_issuer_name(certificate, X509_get_subject_name(issuing))
        var extensions: [(Int32, String)] =
            issuer == nil
            ? [(NID_basic_constraints, "critical,CA:TRUE"), (NID_key_usage, "critical,keyCertSign,cRLSign")]
            : [
                (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, request.isClient ? "clientAuth" : "serverAuth"),
            ]
        extensions.append((NID_subject_key_identifier, "hash"))
        if issuer != nil {
            extensions.append((NID_authority_key_identifier, "keyid"))
        }
        if !request.names.isEmpty {
            extensions.append((NID_subject_alt_name, request.names.joined(separator: ",")))
        }
        for (id, value) in extensions where shim_openssl_add_extension(certificate, issuing, id, value) != 1 {
            throw failure("certify \(value)")
        }
        guard X509_sign(certificate, issuer?.key ?? key, EVP_sha256()) > 0 else {
            throw failure("sign a certificate")
        }
        isMade = true
        return (certificate, key)
    }

    /// Certificate and key as PEM.
    private static func identity(_ made: Handles) -> Identity {
        Identity(
            certificate: text { PEM_write_bio_X509($0, made.certificate) },
            key: text { PEM_write_bio_PrivateKey($0, made.key, nil, nil, 0, nil, nil) })
    }

    /// The text that a function of OpenSSL writes.
    private static func text(_ write: (OpaquePointer) -> Int32) -> String {
        guard let memory = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(memory) }
        guard write(memory) == 1 else { return "" }
        var bytes: UnsafePointer<CChar>?
        let count = shim_openssl_memory(memory, &bytes)
        return String(decoding: UnsafeRawBufferPointer(start: bytes, count: max(0, count)), as: UTF8.self)
    }

    /// The error that OpenSSL's queue describes.
    private static func failure(_ what: String) -> ReceiverError {
        let number = ERR_get_error()
        ERR_clear_error()
        let reason =
            number == 0 ? "" : ": \(ERR_reason_error_string(number).map { String(cString: $0) } ?? "")"
        return ReceiverError(.certificate, "cannot \(what)\(reason)")
    }
}
