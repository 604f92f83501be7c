import TestKit
import Testing

/// The streams against a model that knows which bytes exist where.
@Suite("Streams, without a disk", .timeLimit(.minutes(5)))
struct StreamsModelTests {
    @Test(
        "through any writes, rotations and kills each existing line arrives once, and only lost ones are given up"
    )
    func eachLineOnce() throws {
        let seed = Seeds.one(1)
        var (worlds, steps) = (0, 0)
        while worlds < 150 {
            let world = ModelWorld(seed: seed &+ UInt64(worlds))
            do {
                for _ in 0..<600 { try world.step() }
                try world.end()
            } catch {
                Issue.record("step \(world.steps): \(error); \(Seeds.again(seed &+ UInt64(worlds)))")
                return
            }
            worlds += 1
            steps += world.steps
        }
        print("streams: \(steps) steps in \(worlds) worlds")
    }

    @Test("worlds that failed once", arguments: [19_691] as [UInt64])
    func again(seed: UInt64) throws {
        let world = ModelWorld(seed: seed)
        for _ in 0..<600 { try world.step() }
        try world.end()
    }
}
