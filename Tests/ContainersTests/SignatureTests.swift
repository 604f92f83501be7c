import EventLoops
import Glibc
import TestKit
import Testing

@testable import Containers

@Suite("Signatures")
struct SignatureTests {
    private let document = Array(#"{"id":"GTM-1234","version":7}"#.utf8)

    @Test("tm08: a signed document verifies with its key only, byte for byte")
    func verifies() throws {
        let key = try SigningKey.generate()
        let file = try SignedDocument(signing: document, with: [key]).bytes
        let read = try SignedDocument(file)
        #expect(read.document == document)
        #expect(try read.verify(by: [key.publicKey]) == key.publicKey)
        let other = try SigningKey.generate()
        #expect(throws: ContainerError.self) { try read.verify(by: [other.publicKey]) }
        #expect(throws: ContainerError.self) { try read.verify(by: []) }
    }

    @Test("tm08: a document or signature with any bit changed is refused")
    func everyBitCounts() throws {
        let key = try SigningKey.generate()
        let file = try SignedDocument(signing: document, with: [key]).bytes
        for place in file.indices {
            var changed = file
            changed[place] ^= 1 << (place % 8)
            let isTaken = (try? SignedDocument(changed).verify(by: [key.publicKey])) != nil
            #expect(!isTaken, "byte \(place)")
        }
    }

    @Test(
        "tm16: a signature for previews is not valid for publication, nor the reverse, whatever the first line says"
    )
    func purposes() throws {
        let key = try SigningKey.generate()
        let draft = try SignedDocument(signing: document, with: [key], for: .preview).bytes
        let published = try SignedDocument(signing: document, with: [key]).bytes
        try SignedDocument(draft, for: .preview).verify(by: [key.publicKey])
        #expect(throws: ContainerError.self) { try SignedDocument(draft) }
        #expect(throws: ContainerError.self) { try SignedDocument(published, for: .preview) }
        // Whoever controls the server changes the first line: the signature does not fit then.
        let text = String(decoding: draft, as: UTF8.self)
        let promoted = text.replacing(
            "Spoolship-Container-Preview:", with: "Spoolship-Container-Signature:", maxReplacements: 1)
        #expect(promoted != text)
        let read = try SignedDocument(Array(promoted.utf8))
        #expect(throws: ContainerError.self) { try read.verify(by: [key.publicKey]) }
        for file in [draft, published, document] { #expect(SignedDocument.document(in: file) == document) }
    }

    @Test(
        "tm08: keys can be rotated: a document with two signatures is accepted by agents that have either key"
    )
    func rotation() throws {
        let old = try SigningKey.generate()
        let new = try SigningKey.generate()
        let both = try SignedDocument(try SignedDocument(signing: document, with: [old, new]).bytes)
        for keys in [[old], [new], [new, old]] { try both.verify(by: keys.map(\.publicKey)) }
        let onlyNew = try SignedDocument(try SignedDocument(signing: document, with: [new]).bytes)
        try onlyNew.verify(by: [old.publicKey, new.publicKey])
        #expect(throws: ContainerError.self) { try onlyNew.verify(by: [old.publicKey]) }
    }

    @Test(
        "tm08: an unsigned document is reported in one line",
        arguments: [
            "", "{}", #"{"id":"GTM-1234","version":7}"#, "Spoolship-Container-Signature: ed25519\n{}",
            "Spoolship-Container-Signature: ed25519 AAAA\n{}", "Spoolship-Container-Signature: rsa AAAA\n{}",
            "Spoolship-Container-Signature: ed25519 \n{}",
            "Spoolship-Container-Signature: ed25519 " + String(repeating: "A", count: 2000),
        ])
    func unsigned(_ text: String) {
        #expect {
            try SignedDocument(Array(text.utf8))
        } throws: { error in
            guard let error = error as? ContainerError else { return false }
            return error.code == .signature && !error.message.isEmpty && !error.message.utf8.contains(0x0A)
        }
    }

    @Test("a key is stored in a file of its owner only, can be read again, and never replaces another")
    func keyFile() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/key.pem"
        let key = try SigningKey.generate()
        umask(0o022)
        try key.save(path)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(try SigningKey.load(path).publicKey == key.publicKey)
        let signature = try SigningKey.load(path).sign(document)
        #expect(key.publicKey.verifies(signature, of: document))
        #expect { try key.save(path) } throws: { ($0 as? SigningError)?.code == .exists }
        #expect(chmod(path, 0o640) == 0)
        #expect { try SigningKey.load(path) } throws: { ($0 as? SigningError)?.code == .permission }
        #expect { try SigningKey.load("\(directory.path)/none") } throws: {
            ($0 as? SigningError)?.code == .io
        }
    }

    @Test("a file without a key of the right kind is refused")
    func wrongKey() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/key.pem"
        let file = try Descriptor(checking: open(path, O_WRONLY | O_CREAT, 0o600), "open")
        #expect(write(file.raw, "no key\n", 7) == 7)
        #expect { try SigningKey.load(path) } throws: { ($0 as? SigningError)?.code == .badKey }
    }

    @Test("the public key has the 44 characters that the configuration accepts; anything else is refused")
    func publicKeys() throws {
        let key = try SigningKey.generate().publicKey
        #expect(key.text.utf8.count == 44)
        #expect(PublicKey(key.text) == key)
        for text in ["", "AAAA", String(key.text.dropLast()), key.text + "=", "!" + key.text.dropFirst()] {
            #expect(PublicKey(text) == nil)
        }
    }
}
