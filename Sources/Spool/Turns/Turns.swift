internal import EventLoops

/// Decides which app's work is next, and counts the reader's time that each app has used.
///
/// The app with the least used time goes first, whatever its work is; kinds of work with equal shares take
/// turns. So endless or slow work of one app delays other apps by a single piece. Directories and drop files
/// wait in queues of their own parts (`Listing`, `DropTable`), which are ordered by the same `shares`.
final class Turns {
    /// Kinds of work.
    enum Work: CaseIterable {
        /// Names of directories that are listed.
        case names
        /// Lines of append files.
        case lines
        /// Drop files.
        case drops
    }

    /// A piece of work that was begun, and the app that is charged for it.
    struct Turn {
        fileprivate let app: String
        fileprivate let start: BootInstant
    }

    private(set) var shares = Shares()
    /// Append files with something to read.
    private var files = FairQueue<AppendFile>()
    /// Count of pieces of work; rotates the order of kinds with equal shares.
    private var count: UInt64 = 0

    // MARK: Turns

    /// Begins a piece of work for an app; `end` charges the app for it.
    func begin(of app: String, _ now: BootInstant) -> Turn {
        shares.begin(app)
        return Turn(app: app, start: now)
    }

    func end(_ turn: Turn, _ now: BootInstant) { charge(turn.app, now - turn.start) }

    /// Charges an app for time outside of its turns, such as errands.
    func charge(_ app: String, _ time: Duration) { shares.charge(app, time) }

    // MARK: Files

    /// Queues a file that has something to read. The file must not be queued already, or it would get two
    /// turns.
    func lineUp(_ file: AppendFile, of app: String) { files.append(file, to: app) }

    /// The file to read next, among those that may be read now.
    func nextFile(where mayBeRead: (AppendFile) -> Bool) -> (app: String, file: AppendFile)? {
        files.popFirst(shares) { _, file in mayBeRead(file) }.map { ($0.line, $0.element) }
    }

    // MARK: Kinds of work

    /// Another piece of work begins.
    func beginPiece() { count &+= 1 }

    /// The kinds of work in the order in which they are to be tried. Each may turn out to have nothing to do,
    /// so all are returned.
    ///
    /// - Parameters:
    ///   - names: the share used by the app whose directory is next; nil if no directory waits.
    ///   - drops: the same for drop files.
    func order(names: Int64?, drops: Int64?) -> [Work] {
        let lines = files.least(shares)
        let kinds = Work.allCases.indices.map { index -> (work: Work, spent: Int64) in
            let work = Work.allCases[(index + Int(count % 3)) % Work.allCases.count]
            switch work {
            case .names: return (work, names ?? .max)
            case .lines: return (work, lines ?? .max)
            case .drops: return (work, drops ?? .max)
            }
        }
        // The sort is stable, so kinds with equal shares keep the rotated order.
        return kinds.sorted { $0.spent < $1.spent }.map(\.work)
    }

    /// Whether the app whose drop file is next has used no more time than any app with other work.
    func isDropNext(names: Int64?, drops: Int64?) -> Bool {
        (drops ?? .max) <= min(names ?? .max, files.least(shares) ?? .max)
    }
}
