import Glibc
import Logs
import Model
import Queue
import TestKit
import Testing

@testable import Intake

/// Reader, intake and queue on a disk that forgets what was not synced: the database by a VFS, the spool directory by
/// taking over the calls that change names.
@Suite("Crashes of spool and queue", .serialized, .timeLimit(.minutes(30)))
struct SpoolCrashTests {
    /// How many crashes in all: `SPOOL_CRASHES=5000` takes some minutes.
    static let crashes = getenv("SPOOL_CRASHES").flatMap { Int(String(cString: $0)) } ?? 240
    /// How often one machine crashes.
    static let each = 8

    @Test(
        "after power cuts nothing accepted is lost, accepted twice or acknowledged twice, and the ledger balances"
    )
    func fault04_powerCuts() async throws { try await run(.power, .powerLoss) }

    @Test("after kills nothing is lost or repeated, and every written line arrives")
    func fault04_processDeath() async throws { try await run(.process, .powerLoss) }

    @Test("durability crash: after kills nothing is lost or repeated")
    func fault04_processDeathWithoutSync() async throws { try await run(.process, .crash) }

    @Test("durability crash: after power cuts no event that a writer has synced is lost")
    func fault04_powerCutsWithoutSync() async throws { try await run(.power, .crash) }

    @Test("with an app that repeats events each id arrives exactly once, through kills")
    func repeatsAndProcessDeath() async throws { try await run(.process, .powerLoss, repeats: true) }

    @Test("with an app that repeats events each synced id arrives, and none twice, through power cuts")
    func repeatsAndPowerCuts() async throws { try await run(.power, .powerLoss, repeats: true) }

    private func run(
        _ cut: CrashDisk.Cut, _ durability: Durability, repeats: Bool = false, test: String = #function
    ) async throws {
        let seeds = Seeds.list(1...UInt64(max(1, SpoolCrashTests.crashes / 4 / SpoolCrashTests.each)))
        let worlds = seeds.count
        var isWell = true
        var effects = CrashWorld.Effects()
        try await CrashDisk.exclusively {
            for seed in seeds {
                let world = try CrashWorld(seed: seed, cut, durability, repeats: repeats)
                do {
                    for _ in 0..<SpoolCrashTests.each { try await world.live() }
                    try await world.finish()
                    effects += world.effects
                } catch {
                    let log = world.log.messages.suffix(30).map { "\($0.text) \($0.fields)" }.joined(
                        separator: "\n")
                    isWell = false
                    Issue.record(
                        "\(Seeds.again(seed, test: test)): \(error)\n\(world.history.suffix(400).joined(separator: "\n"))\nlog: \(log)"
                    )
                    await world.abandon()
                    CrashDisk.reset()
                    return
                }
            }
            CrashDisk.reset()
        }
        guard isWell else { return }
        // Else the test would show nothing.
        #expect(effects.discarded > worlds || !repeats)
        #expect(effects.arrived > worlds * SpoolCrashTests.each * 5)
        if cut == .power { #expect(effects.undone > worlds && effects.shortened > worlds) }
        if SpoolCrashTests.crashes > 1000 { print("\(worlds * SpoolCrashTests.each) crashes: \(effects)") }
    }
}
