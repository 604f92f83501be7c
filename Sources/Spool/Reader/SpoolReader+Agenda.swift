internal import EventLoops
internal import Model

/// Runs the errands of the agenda, and retries of failed system calls.
extension SpoolReader {
    var now: BootInstant { time.bootTime }

    /// Puts an errand on the agenda.
    func schedule(at deadline: BootInstant, _ errand: Errand) {
        agenda.plan(errand, at: deadline)
        setAlarm()
    }

    func schedule(after wait: Duration, _ errand: Errand) { schedule(at: now + wait, errand) }

    /// Plans another look at a drop file that is still being written.
    func recheck(_ name: FileName, in directory: SpoolDirectory, after wait: Duration) {
        if directory.settling[name] == nil {
            directory.settling[name] = .unknown
        }
        schedule(after: wait, .settle(directory: directory.path, name: name))
    }

    /// Sets the reader's timer to the next errand, if it is not set so.
    private func setAlarm() {
        guard life.isRunning, let next = agenda.nextAlarm() else { return }
        if let timer = life.takeAlarm() {
            loop.cancel(timer)
        }
        life.set(loop.after(max(.zero, next - now)) { self.assumeIsolated { $0.ring() } })
    }

    /// The timer has fired.
    private func ring() {
        _ = life.takeAlarm()
        agenda.alarmFired()
        runErrands(within: SpoolReader.sliceTime)
    }

    /// Runs due errands for at most `limit`, and charges each to its app.
    func runErrands(within limit: Duration) {
        let end = now + limit
        while life.isRunning, let errand = agenda.popDue(now) {
            let start = now
            let app = share(of: errand)
            run(errand)
            if let app {
                turns.charge(app, now - start)
            }
            if now >= end { break }
        }
        setAlarm()
    }

    /// The app to which an errand is charged; nil if it belongs to no app.
    private func share(of errand: Errand) -> String? {
        switch errand {
        case .read(let id), .check(let id), .endGrace(let id), .lookThroughZeros(let id):
            streams.files[id].map { share(of: $0) }
        case .settle(let path, _): tree[path]?.app
        default: nil
        }
    }

    /// Runs an errand, unless its subject is gone.
    func run(_ errand: Errand) {
        switch errand {
        case .read(let id):
            if let file = streams.files[id] {
                makeReady(file)
            }
        case .check(let id):
            if let file = streams.files[id] {
                check(file)
            }
        case .checkAnyway(let id):
            if let file = streams.files[id] {
                checkAnyway(file)
            }
        case .endGrace(let id):
            if let file = streams.files[id] {
                grace(file)
            }
        case .lookThroughZeros(let id):
            if let file = streams.files[id] {
                recheckZeros(file)
            }
        case .retryCut(let id): retryCut(id)
        case .settle(let path, let name):
            if let directory = tree[path] {
                recheck(name, in: directory)
            }
        case .look(let path, let name):
            if let directory = tree[path] {
                look(at: name, in: directory)
            }
        case .open(let path, let depth): open(path, depth: depth)
        case .list(let path):
            if let directory = tree[path] {
                rescan(directory)
            }
        case .watch(let path):
            if let directory = tree[path] {
                watchAgain(directory)
            }
        case .reportSlowName(let owner): tellSlow(owner)
        case .wake: wake()
        case .poll: poll()
        case .retry: tryNow()
        case .fitDescriptors: fitDescriptors()
        case .syncRemovals: syncRemovals()
        case .checkRoot: checkRoot()
        case .findRoot: findRoot()
        case .followPath:
            if let place = options.place {
                follow(place)
            }
        case .takeCensus: takeCensus()
        case .lookAtSizes: lookAtSizes()
        case .giveUpUncopied: giveUpUncopied()
        case .releaseBuffer: releaseBuffer()
        case .listEverything: rescanAll()
        }
    }

    // MARK: Second tries

    /// Plans a retry of a task after a failed system call, with growing waits. Out of descriptors, some are
    /// closed at once, so that the retry can succeed.
    func tryAgain(
        _ kind: SecondTries.Kind, _ path: FileName, _ error: SystemError, _ task: Errand
    ) {
        let obstacle = SpoolObstacle(error)
        if case .descriptors = obstacle {
            shedDescriptors()
        }
        agenda.tryAgain(kind, path, obstacle, at: now, task)
        setAlarm()
        wake()
    }

    /// Plans another look at a name that could not be examined; at the whole directory if the name is empty.
    func tryAgain(at name: FileName, in directory: SpoolDirectory, _ error: SystemError) {
        if name.bytes.isEmpty {
            tryAgain(.list, directory.path, error, .list(directory: directory.path))
        } else {
            tryAgain(.look, directory.path(of: name), error, .look(directory: directory.path, name: name))
        }
    }

    /// Runs the tasks whose retry is due.
    func tryNow() {
        let tasks = agenda.takeFailed(now)
        setAlarm()
        for task in tasks { run(task) }
        wake()
    }

    /// Examines a name as if it had just been seen.
    func look(at name: FileName, in directory: SpoolDirectory, isComplete: Bool = false) {
        guard !directory.isGone else { return }
        if case .drop = options.kind(of: name, in: directory) {
            offer(directory, name, isComplete: isComplete)
        } else {
            notice(directory, name)
        }
    }

    func rescanAll() { for directory in tree.all { rescan(directory) } }

    /// Lists a directory again, and checks its known files.
    func rescan(_ directory: SpoolDirectory) {
        guard !directory.isGone else { return }
        scan(directory)
        for file in directory.files.values {
            if file.hasUnread {
                makeReady(file)
            } else {
                considerLater(file)
            }
        }
    }

    /// Resolves the complaints and retries of a path that was reached or is gone. The path is only computed
    /// if there are any.
    func reached(_ path: @autoclosure () -> FileName) {
        guard !complaints.isQuiet || agenda.hasFailures else { return }
        let path = path()
        complaints.reached(path)
        agenda.reached(path)
    }

    /// Whether a name exists although another call has failed with ENOENT.
    func isThere(_ name: FileName, in directory: SpoolDirectory) -> Bool {
        guard !directory.isGone, let raw = directory.descriptor?.raw else { return false }
        return (try? FileSystem.status(raw, name)) != nil
    }
}
