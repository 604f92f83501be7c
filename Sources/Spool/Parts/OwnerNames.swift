internal import EventLoops
internal import Glibc

/// The names of users, as far as they are known. A directory service may take minutes to tell one, or never do.
struct OwnerNames {
    /// How many are remembered.
    private static let most = 65_536

    private var known: [UInt32: String] = [:]
    /// Of whom one is being looked up: of those who count as one, one at a time.
    private var asked: Set<UInt32> = []

    subscript(owner: UInt32) -> String? { known[owner] }

    /// False: that user is being looked up, or another who counts as one with that one.
    mutating func ask(about owner: UInt32) -> Bool { asked.insert(Holder.pool(of: owner)).inserted }

    mutating func keep(_ name: String, of owner: UInt32) {
        if known.count >= OwnerNames.most { known.removeAll() }
        known[owner] = name
        asked.remove(Holder.pool(of: owner))
    }

    /// The name in the machine's own file, for which no service is asked.
    static func local(_ owner: UInt32) -> String? {
        guard let file = fopen("/etc/passwd", "re") else { return nil }
        defer { fclose(file) }
        while let entry = fgetpwent(file) {
            if entry.pointee.pw_uid == owner { return entry.pointee.pw_name.map { String(cString: $0) } }
        }
        return nil
    }
}
