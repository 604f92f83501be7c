import Testing

@testable import Spool

/// What becomes of an append file: all facts against the six rules that `FileStep` promises.
@Suite("File steps")
struct FileStepTests {
    private static let waits: FileWaits = {
        var options = SpoolOptions(directory: "/spool")
        // Different from each other, and not in the order of the defaults.
        (options.textTime, options.settleTime, options.sealTime) = (.seconds(2), .seconds(1), .seconds(10))
        (options.giveUpTime, options.unclosedTime) = (.seconds(60), .seconds(600))
        return FileWaits(options)
    }()
    private var waits: FileWaits { Self.waits }

    private static let silences = [
        0, 500, 999, 1000, 1500, 2000, 9_999, 10_000, 59_999, 60_000, 599_999, 600_000, 900_000,
    ]
    .map { Duration.milliseconds($0) }

    /// All combinations of facts.
    private func forEachFacts(_ body: (FileFacts) -> Void) {
        let namings = [AppendFile.Naming.written, .rotated, .none]
        let ends = [AppendFile.End.open, .closed, .sealed]
        for naming in namings {
            for end in ends {
                for flags in 0..<128 {
                    func flag(_ bit: Int) -> Bool { flags >> bit & 1 == 1 }
                    // A sealed end is not unsealed.
                    if end == .sealed, flag(0) { continue }
                    for writers in FileFacts.Writers.allCases {
                        for silence in Self.silences {
                            body(
                                FileFacts(
                                    naming: naming, end: end, isUnsealed: flag(0), holdsText: flag(1),
                                    isEmpty: flag(2),
                                    isCommitted: flag(3), mayGo: flag(4), writers: writers,
                                    hasChanged: flag(5),
                                    isReported: flag(6), silence: silence))
                        }
                    }
                }
            }
        }
    }

    /// Expects a rule to hold for all facts; reports the first facts for which it does not.
    private func always(_ rule: Comment, _ holds: (FileFacts, FileStep) -> Bool) {
        var broken: (FileFacts, FileStep)?
        var count = 0
        forEachFacts { facts in
            let step = FileStep.next(facts, waits)
            if !holds(facts, step) {
                broken = broken ?? (facts, step)
                count += 1
            }
        }
        #expect(count == 0, "\(rule): broken \(count) times, first by \(String(describing: broken))")
    }

    private func isRemoval(_ step: FileStep) -> Bool { step == .claimAndRemove || step == .forget }
    private func isSealing(_ step: FileStep) -> Bool { step == .seal || step == .sealUnclosed }
    private func isWait(_ step: FileStep) -> Bool { if case .lookAgain = step { true } else { false } }

    @Test("1. nothing is removed or forgotten that is not in the queue")
    func removalsAreCommitted() {
        always("all of it is in the queue") { facts, step in
            !isRemoval(step) || facts.isCommitted && !facts.isUnsealed && !facts.hasChanged
        }
    }

    @Test(
        "2. no end is sealed while a writer has the file open, and a rotation alone says nothing of the writer"
    )
    func sealingNeedsAClose() {
        always("no writer is known") { facts, step in
            !isSealing(step) || facts.writers == .absent || facts.writers == .unknown
        }
        always("where nobody can be asked, a close was seen or the silence is long") { facts, step in
            guard facts.writers == .unknown, isSealing(step) else { return true }
            return step == .seal
                ? facts.end == .closed : facts.naming != .written && facts.silence >= .seconds(600)
        }
        always("a file that changed is read first") { facts, step in !isSealing(step) || !facts.hasChanged }
        always("what counts as unclosed was not closed") { facts, step in
            step != .sealUnclosed || facts.writers == .unknown && facts.end != .closed
        }
        always("only what is unsealed is sealed") { facts, step in !isSealing(step) || facts.isUnsealed }
    }

    @Test("3. where nobody can be asked, a file with a name stays")
    func filesStayWithoutLeases() {
        always("it is removed only while no process has it open") { facts, step in
            step != .claimAndRemove || facts.writers == .absent && facts.naming != .none && facts.mayGo
        }
    }

    @Test("4. a file without a name is forgotten once it is read")
    func namelessFilesAreForgotten() {
        always("without a writer, or after a silence") { facts, step in
            let isRead = facts.isCommitted && !facts.isUnsealed && !facts.hasChanged
            guard facts.naming == .none, isRead else { return true }
            switch facts.writers {
            case .absent:
                return step
                    == (facts.silence >= waits.settle
                        ? .forget : .lookAgain(after: waits.settle - facts.silence))
            case .unknown: return (step == .forget) == (facts.silence >= waits.giveUp)
            case .notAsked, .present, .unanswered: return step != .forget
            }
        }
        always("a file with a name is not") { facts, step in step != .forget || facts.naming == .none }
    }

    @Test("5. whole lines that may go on wait for silence alone")
    func textWaitsForSilence() {
        always("they are read after the time for text") { facts, step in
            guard facts.isUnsealed, facts.holdsText else { return step != .readText }
            return facts.silence >= waits.text
                ? step == .readText : step == .lookAgain(after: waits.text - facts.silence)
        }
    }

    @Test("6. a shortage only postpones")
    func shortagesPostpone() {
        always("it is asked again") { facts, step in
            guard facts.writers == .unanswered else { return true }
            return isWait(step) || step == .nothing || step == .readText
        }
    }

    @Test("a writer that is there after a close was reported is asked for again, less and less often")
    func closesAreReportedEarly() {
        always("the report may have come before the close was done") { facts, step in
            guard facts.writers == .present, facts.end == .closed, !(facts.isUnsealed && facts.holdsText)
            else { return true }
            var unasked = facts
            unasked.writers = .notAsked
            guard FileStep.next(unasked, waits) == .askForWriters else { return true }
            guard case .lookAgain(let wait) = step else { return false }
            return !facts.isReported || wait >= min(facts.silence, waits.unclosed)
        }
    }

    @Test("whatever is waited for comes: nothing is only waited for if it is reported")
    func waitsEnd() {
        always("a wait is positive, and bounded by the longest") { _, step in
            guard case .lookAgain(let wait) = step else { return true }
            return wait > .zero && wait <= .seconds(600)
        }
        always("an unfinished line of a rotated file is never given up without a reported writer") {
            facts, step in
            guard facts.isUnsealed, facts.naming != .written, step == .nothing else { return true }
            return facts.writers == .present && facts.isReported
        }
        always("what is asked for is not asked again before it is answered") { facts, step in
            step != .askForWriters || facts.writers == .notAsked
        }
        // With answers that stay what they are, waiting as long as is said leads to a decision.
        forEachFacts { start in
            guard start.writers == .absent || start.writers == .unknown else { return }
            var facts = start
            for _ in 0..<2000 {
                guard case .lookAgain(let wait) = FileStep.next(facts, waits) else { return }
                facts.silence += wait
            }
            Issue.record("no decision after \(facts.silence): \(start)")
        }
    }

    @Test("a lease that says no process has the file open decides like the rules, case by case")
    func decisionsWithALease() {
        var facts = FileFacts(
            naming: .written, end: .open, isUnsealed: false, holdsText: false, isEmpty: false,
            isCommitted: true,
            mayGo: true, writers: .absent, hasChanged: false, isReported: true, silence: .seconds(60))
        #expect(FileStep.next(facts, waits) == .claimAndRemove)
        facts.isCommitted = false
        #expect(FileStep.next(facts, waits) == .nothing)
        facts.hasChanged = true
        #expect(FileStep.next(facts, waits) == .readChanges)
        (facts.hasChanged, facts.isUnsealed, facts.silence) = (false, true, .seconds(9))
        #expect(FileStep.next(facts, waits) == .lookAgain(after: .seconds(1)))
        facts.naming = .rotated
        #expect(FileStep.next(facts, waits) == .seal)
        facts.writers = .unknown
        #expect(FileStep.next(facts, waits) == .lookAgain(after: .seconds(591)))
        facts.isReported = false
        #expect(FileStep.next(facts, waits) == .lookAgain(after: .seconds(1)))
        facts.silence = .seconds(600)
        #expect(FileStep.next(facts, waits) == .sealUnclosed)
    }
}
