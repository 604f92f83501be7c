import Configuration
import Intake
import Testing

@testable import Agent

@Suite("The effective batch size")
struct BatchSizeTests {
    @Test(
        "chunks are cut at the batch size that `check --print` shows",
        arguments: [24 << 10, 10 << 20, 64 << 20, 1 << 30])
    func printedAndUsedAgree(cap: Int) {
        for size in [1 << 10, 160 << 10, 1 << 20, 64 << 20] {
            var settings = Settings()
            settings.queue.maxSize = cap
            settings.dispatch.batchSize = size
            let limits = ChunkLimits(batchEvents: 5_000, batchBytes: size, cap: cap)
            #expect(settings.inForce(batchSize: settings.dispatch.batchSize) == limits.bytes)
        }
    }
}
