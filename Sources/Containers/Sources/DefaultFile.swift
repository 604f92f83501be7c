internal import CPlist
internal import EventLoops
internal import Glibc
internal import Model

/// A container's default file, used until the first good fetch, as in Google Tag Manager.
///
/// It is named by the container's id: `GTM-1234` is a complete document, `GTM-1234.plist` and `GTM-1234.json`
/// are values only. If there are several, the complete document is used, or else the plist. The file need not
/// be signed: it is trusted because only root and the agent's user can change it.
public struct DefaultFile: Sendable {
    /// The parsed document.
    package let document: ContainerDocument
    /// The exact bytes of the file.
    public let bytes: [UInt8]
    /// Path of the file that was read.
    public let path: String
    /// Names of files beside it that are not used, for a warning.
    public let overshadowed: [String]

    /// Reads the configured file, or a better one beside it.
    ///
    /// - Parameter user: the user besides root whose files are trusted; by default that of this process.
    /// - Throws: `file` if it cannot be read or trusted, or has another name; otherwise what is wrong with
    ///   the document.
    public init(path: String, id: String, user: UInt32? = nil) throws(ContainerError) {
        self = try answering(path) { () throws(ContainerError) in
            try DefaultFile(reading: path, id: id, user: user)
        }
    }

    /// Reads the file; may block as long as its file system does.
    private init(reading path: String, id: String, user: UInt32?) throws(ContainerError) {
        let parts = path.split(separator: "/")
        let name = String(parts.last ?? "")
        if let mistake = DefaultFile.mistake(name, id: id) {
            throw ContainerError(.file, "\(name) \(mistake)")
        }
        let directory = "/" + parts.dropLast().joined(separator: "/")
        let names = [id, "\(id).plist", "\(id).json"].filter { other in
            other == name || access("\(directory)/\(other)", F_OK) == 0
        }
        let chosen = names[0]
        self.path = "\(directory)/\(chosen)"
        overshadowed = Array(names.dropFirst())
        bytes = try DefaultFile.read(self.path, user: user ?? geteuid())
        do throws(ContainerError) {
            if chosen.hasSuffix(".plist") {
                document = try ContainerDocument(id: id, valuesOnly: try DefaultFile.propertyList(bytes))
            } else if chosen.hasSuffix(".json") {
                document = try ContainerDocument(id: id, valuesOnly: try ContainerDocument.json(bytes))
            } else {
                // A published file is used as it is; its signature is not needed here.
                let content = (try? SignedDocument(bytes).document) ?? bytes
                document = try ContainerDocument(reading: content)
                guard document.id == id else {
                    throw ContainerError(.id, "the document is for the container \(document.id)")
                }
            }
        } catch {
            throw ContainerError(error.code, at: error.path, "\(chosen): \(error.message)")
        }
    }

    /// What is wrong with the signature of a file that was published; nil if it is good, missing, or no keys
    /// are configured. The file is in force anyway, because only trusted users can change it; but its
    /// signature says that it may not be what was tested.
    public func signatureProblem(_ keys: [PublicKey]) -> String? {
        guard !keys.isEmpty, let signed = try? SignedDocument(bytes) else { return nil }
        do throws(ContainerError) {
            try signed.verify(by: keys)
            return nil
        } catch {
            return
                "\(path): \(error.message); it is in force nevertheless: sign it again, or remove its first "
                + "line"
        }
    }

    /// What is wrong with the name of a default file, such as a version in the name of an export; nil if it
    /// is right.
    public static func mistake(_ name: String, id: String) -> String? {
        let right = [id, "\(id).plist", "\(id).json"]
        if right.contains(name) { return nil }
        let ending = ["plist", "json"].first { name.hasSuffix(".\($0)") }
        let base = ending.map { name.dropLast($0.count + 1) } ?? Substring(name)
        if base.hasPrefix(id), isVersion(base.dropFirst(id.count)) {
            return "has a version; call it \(id)\(ending.map { ".\($0)" } ?? "")"
        }
        if right.contains(where: { $0.lowercased() == name.lowercased() }) {
            return "is spelled differently; call it \(id)\(ending.map { ".\($0)" } ?? "")"
        }
        return "is not the container's; call it \(id) (complete), \(id).plist or \(id).json (values only)"
    }

    /// Whether a text is a version in a file name: `_v5`, `-12`, `.v3`.
    private static func isVersion(_ text: Substring) -> Bool {
        guard let first = text.first, "_-. ".contains(first) else { return false }
        let rest = text.dropFirst()
        let digits = rest.first == "v" || rest.first == "V" ? rest.dropFirst() : rest
        return !digits.isEmpty && digits.allSatisfy { $0.isNumber || $0 == "." }
    }

    /// Reads a trusted file.
    private static func read(_ path: String, user: UInt32) throws(ContainerError) -> [UInt8] {
        let file: Descriptor
        do throws(TrustedPath.Refusal) {
            // Non-blocking, because a FIFO of that name would block; it is refused below.
            file = try TrustedPath.open(path, flags: O_RDONLY | O_NONBLOCK, user: user, followsLinks: false)
        } catch {
            guard error.number == nil else {
                throw ContainerError(.file, "\(path) cannot be read: \(error.message)")
            }
            throw ContainerError(
                .file,
                "\(path) can be replaced by users other than root and the agent's: \(error.message); use a "
                    + "directory that, like all above it, only they can write, without links"
            )
        }
        guard let status = try? FileStatus(of: file.raw), status.isRegular else {
            throw ContainerError(.file, "\(path) cannot be read: it is not a file")
        }
        guard status.belongs(toRootOr: user), !status.isWritableByOthers else {
            throw ContainerError(
                .file,
                "\(path) can be changed by users other than root and the agent's; run chown root \(path) && "
                    + "chmod go-w \(path)"
            )
        }
        do throws(SystemError) {
            if let bytes = try WholeFile.bytes(of: file.raw, atMost: SignedDocument.largest) { return bytes }
        } catch {
            throw ContainerError(
                .file, "\(path) cannot be read: \(SystemError.clause(error.number))")
        }
        throw ContainerError(.file, "\(path) is larger than \(SignedDocument.largest) bytes")
    }

    /// The values of a property list, as JSON.
    private static func propertyList(_ bytes: [UInt8]) throws(ContainerError) -> JSONValue {
        var message = [CChar](repeating: 0, count: 256)
        var length = 0
        let text = bytes.withUnsafeBytes { raw in
            raw.withMemoryRebound(to: CChar.self) {
                cplist_to_json($0.baseAddress, $0.count, &length, &message, message.count)
            }
        }
        guard let text else {
            let reason = String(
                decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw ContainerError(.form, reason)
        }
        defer { free(text) }
        let json = Array(UnsafeRawBufferPointer(start: text, count: length))
        return try relaying(try JSONValue(parsing: json)) { (error: JSONError) in
            ContainerError(.notJSON, error.description)
        }
    }
}

/// Reads a file of the configuration on a thread that may hang.
///
/// - Throws: `file` if the file system does not answer.
func answering<Value: Sendable>(
    _ path: String, _ read: @escaping @Sendable () throws(ContainerError) -> Value
) throws(ContainerError) -> Value {
    guard let result = SilentFiles.answer(about: path, { Result { () throws(ContainerError) in try read() } })
    else {
        throw ContainerError(.file, "\(path) cannot be read: its file system does not answer")
    }
    return try result.get()
}
