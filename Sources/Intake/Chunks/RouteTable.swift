package import Model

/// How chunks for a set of destinations are compressed, whether the configuration or a container's tag names the set.
package struct RouteTable: Sendable, Equatable {
    package struct Destination: Sendable, Equatable {
        let name: String
        let compression: Compression
        let batches: ChunkLimits
        /// So many waiting events go at once.
        let due: Int

        package init(name: String, compression: Compression, batches: ChunkLimits, due: Int? = nil) {
            self.name = name
            self.compression = compression
            self.batches = batches
            self.due = due ?? batches.events
        }
    }

    var destinations: [Destination] = []
    /// How large batches may be where a destination has no limits of its own.
    var standard: ChunkLimits
    /// What everything is packed with; nil for what the destinations want.
    var compression: Compression?

    package init(destinations: [Destination] = [], standard: ChunkLimits, compression: Compression? = nil) {
        self.destinations = destinations
        self.standard = standard
        self.compression = compression
    }

    /// The way to those of these destinations that are configured.
    package func route(to names: some Collection<String>) -> Route {
        let taken = destinations.filter { names.contains($0.name) }
        let wanted = Set(taken.map(\.compression))
        let chunks = ChunkLimits(shared: taken.map(\.batches)) ?? standard
        return Route(
            destinations: taken.map { DestinationName($0.name) },
            compression: compression ?? (wanted.count == 1 ? wanted.first ?? .zstd : .zstd), chunks: chunks,
            batchFrom: taken.filter { $0.batches == chunks }.map(\.due).max(),
            otherBatches: taken.filter { $0.batches != chunks }.map { DestinationName($0.name) })
    }
}

/// Destinations that a tag named for events of a configured way, whose other words (its deadlines) hold for them, too.
struct ShippedWay: Hashable {
    /// Sorted.
    let names: [String]
    /// The way of the configuration, by its place.
    let standard: Int
}
