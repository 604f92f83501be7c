internal import CLinux
internal import EventLoops
internal import Glibc

/// The service's log as journald stores it, read by journalctl(1).
enum Journal {
    /// Upper bound for the output of journalctl: more than 300 lines can have, as journald cuts long lines.
    private static let mostBytes = 64 << 20

    /// The newest lines of a unit's log; if journald cannot be asked, the reason instead.
    static func newest(_ lines: Int, of unit: String) -> String {
        var ends: [Int32] = [0, 0]
        guard clinux_pipe(&ends) == 0 else { return "no pipe: \(SystemError.clause(errno))" }
        let reading = Descriptor(ends[0])
        let writing = Descriptor(ends[1])
        let process = ChildProgram.start(
            ["journalctl", "--unit=\(unit)", "--lines=\(lines)", "--no-pager", "--output=short-iso"],
            writing.raw)
        // The other end must be open in the child only: otherwise reading would never find the end.
        _ = consume writing
        guard process > 0 else { return "journalctl cannot be run; name the log with --log FILE" }
        let bytes = try? WholeFile.bytes(of: reading.raw, atMost: mostBytes)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        return String(decoding: bytes ?? [], as: UTF8.self)
    }
}
