/// What a container's runtime wraps lines in. It writes a long line of a program as several.
public enum LineFormat: String, Sendable, CaseIterable {
    /// Docker's json-file, `{"log": …, "stream": …, "time": …}`: `log` ends with a line feed in the last line of a record.
    case docker
    /// containerd's and CRI-O's, time, stream, `F` or `P`, text: `F` in the last line of a record.
    case cri
}
