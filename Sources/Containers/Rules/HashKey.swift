internal import Digests
internal import EventLoops
internal import Events
internal import Glibc
internal import Model

/// The secret key of a machine, or of a fleet, for the digests of `hash` tags. No document contains it, and
/// nothing prints it.
public struct HashKey: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// The keyed hash.
    private let code: HMAC
    /// Names the key in front of its digests. Digests of two keys never match: without the id, a join of
    /// tables by digests would lose rows, without a sign that the key was replaced.
    fileprivate let id: String

    /// Least length: that of a digest. Source: RFC 2104, section 3.
    public static let fewestBytes = 32

    /// The key of `container test` and of test cases, all zeros, so that their results are the same on every
    /// machine.
    public static let trial = HashKey(bytes: [UInt8](repeating: 0, count: fewestBytes))

    /// A key that is drawn when it is first needed, for ids in which a pattern finds something on a machine
    /// without a key. A digest without a secret would let anybody try values.
    static let ofThisProcess = {
        var random = SystemRandomNumberGenerator()
        return HashKey(bytes: (0..<fewestBytes).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }()

    /// A key of some bytes.
    private init(bytes: [UInt8]) {
        code = HMAC(key: bytes)
        id = String(Hexadecimal.text(code.bytes("spoolship key id".bytes)).prefix(8))
    }

    /// Reads a key from a file. A line feed at its end does not count.
    ///
    /// - Throws: `file` if it cannot be read, is not a regular file, is too short, or other users may read or
    ///   change it.
    public init(reading path: String) throws(ContainerError) {
        self = try answering(path) { () throws(ContainerError) in try HashKey(file: path) }
    }

    /// Reads the file; may block as long as its file system does.
    private init(file path: String) throws(ContainerError) {
        func mistake(_ text: String) -> ContainerError { ContainerError(.file, "\(path) \(text)") }
        let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard raw >= 0 else { throw mistake("cannot be read: \(SystemError.clause(errno))") }
        let descriptor = Descriptor(raw)
        guard let status = try? FileStatus(of: descriptor.raw), status.isRegular else {
            throw mistake("is not a regular file")
        }
        guard status.mode & 0o027 == 0 else {
            throw mistake(
                "can be read or changed by others (mode \(status.shownMode)); run chmod 0640 \(path)")
        }
        var content = [UInt8](repeating: 0, count: 4097)
        let count = read(descriptor.raw, &content, content.count)
        guard count >= 0 else { throw mistake("cannot be read: \(SystemError.clause(errno))") }
        content.removeSubrange(count...)
        if content.count > HashKey.fewestBytes, content.last == UInt8(ascii: "\n") {
            content.removeLast()
        }
        guard (HashKey.fewestBytes...4096).contains(content.count) else {
            throw mistake(
                "holds \(content.count) bytes; a key has \(HashKey.fewestBytes) to 4096: openssl rand -hex "
                    + "32 makes one"
            )
        }
        self.init(bytes: content)
    }

    /// Digest of a value's canonical JSON, in hexadecimal digits. So 5 and "5" differ, and 5 and 5.0 do not.
    func digest(_ canonical: [UInt8]) -> String { Hexadecimal.text(code.bytes(canonical)) }

    /// The text for logs.
    public var description: String { "(secret)" }
    /// Empty, so that `dump` does not print the key.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// How a `hash` tag makes digests.
enum Hashing {
    /// A hash with the machine's key.
    case keyed(HashKey)
    /// A hash with the salt in the document, as in older documents. Whoever has the document can try values,
    /// and 5 and "5" have the same hash.
    case salted([UInt8])
    /// No key is configured. What cannot be hashed must not be shown either, so a constant text takes its
    /// place.
    case withoutKey

    /// The replacement of a value, as JSON; nil leaves null as it is.
    func replacement(_ base: UnsafePointer<UInt8>, _ value: Range<Int>) -> [UInt8]? {
        guard let digest = digest(base, value) else {
            return MacroValue(base, value).text(base) == nil ? nil : "\"(no hash key)\"".bytes
        }
        let prefix = if case .keyed(let key) = self { "\(key.id)-" } else { "" }
        return "\"\(prefix)\(digest)\"".bytes
    }

    /// The digest of a value; nil for null, and without a key.
    private func digest(_ base: UnsafePointer<UInt8>, _ value: Range<Int>) -> String? {
        guard let text = MacroValue(base, value).text(base) else { return nil }
        return switch self {
        case .keyed(let key): key.digest(CanonicalJSON.text(base, value))
        case .salted(let salt): SHA256.hexadecimal(salt + text)
        case .withoutKey: nil
        }
    }

    /// The digest as a UUID (RFC 9562, section 5.8), for an event's id: receivers and their tables expect
    /// UUIDs.
    func identifier(_ base: UnsafePointer<UInt8>, _ value: Range<Int>) -> [UInt8]? {
        let digits = digest(base, value)?.prefix(32) ?? ""
        guard let id = UUIDv7(bytes: Hexadecimal.bytes(String(digits))) else {
            return nil
        }
        return "\"\(UUIDv7(high: id.high & ~0xF000 | 0x8000, low: id.low >> 2 | 1 << 63))\"".bytes
    }
}

/// One text for all spellings of a value: no blanks, members sorted by the bytes of their names, only
/// necessary escapes, numbers as ECMAScript writes them. After RFC 8785, but numbers keep all of their
/// digits, which doubles would not.
enum CanonicalJSON {
    /// The canonical text of a value of the line.
    static func text(_ base: UnsafePointer<UInt8>, _ value: Range<Int>) -> [UInt8] {
        guard let first = value.first.map({ base[$0] }) else { return [] }
        switch first {
        case UInt8(ascii: "\""):
            return string(base, value.lowerBound + 1..<max(value.lowerBound + 1, value.upperBound - 1))
        case UInt8(ascii: "{"):
            var walk = RawWalk(base, from: value.lowerBound, to: value.upperBound)
            var members: [(name: [UInt8], text: [UInt8])] = []
            while let member = walk.next() {
                members.append((string(base, member.name), text(base, member.value)))
            }
            members.sort { $0.name.lexicographicallyPrecedes($1.name) }
            return Array("{".utf8)
                + members.map { $0.name + Array(":".utf8) + $0.text }.joined(separator: ",".utf8)
                + Array("}".utf8)
        case UInt8(ascii: "["):
            let elements = RawWalk.elements(base, value).map { text(base, $0) }
            return Array("[".utf8) + elements.joined(separator: ",".utf8) + Array("]".utf8)
        default:
            let spelling = UnsafeBufferPointer(start: base + value.lowerBound, count: value.count)
            // Most numbers are spelled so already.
            if spelling.count <= 15, (0x31...0x39).contains(first),
                spelling.allSatisfy({ (0x30...0x39).contains($0) })
            {
                return Array(spelling)
            }
            return Decimal(spelling).map { Array($0.canonical.utf8) } ?? Array(spelling)
        }
    }

    /// The canonical text of a string, from what is between its quotes.
    private static func string(_ base: UnsafePointer<UInt8>, _ text: Range<Int>) -> [UInt8] {
        Array(JSONValue.string(String(decoding: RawJSON.decoded(base, text), as: UTF8.self)).description.utf8)
    }
}
