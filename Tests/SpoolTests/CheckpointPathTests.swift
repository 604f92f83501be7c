import Model
@testable import Spool
import TestKit
import Testing

@Suite("Spool: the path in a checkpoint, of which the queue stores a part")
struct CheckpointPathTests {
    @Test("a path of any length survives, with any state")
    func survives() {
        var random = SplitMix64(seed: 6)
        let characters: [Character] = ["a", "/", "é", "…", "x"]
        for length in [0, 1, 511, 512, 513, 600, 4096, 8191] {
            for state in [[], [1, 0, 7], [UInt8](repeating: 4, count: 300)] {
                let path = String((0..<length).compactMap { _ in characters.randomElement(using: &random) })
                let checkpoint = Checkpoint(key: [1], path: path, offset: 9, state: state)
                // What the queue does.
                var kept = checkpoint.keepingPath
                kept.path = kept.shownPath
                #expect(kept.path.utf8.count <= Checkpoint.longestShownPath)
                #expect(kept.restoringPath == checkpoint)
                // Most paths are short and cost nothing.
                if path.utf8.count <= Checkpoint.longestShownPath { #expect(kept == checkpoint) }
            }
        }
    }

    @Test("a damaged state gives no path")
    func damaged() {
        for state: [UInt8] in [[], [4], [4, 1], [4, 1, 0], [4, 255, 255, 0], [1, 1, 0, 65]] {
            let checkpoint = Checkpoint(key: [1], path: "p", offset: 0, state: state)
            #expect(checkpoint.restoringPath == checkpoint)
        }
    }
}
