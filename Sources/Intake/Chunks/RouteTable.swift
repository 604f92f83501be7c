package import Model

/// Makes the route to a set of destinations, whether the configuration or a container's tag names the set.
package struct RouteTable: Sendable, Equatable {
    /// What a destination requires of chunks.
    package struct Destination: Sendable, Equatable {
        let name: String
        let compression: Compression
        let batches: ChunkLimits
        /// Number of waiting events that are sent at once.
        let due: Int

        package init(name: String, compression: Compression, batches: ChunkLimits, due: Int? = nil) {
            self.name = name
            self.compression = compression
            self.batches = batches
            self.due = due ?? batches.events
        }
    }

    var destinations: [Destination] = []
    /// Limits of chunks if no destination has any.
    var standard: ChunkLimits
    /// Compression of all chunks; nil: what the destinations ask for.
    var compression: Compression?

    package init(destinations: [Destination] = [], standard: ChunkLimits, compression: Compression? = nil) {
        self.destinations = destinations
        self.standard = standard
        self.compression = compression
    }

    /// The route to those of the named destinations that are configured.
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

/// Destinations that a tag has named for events of a configured route, whose deadlines hold for them as well.
struct ShippedWay: Hashable {
    /// Names of the destinations, sorted.
    let names: [String]
    /// Index of the configured route.
    let standard: Int
}
