internal import EventLoops

/// How many processes the kernel ended for lack of memory near this process, and how much memory its control
/// group may use.
///
/// The count is that of the group above this process's own: the group of a unit is removed at each restart,
/// and its count with it. The count of a group includes those of all groups below.
///
/// Source: https://docs.kernel.org/admin-guide/cgroup-v2.html, "memory.events", "memory.max".
struct MemoryGroup: Sendable, Equatable {
    /// The group whose count this is: `/system.slice`.
    let name: String
    /// Processes ended since the group was made.
    let killed: Int
    /// The memory that this process's own group may use, in bytes; nil without a limit.
    let limit: Int?

    init(name: String, killed: Int, limit: Int?) {
        self.name = name
        self.killed = killed
        self.limit = limit
    }

    /// Looks this process up; nil if the kernel's control groups are of version 1, or do not count memory.
    ///
    /// - Parameter root: a directory in place of `/`, for tests.
    init?(root: String = "") {
        guard let groups = MemoryGroup.text("\(root)/proc/self/cgroup"),
            let line = groups.split(separator: "\n").first(where: { $0.hasPrefix("0::/") })
        else { return nil }
        let own = String(line.dropFirst(3))
        let above = own.lastIndex(of: "/").map { String(own[..<$0]) } ?? ""
        let tree = "\(root)/sys/fs/cgroup"
        // A container sees its own group as `/`, and none above.
        let candidates = [above, own == "/" ? "" : own]
        for group in candidates {
            guard let events = MemoryGroup.text("\(tree)\(group)/memory.events"),
                let killed = MemoryGroup.count(of: "oom_kill", in: events)
            else { continue }
            let most = MemoryGroup.text("\(tree)\(own)/memory.max")
            self.init(
                name: group.isEmpty ? "/" : group, killed: killed,
                limit: most.flatMap { Int($0.prefix { !$0.isWhitespace }) })
            return
        }
        return nil
    }

    /// A number of a file of lines `name number`.
    private static func count(of name: String, in text: String) -> Int? {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2, words[0] == name { return Int(words[1]) }
        }
        return nil
    }

    private static func text(_ path: String) -> String? {
        guard let bytes = try? WholeFile.bytes(of: path, atMost: 65_536) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}
