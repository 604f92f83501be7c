internal import Agent
internal import Containers
internal import Control
internal import EventLoops
internal import Glibc
internal import Model

extension Command {
    /// The line of a container for `container list`.
    ///
    /// - Parameters:
    ///   - container: the agent's description of it.
    ///   - now: the time, for ages and remaining times.
    static func line(_ container: JSONValue, now: Timestamp) -> String {
        let id = container["id"]?.string ?? "?"
        let version = container["version"]?.integer.map { "version \($0)" } ?? "empty"
        // A time of the description; nil if the container does not have it.
        func time(_ key: String) -> Timestamp? {
            container[key]?.integer.map { Timestamp(milliseconds: Int64($0)) }
        }
        var parts = [version, container["open"] == false ? "opening" : container["source"]?.string ?? "?"]
        if let confirmed = time("confirmed_ms") {
            parts.append("confirmed \(HumanText.duration(now - confirmed)) ago")
        }
        if let later = container["held_back_version"]?.integer {
            parts.append("version \(later) is for others first")
        }
        if container["fresh"] == false {
            parts.append("stale")
        }
        if let end = time("preview_ends_ms") {
            parts.append("preview ends in \(HumanText.duration(end - now))")
        }
        if let end = time("expires_ms") {
            parts.append("expires in \(HumanText.duration(end - now))")
        }
        var text = "\(id): \(parts.joined(separator: ", "))"
        if let problem = container["problem"]?.string {
            text += "; \(problem)"
        }
        for refusal in container["settings_refused"]?.members ?? [] {
            text += "\n  refused: \(refusal.value.string ?? refusal.key)"
        }
        return text
    }
}

extension CommandFailure {
    /// The failure that an error of signing means.
    init(_ error: SigningError) {
        let code: ExitCode =
            switch error.code {
            case .badKey: .badData
            case .permission: .noPermission
            case .exists: .cannotCreate
            case .io: .inputOutput
            case .library: .software
            }
        self.init(code, error.message)
    }
}

extension Invocation {
    /// A request's body with the first argument as `id`; empty without an argument.
    var bodyOfID: JSONValue { body(and: ["id": arguments.first.map(JSONValue.string)]) }

    /// The published document at a URL, or in a file.
    ///
    /// - Throws: `CommandFailure` with code 75 if it cannot be fetched, otherwise as `contents`.
    func published(_ place: String) throws(CommandFailure) -> [UInt8] {
        guard place.hasPrefix("https://") || place.hasPrefix("http://") else {
            return try Invocation.contents(of: place)
        }
        return try orFail(
            .temporaryFailure, about: place,
            try PublishedDocument.fetch(
                from: place, caFile: value("ca-file"), largest: SignedDocument.largest,
                userAgent: "spoolship/\(Build.version)"))
    }

    /// The bytes of a file that the command line names; `-` is standard input.
    ///
    /// - Throws: `CommandFailure` with code 74 if it cannot be read, and 65 if it is larger than `most`
    ///   bytes.
    static func contents(
        of path: String, atMost most: Int = SignedDocument.largest
    ) throws(CommandFailure) -> [UInt8] {
        do throws(SystemError) {
            let file = try Descriptor(
                // A copy of the descriptor: `Descriptor` closes it, and standard input has to stay open.
                checking: path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC), "open")
            if let bytes = try WholeFile.bytes(of: file.raw, atMost: most) { return bytes }
        } catch {
            throw CommandFailure(
                .inputOutput, "cannot read \(path): \(SystemError.message(error.number).lowercased())")
        }
        throw CommandFailure(.badData, "\(path) is larger than \(most) bytes")
    }

    /// Replaces a file as a whole (rename(2)): a web server that reads it meanwhile serves the old or the new
    /// file, never a part.
    static func replace(_ path: String, with bytes: [UInt8], mode: mode_t) throws(CommandFailure) {
        try relaying(try WholeFile.replace(path, with: bytes, mode: mode)) { (error: SystemError) in
            CommandFailure(
                .cannotCreate, "cannot write \(path): \(SystemError.message(error.number).lowercased())")
        }
    }
}
