internal import EventLoops
internal import Model

/// What the reader does at a later time. Each case names its subject by id: if the subject is gone when the
/// time comes, there is nothing to do, which `SpoolReader.run` finds out in one place.
enum Errand: Hashable {
    // MARK: One append file

    /// Reads on.
    case read(FileID)
    /// Checks whether the file may be sealed, removed or forgotten.
    case check(FileID)
    /// As `check`, but also if another check was planned or none: an attempt to claim the file has failed.
    case checkAnyway(FileID)
    /// Removes a claimed file, unless a writer has opened it.
    case endGrace(FileID)
    /// Looks for content in place of the zeros at the file's end.
    case lookThroughZeros(FileID)
    /// Opens the file while reading is held back, so that its lines are not lost if it is deleted.
    case hold(FileID)

    // MARK: One drop file, name or directory, by its path

    /// Reads a drop file a second time that ended too early: its writer may have finished it since.
    case retryCut(FileID)
    /// Looks at a drop file again that was still being written.
    case settle(directory: FileName, name: FileName)
    /// Looks at a name again after a system call on it failed.
    case look(directory: FileName, name: FileName)
    /// As `look`; a file that was claimed by mistake has its name back, and is known to be complete.
    case lookComplete(directory: FileName, name: FileName)
    /// Looks at an append file that has the name of a drop file.
    case notice(directory: FileName, name: FileName)
    /// Opens a directory that could not be opened.
    case open(directory: FileName, depth: Int)
    /// Closes a directory that was not found, and opens what has its name now.
    case reopen(directory: FileName, FileID)
    /// Lists a directory again.
    case list(directory: FileName)
    /// Watches a directory that could not be watched.
    case watch(directory: FileName)

    // MARK: A user

    /// Reports that the user's name is not known yet.
    case reportSlowName(UInt32)

    // MARK: The reader itself

    case wake, poll, retry, fitDescriptors, syncRemovals, checkRoot, findRoot, followPath, takeCensus,
        giveUpUncopied
    case releaseBuffer, listEverything, lookAtSizes, lookAtLinks, lookAtLinkedDirectories, publish
    /// Closes files and directories, because the process has no descriptors left.
    case shedDescriptors
}

/// The reader's timers, as values: each errand at the earliest time that was asked for, and one alarm for all
/// of them. One timer of the loop is enough, however many files wait.
///
/// The agenda knows neither files nor the loop. After planning an errand the reader calls `nextAlarm` and
/// sets its timer to the answer; otherwise the errand waits for an unrelated alarm.
struct Agenda {
    private var times = Heap<BootInstant, Errand>()
    /// The time of each errand. An entry of `times` with another time is stale, and is skipped: a heap cannot
    /// remove entries from its middle.
    private var due: [Errand: BootInstant] = [:]
    /// The time that the reader's timer is set to; nil if it is not set.
    private var alarm: BootInstant?
    /// System calls that failed and are retried with growing waits. All retries share the errand `.retry`.
    private var failed = SecondTries()

    var count: Int { due.count }

    /// The entries that are held, stale ones too.
    var entries: Int { times.count }

    /// Plans an errand. One that is planned for the same time or an earlier one already stays as it is: an
    /// errand that comes too early for its subject plans itself again.
    mutating func plan(_ errand: Errand, at time: BootInstant) {
        if let planned = due[errand], planned <= time { return }
        due[errand] = time
        times.add(errand, time)
        dropStale()
    }

    /// Drops stale entries once they are most of the heap. Otherwise a file that is checked at each of its
    /// writes, and asks each time for another check in ten minutes, leaves an entry for each write.
    private mutating func dropStale() {
        guard times.count > 2 * due.count + 64 else { return }
        times = Heap(due.lazy.map { (key: $0.value, item: $0.key) })
    }

    /// Removes and returns the errand that is due longest; nil if none is due.
    mutating func popDue(_ now: BootInstant) -> Errand? {
        while let (time, errand) = times.first, time <= now {
            _ = times.popFirst()
            guard due[errand] == time else { continue }
            due[errand] = nil
            return errand
        }
        return nil
    }

    /// Whether an errand is due.
    mutating func isAnyDue(_ now: BootInstant) -> Bool {
        while let (time, errand) = times.first, due[errand] != time { _ = times.popFirst() }
        return times.first.map { $0.key <= now } ?? false
    }

    /// The time that the timer must be set to now; nil if it is set correctly or not needed.
    mutating func nextAlarm() -> BootInstant? {
        while let (time, errand) = times.first, due[errand] != time { _ = times.popFirst() }
        guard let earliest = times.first?.key, earliest < alarm ?? .init(nanoseconds: .max) else {
            return nil
        }
        alarm = earliest
        return earliest
    }

    /// The timer has fired.
    mutating func alarmFired() { alarm = nil }

    // MARK: What failed

    /// Counts of tasks that wait for a retry, by the cause of the failure.
    var obstacles: [SpoolObstacle: Int] { failed.counts }

    /// Some of the paths of these tasks.
    var obstructed: [FileName] { failed.paths }

    var hasFailures: Bool { !failed.isEmpty }

    /// Plans a retry of a task after a failed system call.
    mutating func tryAgain(
        _ kind: SecondTries.Kind, _ path: FileName, _ obstacle: SpoolObstacle, at now: BootInstant,
        _ task: Errand
    ) {
        if let due = failed.add(kind, path, obstacle, at: now, task) {
            plan(.retry, at: due)
        }
    }

    /// Takes out tasks whose retry is due, at most 32 at a time, and plans the next call.
    mutating func takeFailed(_ now: BootInstant) -> [Errand] {
        let due = failed.popDue(now)
        if let next = due.next {
            plan(.retry, at: next)
        }
        return due.tasks
    }

    /// Forgets the failures of a path that was reached or is gone: no retry is needed.
    mutating func reached(_ path: FileName) { failed.forget(path) }
}
