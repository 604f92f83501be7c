internal import Agent
internal import Containers
internal import Control
internal import EventLoops
internal import Glibc
internal import Model

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

/// Files that command lines name.
enum NamedFile {
    /// The published document at a URL, or in a file.
    ///
    /// - Throws: `CommandFailure` with code 75 if it cannot be fetched, otherwise as `contents`.
    static func published(_ place: String, _ invocation: Invocation) throws(CommandFailure) -> [UInt8] {
        guard place.hasPrefix("https://") || place.hasPrefix("http://") else {
            return try contents(of: place)
        }
        return try orFail(
            .temporaryFailure, about: place,
            try PublishedDocument.fetch(
                from: place, caFile: invocation.value("ca-file"), largest: SignedDocument.largest,
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
                .inputOutput, "\(path) cannot be read: \(SystemError.clause(error.number))")
        }
        throw CommandFailure(.badData, "\(path) is larger than \(most) bytes")
    }

    /// Replaces a file as a whole (rename(2)): a web server that reads it meanwhile serves the old or the new
    /// file, never a part.
    static func replace(_ path: String, with bytes: [UInt8], mode: mode_t) throws(CommandFailure) {
        try relaying(try WholeFile.replace(path, with: bytes, mode: mode)) { (error: SystemError) in
            CommandFailure(
                .cannotCreate, "cannot write \(path): \(SystemError.clause(error.number))")
        }
    }
}
