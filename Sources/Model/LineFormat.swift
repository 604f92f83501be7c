/// What happens to lines that are not JSON.
public enum TextHandling: String, Sendable, CaseIterable {
    case quarantine
    /// Each is the message of a record.
    case lines
    /// Those that follow each other are the message of one record: a traceback, say.
    case blocks

    /// How long a block may grow, in bytes; what follows is another.
    public static let mostBlockBytes = 64 << 10
}

/// The format in which a container's runtime wraps lines. It writes a long line of a program as several.
public enum LineFormat: String, Sendable, CaseIterable {
    /// Docker's json-file, `{"log": …, "stream": …, "time": …}`: `log` ends with a line feed in the last line of a record.
    case docker
    /// containerd's and CRI-O's, time, stream, `F` or `P`, text: `F` in the last line of a record.
    case cri
}
