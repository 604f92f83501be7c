internal import Digests

/// A document with its signatures, as one file that any web server can serve.
///
/// The first line is `Spoolship-Container-Signature: ed25519 SIGNATURE`, with further signatures after it, separated by
/// spaces, each 64 bytes in base64; it ends with one line feed. All bytes after it are the document, and exactly these
/// are signed: nothing is normalised, so nothing is ambiguous. `tail -n +2` extracts the document.
///
/// A draft is signed for previews only: its first line begins with `Spoolship-Container-Preview:`, and the signature
/// covers `Spoolship-Container-Preview`, a line feed and the document. No document begins like this, and a signature
/// for one purpose is not valid for the other: someone who controls the web server can neither publish a draft nor
/// preview an old document.
///
/// Several signatures let a key be replaced: agents that know either key accept a document signed by the old and the new one.
public struct SignedDocument: Sendable, Equatable {
    /// The largest file that is taken, in bytes.
    public static let largest = 1 << 20

    /// What a signature is for.
    public enum Purpose: String, Sendable {
        /// Agents may fetch it and keep it.
        case publication = "Spoolship-Container-Signature"
        /// A person may let it rule one agent for a time.
        case preview = "Spoolship-Container-Preview"

        fileprivate var head: String { "\(rawValue): ed25519" }

        fileprivate func message(_ document: [UInt8]) -> [UInt8] {
            self == .publication ? document : Array("\(rawValue)\n".utf8) + document
        }
    }

    package let purpose: Purpose
    package let document: [UInt8]
    /// The signatures, 64 bytes each, at least one.
    public let signatures: [[UInt8]]

    private static let mostSignatures = 8

    /// What a file is signed for, rightly or not; nil for one without signatures before its document.
    public static func purpose(of bytes: [UInt8]) -> Purpose? {
        [Purpose.publication, .preview].first { bytes.starts(with: $0.head.utf8) }
    }

    /// The document in a file, signed for whatever, or not at all: where signatures do not matter.
    public static func document(in bytes: [UInt8]) -> [UInt8] {
        guard let purpose = purpose(of: bytes) else { return bytes }
        return (try? SignedDocument(bytes, for: purpose).document) ?? bytes
    }

    /// Reads a file without verifying it; throws `signature` when none for that purpose is before the document.
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
            guard let signature = Base64.decode(String(decoding: word, as: UTF8.self)), signature.count == 64 else {
                throw ContainerError(.signature, "its first line contains more than signatures; sign it again")
            }
            signatures.append(signature)
        }
        self.signatures = signatures
        document = Array(bytes[(end + 1)...])
    }

    /// Signs a document with each of the keys; throws `library`.
    public init(
        signing document: [UInt8], with keys: [SigningKey], for purpose: Purpose = .publication
    ) throws(SigningError) {
        self.document = document
        self.purpose = purpose
        let message = purpose.message(document)
        signatures = try keys.map { key throws(SigningError) in try key.sign(message) }
    }

    package var bytes: [UInt8] {
        let line = ([purpose.head] + signatures.map { Base64.encode($0) }).joined(separator: " ")
        return Array(line.utf8) + [UInt8(ascii: "\n")] + document
    }

    /// Checks that one of the keys has signed the document, and gives that key; throws `signature`.
    @discardableResult
    public func verify(by keys: [PublicKey]) throws(ContainerError) -> PublicKey {
        let message = purpose.message(document)
        for key in keys where signatures.contains(where: { key.verifies($0, of: message) }) { return key }
        throw ContainerError(
            .signature, "no configured public_key has signed it, or it was changed after it was signed")
    }
}
