import EventLoops
import Events
import Model
import Spool
import Testing

@testable import Intake

@Suite("The next commit while it is being made")
struct ChunkBuilderTests {
    private let limits = ChunkLimits(batchEvents: 3, batchBytes: 1 << 20, cap: 64 << 20)
    private let source = SpoolSource(app: "shop", path: "shop/a.jsonl", producer: nil)
    private let now = Timestamp(milliseconds: 1_795_168_800_000)

    private func settings(isCollecting: Bool = true) -> IntakeSettings {
        let names: [DestinationName] = ["main"] + (0..<100).map { DestinationName("more\($0)") }
        let table = RouteTable(
            destinations: names.map {
                RouteTable.Destination(name: $0.text, compression: .none, batches: limits, due: 3)
            },
            standard: limits, compression: Compression.none)
        let route = Route(destinations: ["main"], compression: .none, chunks: limits)
        return IntakeSettings(
            events: .withoutSessions, routes: [route], table: table, isCollecting: isCollecting,
            cap: 64 << 20)
    }

    private func builder() -> ChunkBuilder {
        ChunkBuilder(settings(), isOfOneApp: false, sharing: nil)
    }

    /// Puts a line as the intake does; returns what was seen of it in its chunk.
    private func put(
        _ text: String, on place: Int = 0, _ priority: Priority = .normal, in chunks: inout ChunkBuilder
    ) -> String {
        var seen = ""
        Array((text + "\n").utf8).withUnsafeBytes { line in
            chunks.countRead()
            chunks.put(
                line, on: place, priority, from: source, at: 0, eventTime: now, acceptedAt: now
            ) { chunk, begin in
                seen = String(decoding: chunk.lines.bytes[begin...], as: UTF8.self)
            }
        }
        return seen
    }

    @Test("a chunk is closed when it is full; priorities and routes have chunks of their own")
    func closesFullChunks() {
        var chunks = builder()
        for number in 0..<4 { #expect(put("a\(number)", in: &chunks) == "a\(number)\n") }
        _ = put("b", .critical, in: &chunks)
        #expect(chunks.pending.chunks.map(\.events) == [3])
        #expect(chunks.pendingBytes == chunks.pending.chunks[0].frame.count && chunks.holdsEvents)
        let commit = chunks.takeCommit()
        #expect(commit.read == 5 && commit.chunks.map(\.events) == [3, 1, 1])
        #expect(commit.chunks.map(\.priority) == [.normal, .normal, .critical])
        #expect(!chunks.holdsEvents && chunks.pendingBytes == 0 && chunks.takeCommit().read == 0)
    }

    @Test("a commit is urgent with a critical event or a full chunk, and not with other events")
    func urgentCommits() {
        var chunks = builder()
        for number in 0..<2 { _ = put("a\(number)", in: &chunks) }
        #expect(!chunks.isUrgent)
        _ = put("b", .critical, in: &chunks)
        #expect(chunks.isUrgent && !chunks.takeCommit().chunks.isEmpty && !chunks.isUrgent)
        for number in 0..<3 { _ = put("a\(number)", in: &chunks) }
        #expect(chunks.isUrgent && chunks.takeCommit().chunks.map(\.events) == [3] && !chunks.isUrgent)
    }

    @Test("when collection ends, events are discarded and counted; what is in quarantine stays and counts")
    func endsCollection() {
        var chunks = builder()
        _ = put("a", in: &chunks)
        let record = QuarantineRecord(
            reason: .notJSON, detail: "bad", app: "shop", path: "shop/a.jsonl", offset: 0, length: 3,
            content: [1, 2, 3], time: now)
        chunks.quarantine(record)
        let ofRecord = chunks.pendingBytes
        #expect(ofRecord > 256)
        chunks.configure(settings(isCollecting: false))
        #expect(chunks.pendingBytes == ofRecord && !chunks.holdsEvents)
        let commit = chunks.takeCommit()
        #expect(commit.read == 2 && commit.quarantined.count == 1 && commit.chunks.isEmpty)
        #expect(commit.notStored.map(\.events) == [1])
    }

    @Test("routes that tags name are found again, and are bounded; unknown destinations have none")
    func routesOfTags() {
        var chunks = builder()
        let first = chunks.routeIndex(of: ["more1"], else: 0)
        #expect(first == 1 && chunks.routeIndex(of: ["more1"], else: 0) == first)
        #expect(chunks.routeIndex(of: ["nobody"], else: 0) == nil)
        for number in 0..<100 {
            guard let place = chunks.routeIndex(of: ["more\(number)"], else: 0) else {
                Issue.record("no route to more\(number)")
                continue
            }
            #expect(chunks.routes[place].destinations == [DestinationName("more\(number)")])
            _ = put("to \(number)", on: place, in: &chunks)
            #expect(chunks.routes.count <= 65)
        }
        #expect(chunks.takeCommit().chunks.reduce(0) { $0 + $1.events } == 100)
    }
}
