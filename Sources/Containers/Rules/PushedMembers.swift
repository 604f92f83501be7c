internal import Model

/// Which members of each event become part of its app's data layer: the name as `event`, properties at the
/// top, other members under their names; and only those that something in force reads (DESIGN.md, "What the
/// data layer keeps of events").
final class PushedMembers {
    /// The members that are searched for.
    private let wanted: WantedMembers
    /// Ranges of the members' values in the present event.
    private let ranges: UnsafeMutablePointer<WantedMembers.ValueRange>
    /// The members of the layer, with their sources.
    private let sources: [Source]

    /// Whether nothing reads the data layer.
    let isEmpty: Bool

    /// Where a member of the layer comes from: of several members of the event, the first that it has.
    private struct Source {
        /// Name in the layer.
        let name: String
        /// Nodes of `wanted`, in order of priority.
        let nodes: [Int]
        /// Whether the source is the event's `properties`, which counts as a member only if it is not an
        /// object.
        let isProperties: Bool
    }

    /// The members for some names.
    ///
    /// - Parameter names: members of the layer that are read, by their names at the top.
    init(_ names: Set<[UInt8]>) {
        isEmpty = names.isEmpty
        let paths = Dictionary(uniqueKeysWithValues: names.map { ($0, PushedMembers.paths(of: $0)) })
        let wanted = WantedMembers(paths.values.flatMap { $0 })
        sources = paths.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { name, paths in
            Source(
                name: String(decoding: name, as: UTF8.self), nodes: paths.compactMap { wanted.node(at: $0) },
                isProperties: name == "properties".bytes)
        }
        ranges = .allocate(capacity: wanted.count)
        ranges.initialize(repeating: WantedMembers.ValueRange(), count: wanted.count)
        self.wanted = wanted
    }

    deinit { ranges.deallocate() }

    /// Paths in an event from which a member of the layer comes.
    private static func paths(of name: [UInt8]) -> [[[UInt8]]] {
        switch name {
        case "event".bytes: [WantedMembers.name]
        // The event's own name is pushed as `event`.
        case "name".bytes: [["properties".bytes, name]]
        default: [["properties".bytes, name], [name]]
        }
    }

    /// The members of an event for the layer.
    func members(of base: UnsafePointer<UInt8>, to end: Int) -> [JSONValue.Member] {
        wanted.find(in: base, to: end, into: ranges)
        var members: [JSONValue.Member] = []
        for source in sources {
            guard let range = source.nodes.lazy.compactMap({ self.ranges[$0].range }).first else { continue }
            if source.isProperties, ranges[source.nodes[0]].range == nil,
                base[range.lowerBound] == UInt8(ascii: "{")
            {
                continue
            }
            members.append(JSONValue.Member(source.name, RawJSON.value(base, range)))
        }
        return members
    }
}
