internal import COpenSSL
public import EventLoops
internal import Glibc

/// An Ed25519 private key that signs containers, kept in a file that only its owner may read.
///
/// The file is PKCS #8 in PEM, which `openssl pkey` reads too. A key is never an argument of a command, where
/// other users could see it.
public final class SigningKey {
    /// The key that verifies this key's signatures.
    public let publicKey: PublicKey

    /// OpenSSL's key; owned.
    private let key: OpaquePointer

    /// Takes ownership of OpenSSL's key.
    private init(_ key: OpaquePointer) throws(SigningError) {
        var bytes = [UInt8](repeating: 0, count: 32)
        var count = bytes.count
        guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == 32 else {
            EVP_PKEY_free(key)
            throw SigningError(.badKey, "the key has no public part")
        }
        self.key = key
        publicKey = PublicKey(bytes: bytes)
    }

    deinit { EVP_PKEY_free(key) }

    /// A new key from the system's random numbers.
    ///
    /// - Throws: `library`.
    public static func generate() throws(SigningError) -> SigningKey {
        ERR_clear_error()
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard let context, EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_keygen(context, &key) == 1, let key
        else {
            throw SigningError(.library, "OpenSSL made no key")
        }
        return try SigningKey(key)
    }

    /// Reads a key.
    ///
    /// - Throws: `io` if the file cannot be read, `permission` if other users may read it, `badKey` if it has
    ///   no Ed25519 key.
    public static func load(_ path: String) throws(SigningError) -> SigningKey {
        var pem: [UInt8]
        do throws(SystemError) {
            let file = try Descriptor(checking: open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), "open")
            let status = try FileStatus(of: file.raw)
            guard status.isRegular, status.mode & 0o077 == 0 else {
                throw SystemError("mode", number: EACCES)
            }
            pem = try WholeFile.bytes(of: file.raw, atMost: 16_384) ?? []
        } catch {
            guard error.call == "mode" else {
                throw SigningError(.io, "\(path) cannot be read: \(SystemError.message(error.number))")
            }
            throw SigningError(.permission, "\(path) can be read by others; run chmod 600 \(path)")
        }
        // The text of the key must not stay in freed memory.
        defer { for index in pem.indices { pem[index] = 0 } }
        ERR_clear_error()
        defer { ERR_clear_error() }
        let memory = shim_openssl_copy(pem, pem.count)
        defer { BIO_free(memory) }
        // Without this callback OpenSSL would ask for a password on the terminal.
        guard let key = PEM_read_bio_PrivateKey(memory, nil, { _, _, _, _ in -1 }, nil) else {
            throw SigningError(
                .badKey, "\(path) contains no private key; `spoolship container keygen` makes one")
        }
        guard EVP_PKEY_get_id(key) == EVP_PKEY_ED25519 else {
            EVP_PKEY_free(key)
            throw SigningError(
                .badKey, "\(path) contains no Ed25519 key; `spoolship container keygen` makes one")
        }
        return try SigningKey(key)
    }

    /// Writes the key to a new file with mode 0600, durably.
    ///
    /// - Throws: `exists` if there is a file, which is never replaced; `io`.
    public func save(_ path: String) throws(SigningError) {
        ERR_clear_error()
        let memory = BIO_new(BIO_s_mem())
        defer { BIO_free(memory) }
        var text: UnsafePointer<CChar>?
        guard let memory, PEM_write_bio_PrivateKey(memory, key, nil, nil, 0, nil, nil) == 1 else {
            throw SigningError(.library, "OpenSSL wrote no key")
        }
        let count = shim_openssl_memory(memory, &text)
        guard let text, count > 0 else { throw SigningError(.library, "OpenSSL wrote no key") }
        do throws(SystemError) {
            try WholeFile.create(path, with: Array(UnsafeRawBufferPointer(start: text, count: count)))
        } catch {
            guard error.number != EEXIST else {
                throw SigningError(
                    .exists, "\(path) exists; a lost key cannot be made again, so give another name")
            }
            throw SigningError(.io, "cannot write \(path): \(SystemError.message(error.number))")
        }
    }

    /// The signature of some bytes, 64 bytes.
    ///
    /// - Throws: `library`.
    public func sign(_ message: [UInt8]) throws(SigningError) -> [UInt8] {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: 64)
        var count = signature.count
        guard let context, EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
            EVP_DigestSign(context, &signature, &count, message, message.count) == 1, count == 64
        else { throw SigningError(.library, "OpenSSL did not sign") }
        return signature
    }
}

/// Why a key cannot be used.
public typealias SigningError = CodedError<SigningErrorCode>

/// The kinds of `SigningError`.
public enum SigningErrorCode: String, Sendable, CaseIterable {
    /// The file has no key of the right kind.
    case badKey = "bad_key"
    /// Other users may read the file.
    case permission
    /// There is a file already.
    case exists
    /// The file cannot be read or written.
    case io
    /// OpenSSL failed.
    case library
}
