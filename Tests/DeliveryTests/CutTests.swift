import TestKit
import Testing

@testable import Delivery

@Suite("Dividing a refused batch")
struct CutTests {
    /// The pieces, each as the places of its events.
    private func places(_ numbers: [Int]) -> [[Int]] {
        Dictionary(grouping: numbers.indices, by: { numbers[$0] }).sorted { $0.key < $1.key }.map(\.value)
    }

    @Test("up to 64 events are single after two cuts, so each is sent at most three times", arguments: 2...64)
    func twice(events: Int) {
        for share in [nil, 0.0, 0.01, 0.1, 0.3, 1.0] {
            let first = places(Cut.pieces(of: events, share: { _ in share }))
            #expect(
                first.count > 1 && first.flatMap { $0 } == Array(0..<events), "in order, and none is left out"
            )
            for piece in first where piece.count > 1 {
                let second = places(Cut.pieces(of: piece.count, isPiece: true, share: { _ in share }))
                #expect(second.count == piece.count)
            }
        }
    }

    @Test("each piece of a small batch has one app; events of an app without acknowledgements stay together")
    func apps() {
        let apps = (0..<50).map { ["web", "shop", "bad"][$0 % 3] }
        let pieces = places(Cut.pieces(of: 50, apps: apps, hopeless: ["bad"]))
        #expect(pieces.allSatisfy { Set($0.map { apps[$0] }).count == 1 })
        #expect(pieces.filter { apps[$0[0]] == "bad" }.count == 1)
        #expect(pieces.filter { apps[$0[0]] != "bad" }.allSatisfy { $0.count <= 8 })
    }

    @Test(
        "pieces have the size with the fewest requests; if a third of an app's events are refused, they are single"
    )
    func dense() {
        #expect(places(Cut.pieces(of: 50, share: { _ in 0.31 })).count == 50)
        #expect(places(Cut.pieces(of: 48, share: { _ in 0.2 })).allSatisfy { $0.count == 3 })
        #expect(places(Cut.pieces(of: 50, share: { _ in 0.04 })).allSatisfy { $0.count <= 6 })
        for percent in 1...99 {
            let good = 1 - Double(percent) / 100
            func requests(_ size: Int) -> Double {
                size == 1 ? 1 : 1 / Double(size) + 1 - (0..<size).reduce(1.0) { power, _ in power * good }
            }
            let sizes = places(Cut.pieces(of: 64, share: { _ in 1 - good })).map(\.count)
            let fewest = (1...8).map(requests).min() ?? 1
            #expect(requests(sizes.max() ?? 1) <= fewest * 1.02, "\(percent) percent")
        }
    }

    @Test("one bad event of 5,000 is found in 25 requests; with many bad ones a cut makes at most 64 pieces")
    func large() {
        var size = 5_000
        var requests = 0
        while size > 1 {
            let pieces = places(Cut.pieces(of: size, isPiece: size < 5_000, share: { _ in 0 }))
            requests += pieces.count
            size = pieces.map(\.count).max() ?? 1
        }
        #expect(requests <= 25)
        #expect(places(Cut.pieces(of: 5_000, share: { _ in 0.5 })).count == 64)
    }
}
