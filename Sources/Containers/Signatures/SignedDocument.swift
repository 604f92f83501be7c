internal import Digests

/// A document with its signatures, as one file that any web server can serve.
///
/// The first line is `Spoolship-Container-Signature: ed25519 SIGNATURE`, perhaps with further signatures
/// after it, separated by spaces, each 64 bytes in Base64; it ends with a line feed. All bytes after it are
/// the document, and exactly these are signed: nothing is normalised, so nothing is ambiguous. `tail -n +2`
/// prints the document.
///
/// A draft is signed for previews only: its first line begins with `Spoolship-Container-Preview:`, and the
/// signature covers `Spoolship-Container-Preview`, a line feed and the document. No document begins with that
/// text, so a signature for one purpose is not valid for the other: who controls the web server can
/// neither publish a draft nor preview an old document.
///
/// Several signatures let a key be replaced: while some agents know the old key and some the new one, both
/// accept the document.
public struct SignedDocument: Sendable, Equatable {
    /// Largest file that is read, 1 MiB.
    public static let largest = 1 << 20

    /// What a signature is for.
    public enum Purpose: String, Sendable {
        /// Agents may fetch and keep the document.
        case publication = "Spoolship-Container-Signature"
        /// A person may put the document in force on one agent for a time.
        case preview = "Spoolship-Container-Preview"

        /// Beginning of the first line.
        fileprivate var head: String { "\(rawValue): ed25519" }

        /// The bytes that a signature covers.
        fileprivate func message(_ document: [UInt8]) -> [UInt8] {
            self == .publication ? document : Array("\(rawValue)\n".utf8) + document
        }
    }

    /// The purpose of the signature.
    package let purpose: Purpose
    /// The exact bytes of the document.
    package let document: [UInt8]
    /// The signatures, 64 bytes each, at least one.
    public let signatures: [[UInt8]]

    /// Most signatures of a file; bounds the work of verifying.
    private static let mostSignatures = 8

    /// What a file claims to be signed for, verified or not; nil for a file without signatures.
    public static func purpose(of bytes: [UInt8]) -> Purpose? {
        [Purpose.publication, .preview].first { bytes.starts(with: $0.head.utf8) }
    }

    /// The document of a file with or without signatures, for callers that need no verification.
    public static func document(in bytes: [UInt8]) -> [UInt8] {
        guard let purpose = purpose(of: bytes) else { return bytes }
        return (try? SignedDocument(bytes, for: purpose).document) ?? bytes
    }

    /// Reads a file without verifying it.
    ///
    /// - Throws: `signature` if the file is not signed for that purpose.
    public init(_ bytes: [UInt8], for purpose: Purpose = .publication) throws(ContainerError) {
        let found = SignedDocument.purpose(of: bytes)
        guard found == purpose else {
            let message =
                switch (purpose, found) {
                case (.publication, nil):
                    "it is not signed: publish what `spoolship container sign FILE` has written"
                case (.publication, _):
                    "it is a draft, signed for previews only; sign it without --preview to publish it"
                case (.preview, nil):
                    "it is not signed: publish what `spoolship container sign --preview FILE` has written"
                case (.preview, _): "it is signed for publication, not for previews; sign it with --preview"
                }
            throw ContainerError(.signature, message)
        }
        self.purpose = purpose
        let head = purpose.head.utf8.count
        // 89 bytes: a space, and 64 bytes in Base64.
        let longest = head + 1 + SignedDocument.mostSignatures * 89
        guard let end = bytes.prefix(longest + 1).firstIndex(of: UInt8(ascii: "\n")) else {
            throw ContainerError(.signature, "its first line is too long for signatures; sign it again")
        }
        let words = bytes[head..<end].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.first?.isEmpty == true, words.count > 1 else {
            throw ContainerError(.signature, "its first line contains no signature; sign it again")
        }
        var signatures: [[UInt8]] = []
        for word in words.dropFirst() {
            guard let signature = Base64.decode(String(decoding: word, as: UTF8.self)), signature.count == 64
            else {
                throw ContainerError(
                    .signature, "its first line contains more than signatures; sign it again")
            }
            signatures.append(signature)
        }
        self.signatures = signatures
        document = Array(bytes[(end + 1)...])
    }

    /// Signs a document with each of the keys.
    ///
    /// - Throws: `library`.
    public init(
        signing document: [UInt8], with keys: [SigningKey], for purpose: Purpose = .publication
    ) throws(SigningError) {
        self.document = document
        self.purpose = purpose
        let message = purpose.message(document)
        signatures = try keys.map { key throws(SigningError) in try key.sign(message) }
    }

    /// The file.
    package var bytes: [UInt8] {
        let line = ([purpose.head] + signatures.map { Base64.encode($0) }).joined(separator: " ")
        return Array(line.utf8) + [UInt8(ascii: "\n")] + document
    }

    /// Checks that one of the keys has signed the document, and returns that key.
    ///
    /// - Throws: `signature`.
    @discardableResult
    public func verify(by keys: [PublicKey]) throws(ContainerError) -> PublicKey {
        let message = purpose.message(document)
        for key in keys where signatures.contains(where: { key.verifies($0, of: message) }) { return key }
        throw ContainerError(
            .signature, "no configured public_key has signed it, or it was changed after it was signed")
    }
}
