internal import Model

/// What of each event becomes part of its app's data layer: `event` is its name, its properties stand at the top, its other
/// members under their names (tm11). Only what something in force reads.
final class PushedMembers {
    private let wanted: WantedMembers
    private let places: UnsafeMutablePointer<WantedMembers.Place>
    private let sources: [Source]

    let isEmpty: Bool

    /// Where a member of the layer comes from: of several the first that the event has.
    private struct Source {
        let name: String
        let nodes: [Int]
        /// Whether it is the event's `properties`, which count as a member where they are no object.
        let isProperties: Bool
    }

    /// - Parameter names: the members of the layer that are read, by their names at the top.
    init(_ names: Set<[UInt8]>) {
        isEmpty = names.isEmpty
        let paths = Dictionary(uniqueKeysWithValues: names.map { ($0, PushedMembers.paths(of: $0)) })
        let wanted = WantedMembers(paths.values.flatMap { $0 })
        sources = paths.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { name, paths in
            Source(
                name: String(decoding: name, as: UTF8.self), nodes: paths.compactMap { wanted.node(at: $0) },
                isProperties: name == "properties".bytes)
        }
        places = .allocate(capacity: wanted.count)
        places.initialize(repeating: WantedMembers.Place(), count: wanted.count)
        self.wanted = wanted
    }

    deinit { places.deallocate() }

    private static func paths(of name: [UInt8]) -> [[[UInt8]]] {
        switch name {
        case "event".bytes: [WantedMembers.name]
        // The event's own is pushed as `event`.
        case "name".bytes: [["properties".bytes, name]]
        default: [["properties".bytes, name], [name]]
        }
    }

    func members(of base: UnsafePointer<UInt8>, to end: Int) -> [JSONValue.Member] {
        wanted.find(in: base, to: end, into: places)
        var members: [JSONValue.Member] = []
        for source in sources {
            guard let range = source.nodes.lazy.compactMap({ self.places[$0].range }).first else { continue }
            if source.isProperties, places[source.nodes[0]].range == nil, base[range.lowerBound] == UInt8(ascii: "{") {
                continue
            }
            members.append(JSONValue.Member(source.name, RawJSON.value(base, range)))
        }
        return members
    }
}
