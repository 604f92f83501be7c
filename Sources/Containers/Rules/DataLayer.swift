internal import Model

/// What an app has pushed so far: a tree that merges deeply (tm11).
///
/// Maps merge member by member, lists by index, everything else replaces; null is a value. Bounded in size: a push that
/// would pass the bound changes nothing.
struct DataLayer: Sendable {
    /// What one app's layer may take, in bytes of JSON text, about.
    static let limit = 16 << 10

    private var root: [Name: Node] = [:]
    /// When it changed last, counted in changes of all layers.
    fileprivate var turn = 0
    /// Bytes of JSON text, about.
    private(set) var size = 0

    private indirect enum Node: Sendable {
        case scalar(JSONValue)
        case map([Name: Node])
        case list([Node])
    }

    /// A name, byte for byte: `String` would take names for the same that differ in their Unicode form only.
    private typealias Name = [UInt8]

    init() {}

    /// Whether merging these members would change nothing, as far as that is quick to see.
    func holds(_ members: [JSONValue.Member]) -> Bool {
        members.allSatisfy { member in
            if case .scalar(let known)? = root[member.key.bytes] { known == member.value } else { false }
        }
    }

    /// Merges members into it; false, and nothing has changed, when it would grow too large.
    mutating func push(_ members: [JSONValue.Member]) -> Bool {
        var changed = root
        var grown = size
        for member in members {
            grown += DataLayer.merge(member.value, into: &changed, member.key.bytes)
            guard grown <= DataLayer.limit else { return false }
        }
        root = changed
        size = grown
        return true
    }

    /// The value at these names, outermost first; nil when there is none.
    func value(at names: [String]) -> JSONValue? {
        guard let first = names.first, var node = root[first.bytes] else { return nil }
        for name in names.dropFirst() {
            switch node {
            case .map(let members):
                guard let next = members[name.bytes] else { return nil }
                node = next
            case .list(let elements):
                guard let index = Int(name), elements.indices.contains(index) else { return nil }
                node = elements[index]
            case .scalar: return nil
            }
        }
        return DataLayer.json(node)
    }

    var json: JSONValue { DataLayer.json(.map(root)) }

    // MARK: Hiding

    /// Takes out what tags hide; gives whether there was any.
    mutating func hide(_ hidden: HiddenMembers) -> Bool {
        var isChanged = false
        for path in hidden.layerPaths where remove(path) { isChanged = true }
        for scrubber in hidden.scrubbers where clean(scrubber) { isChanged = true }
        return isChanged
    }

    /// Takes out what the path leads to, in each element of lists on the way; gives whether anything did.
    private mutating func remove(_ path: PathSteps) -> Bool {
        guard !path.isAtEnd(path.start) else {
            defer { self = DataLayer() }
            return !root.isEmpty
        }
        var all = Node.map(root)
        guard DataLayer.remove(path, path.start, from: &all), case .map(let members) = all else { return false }
        root = members
        size = root.reduce(0) { $0 + $1.key.count + 4 + DataLayer.weight($1.value) }
        return true
    }

    private static func remove(_ path: PathSteps, _ states: UInt64, from node: inout Node) -> Bool {
        var isChanged = false
        switch node {
        case .scalar: break
        case .map(var members):
            for (name, inner) in members {
                let next = path.next(states, name)
                var inner = inner
                let isEnd = path.isAtEnd(next)
                guard isEnd || next != 0 && remove(path, next, from: &inner) else { continue }
                members[name] = isEnd ? nil : inner
                isChanged = true
            }
            node = .map(members)
        case .list(var elements):
            for index in elements.indices where remove(path, states, from: &elements[index]) { isChanged = true }
            node = .list(elements)
        }
        return isChanged
    }

    /// Takes out what patterns find, wherever it is; gives whether they found anything.
    private mutating func clean(_ scrubber: Scrubber) -> Bool {
        let members = json.members ?? []
        let clean = scrubber.clean(.object(members)).members ?? []
        guard clean != members else { return false }
        var layer = DataLayer()
        // What takes the place of a match may be longer: beyond the bound nothing is kept.
        _ = layer.push(clean)
        self = layer
        return true
    }

    // MARK: Merging

    /// Returns by how much it has grown.
    private static func merge(_ value: JSONValue, into map: inout [Name: Node], _ key: Name) -> Int {
        guard var old = map.removeValue(forKey: key) else {
            let node = node(value)
            map[key] = node
            return weight(node) + key.count + 4
        }
        let growth = merge(value, into: &old)
        map[key] = old
        return growth
    }

    private static func merge(_ value: JSONValue, into node: inout Node) -> Int {
        switch (node, value) {
        case (.map(var members), .object(let new)):
            node = .scalar(.null)  // so that the map is changed in its place
            var growth = 0
            for member in new { growth += merge(member.value, into: &members, member.key.bytes) }
            node = .map(members)
            return growth
        case (.list(var elements), .array(let new)):
            node = .scalar(.null)
            var growth = 0
            for (index, value) in new.enumerated() {
                if index < elements.count {
                    growth += merge(value, into: &elements[index])
                } else {
                    elements.append(self.node(value))
                    growth += weight(elements[index]) + 1
                }
            }
            node = .list(elements)
            return growth
        default:
            let made = self.node(value)
            let growth = weight(made) - weight(node)
            node = made
            return growth
        }
    }

    private static func node(_ value: JSONValue) -> Node {
        switch value {
        case .object(let members):
            // The last of equal keys counts.
            .map(Dictionary(members.map { ($0.key.bytes, node($0.value)) }) { $1 })
        case .array(let elements): .list(elements.map { node($0) })
        default: .scalar(value)
        }
    }

    private static func weight(_ node: Node) -> Int {
        switch node {
        case .scalar(.string(let text)): text.utf8.count + 2
        case .scalar: 8
        case .map(let members): members.reduce(2) { $0 + $1.key.count + 4 + weight($1.value) }
        case .list(let elements): elements.reduce(2) { $0 + 1 + weight($1) }
        }
    }

    private static func json(_ node: Node) -> JSONValue {
        switch node {
        case .scalar(let value): value
        case .map(let members):
            .object(
                members.sorted { $0.key.lexicographicallyPrecedes($1.key) }
                    .map { JSONValue.Member(String(decoding: $0.key, as: UTF8.self), json($0.value)) })
        case .list(let elements): .array(elements.map { json($0) })
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
            if pushed.hide(hidden) { members = pushed.json.members ?? [] }
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
