internal import EventLoops

/// What is to be done later: one timer, for the soonest of it.
extension SpoolReader {
    /// What is to be done at a later time.
    struct Errand {
        /// Whose share of the reader's time it uses; nil: nobody's.
        let app: String?
        let work: () -> Void
    }

    var now: BootInstant { time.bootTime }

    /// Puts something on the agenda.
    func schedule(at deadline: BootInstant, by app: String? = nil, _ work: @escaping () -> Void) {
        errands.agenda.add(Errand(app: app, work: work), deadline)
        setAlarm()
    }

    func schedule(after wait: Duration, by app: String? = nil, _ work: @escaping () -> Void) {
        schedule(at: now + wait, by: app, work)
    }

    /// Has a drop file looked at again that was still being written.
    func recheck(_ name: FileName, in directory: SpoolDirectory, after wait: Duration) {
        if directory.settling[name] == nil { directory.settling[name] = .unknown }
        schedule(after: wait, by: directory.app) { self.recheck(name, in: directory) }
    }

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
            let start = now
            next.item.work()
            if let app = next.item.app { shares.charge(app, now - start) }
            if now >= end { break }
        }
        setAlarm()
    }
}
