internal import EventLoops
internal import Model

/// When the reader works: its phase, the next call of `pump`, what is due later, and the only timer.
///
/// Every I/O type of the reader plans with it. What is planned is an `Errand`, a value; only the reader
/// carries errands out. So a type never calls those that use it: it plans an errand for now.
final class Schedule {
    private let time: any TimeSource
    private var agenda = Agenda()
    var life = SpoolReaderLife()
    /// Whether errands are being carried out.
    private var isInErrands = false
    /// Posts the next call of `pump` to the loop.
    private var post: () -> Void = {}
    /// Sets the timer, or cancels it (nil).
    private var setTimer: (Duration?) -> Void = { _ in }

    init(_ time: any TimeSource) { self.time = time }

    /// Sets what posts the next call to the loop, and what sets the loop's timer.
    func attach(post: @escaping () -> Void, setTimer: @escaping (Duration?) -> Void) {
        self.post = post
        self.setTimer = setTimer
    }

    var now: BootInstant { time.bootTime }

    /// Posts the next call of `pump` to the loop, unless one is posted already.
    func wake() {
        if life.postPump() {
            post()
        }
    }

    // MARK: Errands

    /// Count of errands that are planned.
    var count: Int { agenda.count }

    /// Puts an errand on the agenda.
    func plan(at deadline: BootInstant, _ errand: Errand) {
        agenda.plan(errand, at: deadline)
        setAlarm()
    }

    func plan(after wait: Duration, _ errand: Errand) { plan(at: now + wait, errand) }

    /// Plans another look at a drop file that is still being written.
    func settle(_ name: FileName, in directory: SpoolDirectory, after wait: Duration) {
        if directory.settling[name] == nil {
            directory.settling[name] = .unknown
        }
        plan(after: wait, .settle(directory: directory.path, name: name))
    }

    /// Takes the errand that is due longest; nil if none is due, or if the reader stops.
    func popDue() -> Errand? {
        life.isRunning ? agenda.popDue(now) : nil
    }

    /// Whether an errand is due, and was not carried out yet.
    var isAnyDue: Bool { agenda.isAnyDue(now) }

    /// Errands are carried out now. What is planned meanwhile may be due at once, so the timer is set once
    /// they have ended.
    func beginErrands() { isInErrands = true }

    func endErrands() {
        isInErrands = false
        setAlarm()
    }

    /// Sets the reader's timer to the next errand, if it is not set so.
    private func setAlarm() {
        guard !isInErrands, life.isRunning, let next = agenda.nextAlarm() else { return }
        setTimer(max(.zero, next - now))
    }

    /// The timer has fired.
    func alarmFired() { agenda.alarmFired() }

    /// The reader stops: nothing is due any more.
    func clear() {
        setTimer(nil)
        agenda = Agenda()
    }

    // MARK: Second tries

    /// Counts of tasks that wait for a retry, by the cause of the failure.
    var obstacles: [SpoolObstacle: Int] { agenda.obstacles }

    /// Some of the paths of these tasks.
    var obstructed: [FileName] { agenda.obstructed }

    var hasFailures: Bool { agenda.hasFailures }

    /// Plans a retry of a task after a failed system call, with growing waits. Out of descriptors, some are
    /// closed at once, so that the retry can succeed.
    func tryAgain(
        _ kind: SecondTries.Kind, _ path: FileName, _ error: SystemError, _ task: Errand
    ) {
        let obstacle = SpoolObstacle(error)
        if case .descriptors = obstacle {
            plan(at: now, .shedDescriptors)
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

    /// Takes the tasks whose retry is due.
    func takeFailed() -> [Errand] {
        defer { setAlarm() }
        return agenda.takeFailed(now)
    }

    /// Forgets the failures of a path that was reached or is gone.
    func reached(_ path: FileName) { agenda.reached(path) }
}
