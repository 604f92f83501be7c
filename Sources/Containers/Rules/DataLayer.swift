internal import Model

/// What an app has pushed so far: a tree that merges deeply (tm11).
///
/// Objects merge member by member, lists by index, everything else replaces; null is a value. Bounded in size: a push that
/// would pass the bound changes nothing.
struct DataLayer: Sendable {
    /// What one app's layer may take, in bytes of JSON text, about.
    static let limit = 16 << 10

    /// Its members: as those of each object in it, each name once, sorted by the names' bytes.
    private(set) var members: [JSONValue.Member] = []
    /// When it changed last, counted in changes of all layers.
    fileprivate var turn = 0
    /// Bytes of JSON text, about.
    private var size = 0

    init() {}

    var json: JSONValue { .object(members) }

    /// Whether merging these members would change nothing, as far as that is quick to see.
    func holds(_ new: [JSONValue.Member]) -> Bool {
        new.allSatisfy { member in
            switch member.value {
            case .object, .array: false
            default: DataLayer.find(member.key, in: members).value == member.value
            }
        }
    }

    /// Merges members into it; false, and nothing has changed, when it would grow too large.
    mutating func push(_ new: [JSONValue.Member]) -> Bool {
        var layer = self
        for member in new {
            // What is too large by itself is not even merged.
            guard DataLayer.weight(member.value) <= DataLayer.limit else { return false }
            layer.size += DataLayer.merge(member, into: &layer.members)
            guard layer.size <= DataLayer.limit else { return false }
        }
        self = layer
        return true
    }

    /// The value at these names, outermost first; nil when there is none.
    func value(at names: [String]) -> JSONValue? {
        names.reduce(json) { (value: JSONValue?, name) in
            switch value {
            case .object(let members)?: DataLayer.find(name, in: members).value
            case .array(let elements)?: Int(name).flatMap { elements.indices.contains($0) ? elements[$0] : nil }
            default: nil
            }
        }
    }

    /// Takes out what tags hide; gives whether there was any.
    mutating func hide(_ hidden: HiddenMembers) -> Bool {
        var clean = json
        for path in hidden.layerPaths {
            clean = path.isAtEnd(path.start) ? .object([]) : DataLayer.without(path, path.start, clean)
        }
        for scrubber in hidden.scrubbers { clean = scrubber.clean(clean) }
        guard clean != json else { return false }
        var layer = DataLayer()
        layer.turn = turn
        // What takes the place of a match may be longer: beyond the bound nothing is kept.
        _ = layer.push(clean.members ?? [])
        self = layer
        return true
    }

    /// The value without what the path leads to, in each element of lists on the way.
    private static func without(_ path: PathSteps, _ states: UInt64, _ value: JSONValue) -> JSONValue {
        switch value {
        case .object(let members):
            .object(
                members.compactMap { member in
                    let next = path.next(states, member.key.bytes)
                    guard !path.isAtEnd(next) else { return nil }
                    return next == 0 ? member : .init(member.key, without(path, next, member.value))
                })
        case .array(let elements): .array(elements.map { without(path, states, $0) })
        default: value
        }
    }

    // MARK: Merging

    /// Where a member of that name is, or belongs, and its value where there is one.
    private static func find(_ name: String, in members: [JSONValue.Member]) -> (place: Int, value: JSONValue?) {
        var (low, high) = (0, members.count)
        while low < high {
            let middle = (low + high) / 2
            if members[middle].key.utf8.lexicographicallyPrecedes(name.utf8) { low = middle + 1 } else { high = middle }
        }
        let isThere = low < members.count && members[low].key.utf8.elementsEqual(name.utf8)
        return (low, isThere ? members[low].value : nil)
    }

    /// Merges a member with the one of its name, or replaces that; gives by how much they have grown.
    private static func merge(
        _ member: JSONValue.Member, into members: inout [JSONValue.Member], replaces: Bool = false
    ) -> Int {
        let (place, old) = find(member.key, in: members)
        let value = merged(replaces ? nil : old, member.value)
        members.replaceSubrange(place..<place + (old == nil ? 0 : 1), with: [.init(member.key, value)])
        return weight(value) - (old.map { weight($0) } ?? -member.key.utf8.count - 4)
    }

    private static func merged(_ old: JSONValue?, _ new: JSONValue) -> JSONValue {
        switch (old, new) {
        case (_, .object(let new)):
            // Where there was no object, the last of equal names counts.
            var members = old?.members ?? []
            for member in new { _ = merge(member, into: &members, replaces: old?.members == nil) }
            return .object(members)
        case (.array(let elements)?, .array(let new)):
            let both = zip(elements, new).map { merged($0, $1) }
            let added = new.dropFirst(elements.count).map { merged(nil, $0) }
            return .array(both + Array(elements.dropFirst(new.count)) + added)
        case (_, .array(let new)): return .array(new.map { merged(nil, $0) })
        default: return new
        }
    }

    private static func weight(_ value: JSONValue) -> Int {
        switch value {
        case .string(let text): text.utf8.count + 2
        case .object(let members): members.reduce(2) { $0 + $1.key.utf8.count + 4 + weight($1.value) }
        case .array(let elements): elements.reduce(2) { $0 + 1 + weight($1) }
        case .null, .bool, .integer, .double: 8
        }
    }
}

/// The data layers of all apps: bounded in number, durable with the events that changed them.
struct DataLayers {
    /// How many apps have one; names of apps come from users of the spool.
    static let limit = 512

    private(set) var layers: [String: DataLayer] = [:]
    private var holdings = Holdings()
    private var turn = 0
    private var changed: Set<String> = []
    /// Pushes that would have passed a bound and changed nothing, and layers that were given up.
    private(set) var refused = 0

    /// Takes out of an app's layer what is hidden.
    mutating func hide(_ hidden: HiddenMembers, of app: String) {
        if layers[app]?.hide(hidden) == true { changed.insert(app) }
    }

    /// - Parameter hidden: what is not taken.
    mutating func push(_ members: [JSONValue.Member], of app: String, hiding hidden: HiddenMembers? = nil) {
        if !take(members, of: app, hidden) { refused += 1 }
    }

    private mutating func take(_ members: [JSONValue.Member], of app: String, _ hidden: HiddenMembers?) -> Bool {
        var members = members
        if let hidden, !hidden.isEmpty {
            var pushed = DataLayer()
            // What is too large for a layer by itself is too large for one with more in it.
            guard pushed.push(members) else { return false }
            if pushed.hide(hidden) { members = pushed.members }
        }
        var layer = layers[app] ?? DataLayer()
        // Most events say again what is known: that needs no copy, and no write with the next commit.
        if layer.holds(members) { return true }
        guard layer.push(members), makeRoom(for: app) else { return false }
        turn += 1
        layer.turn = turn
        layers[app] = layer
        changed.insert(app)
        return true
    }

    /// Whether an app may have a layer; whoever has most of too many gives up the one that changed longest ago.
    private mutating func makeRoom(for app: String) -> Bool {
        guard layers[app] == nil else { return true }
        let room = holdings.take(for: Holdings.holder(of: app), of: DataLayers.limit)
        if case .givenUp(let giver) = room,
            let old = layers.filter({ Holdings.holder(of: $0.key) == giver }).min(by: { $0.value.turn < $1.value.turn })
        {
            layers[old.key] = nil
            changed.insert(old.key)
            refused += 1
        }
        return room != .none
    }

    /// What has changed since the last call, by name, for `Commit.memory`.
    mutating func takeMemory() -> [String: [UInt8]?] {
        guard !changed.isEmpty else { return [:] }
        var memory: [String: [UInt8]?] = [:]
        for app in changed {
            memory.updateValue(layers[app].map { Array($0.json.description.utf8) }, forKey: "layer/\(app)")
        }
        changed = []
        return memory
    }

    /// Takes up what an earlier process remembered; what cannot be read is left out.
    mutating func restore(_ memory: [String: [UInt8]]) {
        for (key, bytes) in memory where key.hasPrefix("layer/") {
            guard case .object(let members)? = try? JSONValue(parsing: bytes) else { continue }
            var layer = DataLayer()
            let app = String(key.dropFirst(6))
            if layer.push(members), makeRoom(for: app) { layers[app] = layer }
        }
    }
}
