internal import Configuration
internal import EventLoops
internal import Glibc
internal import Model

/// An app that a command named and of which nothing is known. The command is carried out all the same:
/// consent and collection may have to be settled before an app's first event. But most likely the name is
/// mistyped, and then the app that was meant goes on as before.
struct UnknownApp {
    private let name: String
    /// The nearest name that the agent knows.
    private let nearest: String?

    /// Nil if the agent's answer says that the app is known, or nothing about it.
    init?(_ name: String, in answer: JSONValue) {
        guard answer["known"]?.bool == false else { return nil }
        self.name = name
        nearest = answer["nearest"]?.string
    }

    /// Says so, unless the app has a directory in the spool.
    ///
    /// - Parameter undo: the command that takes back what was set.
    func tell(on invocation: Invocation, undoneBy undo: String) throws {
        // The agent does not look at the spool's file system, which may hang.
        let spool = try? invocation.loadSettings().settings.spool.directory
        let hasDirectory = spool.flatMap { self.hasDirectory(in: $0) }
        guard hasDirectory != true else { return }
        let names = spool.flatMap { try? WholeFile.names(in: $0) } ?? []
        let hint = (nearest ?? nearestName(to: name, among: names.filter { !$0.hasPrefix(".") }.sorted()))
            .map { "; did you mean \($0)?" }
        // Only what was seen is said: the settings or the spool may not be readable for this user.
        let lacks = hasDirectory == false ? "no directory and no events" : "no events"
        try invocation.console.print(
            "no such app so far: \(name) is not configured, and has \(lacks)\(hint ?? "")"
                + " (`spoolship \(undo)` takes it back)")
    }

    /// Whether the app has a directory in the spool; nil if that cannot be seen.
    private func hasDirectory(in spool: String) -> Bool? {
        guard !["", ".", ".."].contains(name), !name.utf8.contains(UInt8(ascii: "/")) else { return false }
        if let status = FileStatus(link: "\(spool)/\(name)") { return status.isDirectory }
        return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? false : nil
    }
}
