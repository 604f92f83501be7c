internal import EventLoops
internal import Glibc
internal import Model

/// Users: their names as far as known, the app of their files in the drop box (`incoming/`), and the share of
/// the reader's time to which work on these files is charged.
///
/// A directory service (NSS) may take minutes to answer, or never answer. So `Owners` only says that a name
/// is to be looked up, once for each user; the reader looks it up on another thread, and complains if that is
/// slow. It is a reference, because names are asked for in the middle of choosing whose turn is next. Used on
/// the reader's loop only.
final class Owners {
    /// The state of a user's name.
    enum Name: Equatable {
        case known(String)
        /// The caller must look the name up now, and call `found`.
        case toLookUp
        /// The name is being looked up.
        case awaited
    }

    /// The app of a user's files in the drop box.
    enum App: Equatable {
        case own(String)
        /// The user's login name is the name of an app that belongs to another user. The files go to this app
        /// instead, so that a user cannot write events as another app by a choice of name.
        case clash(String)

        var name: String {
            switch self {
            case .own(let name), .clash(let name): name
            }
        }
    }

    /// Most names that are remembered; beyond them all are forgotten and looked up again.
    static let most = 65_536

    /// Looks up a user's name, or gives `uid-N`; may block, so it is called on another thread.
    let find: @Sendable (UInt32) -> String
    private var known: [UInt32: String] = [:]
    /// Users whose names are being looked up. Ids of one pool (`Holder.pool`) count as one, so that a user's
    /// range of subordinate ids (subuid(5)) does not cause 65,536 lookups at a time.
    private var asked: Set<UInt32> = []

    /// - Parameter find: how names are looked up; by default the system is asked (NSS).
    init(_ find: (@Sendable (UInt32) -> String)? = nil) {
        self.find = find ?? { FileStatus.nameIfAny(ofUser: $0) ?? "uid-\($0)" }
    }

    subscript(owner: UInt32) -> String? { known[owner] }

    /// A user's name, or `uid-N` for a user without a name.
    func name(of owner: UInt32) -> Name {
        if let name = known[owner] { return .known(name) }
        return asked.insert(Holder.pool(of: owner)).inserted ? .toLookUp : .awaited
    }

    /// A name was looked up.
    func found(_ name: String, of owner: UInt32) {
        if known.count >= Owners.most {
            known.removeAll()
        }
        known[owner] = name
        asked.remove(Holder.pool(of: owner))
    }

    /// A user's name for messages; `uid-N` while it is unknown.
    func shownName(of owner: UInt32) -> String { known[owner] ?? Owners.nameless(owner) }

    /// The app of a user's files in the drop box.
    ///
    /// - Parameter isOthers: whether an app has a name, by its directory or its settings, and belongs to
    ///   another user.
    static func app(of owner: UInt32, named name: String, isOthers: (String) -> Bool) -> App {
        isOthers(name) ? .clash(nameless(owner)) : .own(name)
    }

    /// The share of the reader's time to which work on a user's files is charged.
    ///
    /// Ids above 65,535 without a name share one for each block of 65,536 ids. Otherwise a user with a range
    /// of subordinate ids, which has this size, would have 65,536 shares. A name that was not looked up yet
    /// counts as missing.
    func share(of owner: UInt32) -> String {
        guard owner > UInt16.max else { return Owners.nameless(owner) }
        return known[owner].flatMap { $0.hasPrefix("uid-") ? nil : $0 } ?? "uids-\(owner >> 16)"
    }

    private static func nameless(_ owner: UInt32) -> String { "uid-\(owner)" }

    /// The name in /etc/passwd, which can be read without asking a service that may block.
    static func local(_ owner: UInt32) -> String? {
        guard let file = fopen("/etc/passwd", "re") else { return nil }
        defer { fclose(file) }
        while let entry = fgetpwent(file) {
            if entry.pointee.pw_uid == owner {
                return entry.pointee.pw_name.map { String(cString: $0) }
            }
        }
        return nil
    }
}
