/// A document with its signatures, as one file that any web server can serve.
///
/// The first line is `Spoolship-Container-Signature: ed25519 SIGNATURE`, with further signatures after it, separated by
/// spaces, each 64 bytes in base64; it ends with one line feed. All bytes after it are the document, and just these are
/// signed: nothing is normalised, so nothing can be read in two ways. `tail -n +2` gives the document back.
///
/// Several signatures let a key be replaced: signed by the old key and by the new one, a document is taken by agents that
/// know either.
public struct SignedDocument: Sendable, Equatable {
    /// The largest file that is taken, in bytes.
    public static let largest = 1 << 20

    /// The document's exact bytes.
    public let document: [UInt8]
    /// The signatures, 64 bytes each, at least one.
    public let signatures: [[UInt8]]

    private static let head = "Spoolship-Container-Signature: ed25519"
    private static let mostSignatures = 8

    /// Whether a file has signatures before its document, good or bad ones.
    public static func isSigned(_ bytes: [UInt8]) -> Bool { bytes.starts(with: head.utf8) }

    /// Reads a file. That it is signed rightly is what `verify` says.
    ///
    /// - Throws: `ContainerError` with code `signature` when there are no signatures before the document.
    public init(_ bytes: [UInt8]) throws(ContainerError) {
        guard SignedDocument.isSigned(bytes) else {
            throw ContainerError(
                .signature, "it is not signed: publish what `spoolship container sign FILE` has written")
        }
        let longest = SignedDocument.head.utf8.count + 1 + SignedDocument.mostSignatures * 89
        guard let end = bytes.prefix(longest + 1).firstIndex(of: UInt8(ascii: "\n")) else {
            throw ContainerError(.signature, "its first line holds too much for signatures; sign it again")
        }
        let words = bytes[SignedDocument.head.utf8.count..<end].split(
            separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.first?.isEmpty == true, words.count > 1 else {
            throw ContainerError(.signature, "its first line holds no signature; sign it again")
        }
        var signatures: [[UInt8]] = []
        for word in words.dropFirst() {
            guard let signature = Base64.decode(String(decoding: word, as: UTF8.self)), signature.count == 64 else {
                throw ContainerError(.signature, "its first line holds what is no signature; sign it again")
            }
            signatures.append(signature)
        }
        self.signatures = signatures
        document = Array(bytes[(end + 1)...])
    }

    /// Signs a document with each of the keys.
    ///
    /// - Throws: `SigningError` with code `library`.
    public init(signing document: [UInt8], with keys: [SigningKey]) throws(SigningError) {
        self.document = document
        signatures = try keys.map { key throws(SigningError) in try key.sign(document) }
    }

    /// The file.
    public var bytes: [UInt8] {
        let line = ([SignedDocument.head] + signatures.map { Base64.encode($0) }).joined(separator: " ")
        return Array(line.utf8) + [UInt8(ascii: "\n")] + document
    }

    /// Checks that one of the keys has signed the document.
    ///
    /// - Returns: that key.
    /// - Throws: `ContainerError` with code `signature`.
    @discardableResult
    public func verify(by keys: [PublicKey]) throws(ContainerError) -> PublicKey {
        for key in keys where signatures.contains(where: { key.verifies($0, of: document) }) { return key }
        throw ContainerError(
            .signature, "no configured public_key has signed it, or it was changed after it was signed")
    }
}
