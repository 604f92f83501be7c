internal import EventLoops
internal import Intake
internal import Model
internal import Spool

/// The intake, for a reader that runs on the loop of a mount that may never answer.
///
/// The intake stays on the loop *reader* with all others, because it shares rules, functions and repeats with
/// them. The reader's thread waits for it, which is safe: the loop *reader* never waits for that thread.
///
/// Used on the mount's loop only.
final class DistantSink: SpoolSink {
    private let intake: LoopBound<Intake>
    /// The intake's loop.
    private let intakeLoop: EventLoop
    /// The loop of the mount.
    private let loop: EventLoop
    /// What the rest of the last lines waits for; nil for a commit.
    private var parking: Parking?
    /// What the intake said when it last took lines, so that nobody has to wait for its loop to ask.
    private(set) var isUrgent = false

    init(_ intake: LoopBound<Intake>, on intakeLoop: EventLoop, for loop: EventLoop) {
        self.intake = intake
        self.intakeLoop = intakeLoop
        self.loop = loop
    }

    /// A file that waits for an answer of the rules. Used on the mount's loop, except `answered`.
    private final class Parking: @unchecked Sendable {
        // Safe: the fields are used on the mount's loop only, and `answered` hops there.
        private let loop: EventLoop
        private var isAnswered = false
        private var resume: (() -> Void)?

        init(on loop: EventLoop) { self.loop = loop }

        /// The answer is there. From any thread.
        func answered() {
            loop.post {
                self.isAnswered = true
                self.resume?()
            }
        }

        /// Sets what is called, once and later, when the answer is there.
        func whenAnswered(_ resume: @escaping () -> Void) {
            guard isAnswered else { return self.resume = resume }
            nonisolated(unsafe) let resume = resume
            loop.post { resume() }
        }
    }

    func take(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        let parking = Parking(on: loop)
        // Lines and what their rest waits for are asked for at once: an answer that came in between would
        // resume nothing.
        let result = intake.wait { intake in
            let taken = intake.take(lines, from: source, at: offset)
            let isParked = taken < lines.count && intake.park { parking.answered() }
            return (taken: taken, isParked: isParked, isUrgent: intake.isUrgent)
        }
        isUrgent = result.isUrgent
        self.parking = result.isParked ? parking : nil
        return result.taken
    }

    func park(_ resume: @escaping () -> Void) -> Bool {
        guard let parking = parking.take() else { return false }
        parking.whenAnswered(resume)
        return true
    }

    func quarantine(_ record: QuarantineRecord) { intake.wait { $0.quarantine(record) } }

    func commit(_ progress: SpoolProgress) async throws {
        isUrgent = false
        try await onIntakeLoop { try await $0.commit(progress) }
    }

    func persist() async throws { try await onIntakeLoop { try await $0.persist() } }

    func mustStay(_ file: [UInt8]) -> Bool { intake.wait { $0.mustStay(file) } }

    func isClockTrusted() -> Bool { intake.wait { $0.isClockTrusted() } }

    /// Runs work on the intake's loop. Its first part comes before all that is asked of the intake later,
    /// because a loop does its jobs in order: so a commit is closed before further lines are taken.
    private func onIntakeLoop(_ work: @escaping @Sendable (Intake) async throws -> Void) async throws {
        let intake = intake
        let intakeLoop = intakeLoop
        try await withCheckedThrowingContinuation { continuation in
            Task(executorPreference: intakeLoop) {
                nonisolated(unsafe) let intake = intake.assumeOnLoop { $0 }
                do {
                    try await work(intake)
                    continuation.resume()
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }
}
