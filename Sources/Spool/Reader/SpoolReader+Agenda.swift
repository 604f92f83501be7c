internal import EventLoops

/// What is to be done later: one timer, for the soonest of it.
extension SpoolReader {
    /// What is to be done at a later time.
    enum Errand {
        case check(AppendFile)
        case settle(SpoolDirectory, FileName)
        case retryCut(FileID)
        case reopen(AppendFile)
        case lookAtZeros(AppendFile)
        case grace(AppendFile)
        case syncRemovals
        case commit
        case poll
        case census
        case findRoot
        case checkRoot
        case tryAgain
        case restoreDescriptors
        case lookForCopies
        case releaseBuffer
    }

    var now: BootInstant { time.bootTime }

    /// Puts something on the agenda.
    func remember(_ errand: Errand, at deadline: BootInstant) {
        errands.agenda.add(errand, deadline)
        setAlarm()
    }

    /// Puts something on the agenda.
    func remember(_ errand: Errand, after wait: Duration) { remember(errand, at: now + wait) }

    private func setAlarm() {
        guard let next = errands.agenda.first?.key, life.phase == .running else { return }
        if let alarm = errands.alarm {
            guard next < alarm.deadline else { return }
            loop.cancel(alarm.timer)
        }
        let timer = loop.after(max(.zero, next - now)) { self.assumeIsolated { $0.ring() } }
        errands.alarm = (next, timer)
    }

    private func ring() {
        errands.alarm = nil
        runErrands(within: SpoolReader.sliceTime)
    }

    /// Does what is due, for so long at most.
    func runErrands(within limit: Duration) {
        let end = now + limit
        while life.phase == .running, let next = errands.agenda.first, next.key <= now {
            _ = errands.agenda.popFirst()
            let (errand, start) = (next.item, now)
            run(errand)
            if let app = app(of: errand) { shares.charge(app, now - start) }
            if now >= end { break }
        }
        setAlarm()
    }

    /// Whose errand it is; nil: nobody's.
    private func app(of errand: Errand) -> String? {
        switch errand {
        case .check(let file), .reopen(let file), .lookAtZeros(let file), .grace(let file):
            share(of: file.directory, file.owner)
        case .settle(let directory, _): directory.app
        default: nil
        }
    }

    private func run(_ errand: Errand) {
        switch errand {
        case .check(let file): check(file)
        case .settle(let directory, let name): settle(directory, name)
        case .retryCut(let id): retryCut(id)
        case .reopen(let file): makeReady(file)
        case .lookAtZeros(let file): lookAtZeros(file)
        case .grace(let file): grace(file)
        case .syncRemovals: syncRemovals()
        case .commit: wake()
        case .poll: poll()
        case .census: takeCensus()
        case .findRoot: findRoot()
        case .checkRoot: checkRoot()
        case .tryAgain: tryNow()
        case .restoreDescriptors: fitDescriptors()
        case .lookForCopies: lookForCopies()
        case .releaseBuffer:
            if buffer.releaseIfUnused() { remember(.releaseBuffer, after: SpoolReader.bufferRest) }
        }
    }
}
