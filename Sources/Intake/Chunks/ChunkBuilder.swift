internal import Events
internal import EventLoops
internal import Frames
internal import Model
internal import Spool

/// The next commit while it is being made: open chunks by route, and what was counted and quarantined beside
/// them. It decides when a chunk is full, and nothing else; it knows no pass, no rules and no queue.
struct ChunkBuilder {
    /// What the next commit will hold, except the open chunks.
    private(set) var pending = Commit()
    /// Size of the next commit in bytes: frames of closed chunks as they are stored, and quarantined lines.
    private(set) var pendingBytes = 0
    /// Routes of events: those of the configuration, then those that tags have named.
    private(set) var routes: [Route] = []
    /// Open chunks by route: the normal one, then the critical one.
    private(set) var open: [[OpenChunk]] = []
    /// Index in `routes` of each set of destinations that a tag has named; -1 for a set without a configured
    /// destination.
    private var shipped: [ShippedWay: Int] = [:]
    /// All destinations, for tags that name some of them.
    private var table: RouteTable
    /// Number of routes of the configuration.
    private var configured = 0
    /// Whether all lines are of one app: then chunks keep less memory while they are empty.
    private let isOfOneApp: Bool
    /// Compressors of all intakes on the loop; nil: this one makes its own.
    private let sharedCompressors: LoopBound<Compressors>?
    private lazy var compressors = sharedCompressors?.assumeOnLoop { $0 } ?? Compressors()

    /// Most routes that tags add; with more, all of them are closed and found again.
    private static let mostShipped = 64
    /// Estimated size of a record without its texts, in memory and in the queue. Without it, a commit of many
    /// small records would grow large unnoticed.
    private static let recordBytes = 256

    init(_ settings: IntakeSettings, isOfOneApp: Bool, sharing compressors: LoopBound<Compressors>?) {
        self.isOfOneApp = isOfOneApp
        sharedCompressors = compressors
        table = settings.table
        use(settings)
    }

    /// Applies changed settings. Lines read before are closed under the old ones, or discarded and
    /// counted if the new ones end collection.
    mutating func configure(_ settings: IntakeSettings) {
        closeAll()
        if !settings.isCollecting {
            discardChunks()
        }
        use(settings)
    }

    private mutating func use(_ settings: IntakeSettings) {
        table = settings.table
        routes = settings.routes
        configured = routes.count
        shipped = [:]
        open = routes.map { _ in openChunks() }
    }

    /// Discards and counts the lines that were read and not committed, because collection was disabled.
    private mutating func discardChunks() {
        for chunk in pending.chunks {
            count(
                .discarded(reason: "disabled"), chunk.priority, to: chunk.destinations, events: chunk.events)
            // Quarantined lines stay, and count on: otherwise the commit would grow beyond its bound.
            pendingBytes -= chunk.frame.count
        }
        pending.chunks = []
    }

    /// The empty chunks of a route.
    private func openChunks() -> [OpenChunk] {
        [.normal, .critical].map { OpenChunk(priority: $0, isOfOneApp: isOfOneApp) }
    }

    /// Whether the next commit would hold any event.
    var holdsEvents: Bool {
        !pending.chunks.isEmpty || open.contains { chunks in chunks.contains { !$0.isEmpty } }
    }

    /// Whether the next commit would hold a full chunk, which gains nothing by waiting, or a critical event.
    var isUrgent: Bool { !pending.chunks.isEmpty || open.contains { !$0[1].isEmpty } }

    // MARK: Chunks

    /// Closes a chunk and adds it to the next commit.
    mutating func close(_ chunk: OpenChunk, _ route: Route, isFull: Bool) {
        do throws(FrameError) {
            let made = try chunk.close(for: route, isFull: isFull, with: compressors)
            pendingBytes += made.frame.count
            pending.chunks.append(made)
        } catch {
            // Compression fails only for lack of memory. Going on would lose the chunk; after a restart the
            // spool still has its lines.
            preconditionFailure("cannot pack a chunk: \(error.message)")
        }
    }

    /// Closes all open chunks; empty ones give memory back.
    private mutating func closeAll() {
        for (index, chunks) in open.enumerated() {
            for chunk in chunks {
                if chunk.isEmpty {
                    chunk.releaseMemory()
                } else {
                    close(chunk, routes[index], isFull: false)
                }
            }
        }
    }

    /// Gives the memory of empty chunks back, because no line was read for a while.
    func releaseMemory() {
        for chunk in open.joined() where chunk.isEmpty { chunk.releaseMemory(keeping: 0) }
    }

    /// Puts a line into its chunk. The chunk is closed before if it has no room for the line, and afterwards
    /// if it is full.
    ///
    /// - Parameter seen: sees the line in its chunk, before the chunk may be closed.
    mutating func put(
        _ line: UnsafeRawBufferPointer, on routeIndex: Int, _ priority: Priority, from source: SpoolSource,
        at offset: Int64, eventTime: Timestamp, acceptedAt: Timestamp, seen: (OpenChunk, Int) -> Void
    ) {
        let limits = routes[routeIndex].chunks
        let chunk = open[routeIndex][priority == .critical ? 1 : 0]
        if chunk.lines.count + line.count > limits.bytes, !chunk.isEmpty {
            close(chunk, routes[routeIndex], isFull: true)
        }
        chunk.beginSource(source)
        let begin = chunk.lines.count
        chunk.lines.append(line)
        seen(chunk, begin)
        chunk.count(eventTime: eventTime, acceptedAt: acceptedAt, at: offset)
        if chunk.events == limits.events || chunk.lines.count >= limits.bytes {
            close(chunk, routes[routeIndex], isFull: true)
        }
    }

    // MARK: Routes

    /// Index of the route to the destinations that a tag has named; nil if none of them is configured.
    ///
    /// - Parameter standard: index of the configured route.
    mutating func routeIndex(of names: [String], else standard: Int) -> Int? {
        let way = ShippedWay(names: names, standard: standard)
        let known = shipped[way] ?? findRoute(of: way)
        return known < 0 ? nil : known
    }

    /// Finds or adds the route; -1 if none of its destinations is configured.
    private mutating func findRoute(of way: ShippedWay) -> Int {
        var route = table.route(to: way.names)
        route.deadlines = routes[way.standard].deadlines
        var index = routes.firstIndex(of: route) ?? routes.count
        if route.destinations.isEmpty {
            index = -1
        } else if index == routes.count {
            // Documents name the sets of destinations. Without a bound, the open chunks of these routes would
            // fill the memory.
            if routes.count >= configured + ChunkBuilder.mostShipped {
                closeAll()
                routes.removeSubrange(configured...)
                shipped = [:]
                open.removeSubrange(configured...)
                index = routes.count
            }
            routes.append(route)
            open.append(openChunks())
        }
        shipped[way] = index
        return index
    }

    // MARK: Beside the chunks

    /// Counts a line that was read.
    @inline(__always)
    mutating func countRead() { pending.read += 1 }

    /// Counts a line beyond a limit whose consequence is `refuse`.
    mutating func countRefused() { pending.refused += 1 }

    /// Counts events that are not stored, by what happened to them. The commit carries the counts, so that
    /// the ledger stays exact after a crash.
    mutating func count(
        _ fate: NotStored.Fate, _ priority: Priority, to destinations: [DestinationName], events: Int = 1,
        isStoredForOthers: Bool = false
    ) {
        let index = pending.notStored.firstIndex {
            $0.fate == fate && $0.priority == priority && $0.destinations == destinations
                && $0.isStoredForOthers == isStoredForOthers
        }
        if let index {
            pending.notStored[index].events += events
        } else {
            var entry = NotStored(priority: priority, destinations: destinations, fate: fate, events: events)
            entry.isStoredForOthers = isStoredForOthers
            pending.notStored.append(entry)
        }
    }

    /// Takes a record for the quarantine whose content may be kept as it is.
    mutating func quarantine(_ record: QuarantineRecord) {
        countRead()
        pending.quarantined.append(record)
        pendingBytes +=
            ChunkBuilder.recordBytes + record.content.count + record.detail.utf8.count
            + record.path.utf8.count
    }

    /// Closes the open chunks and ends the commit.
    mutating func takeCommit() -> Commit {
        closeAll()
        assert(open.allSatisfy { $0.allSatisfy(\.isEmpty) }, "a line would be durable after its checkpoint")
        defer {
            pending = Commit()
            pendingBytes = 0
        }
        return pending
    }
}
