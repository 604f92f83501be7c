internal import Model

/// What an app has pushed so far: a tree of values, merged deeply.
///
/// Objects are merged member by member, lists by index, and other values are replaced; null is a value. The
/// size is bounded: a push that would exceed the bound changes nothing. What is said about consent is one
/// member, `consent`, with rules of its own (`ConsentStatement.pushed`).
struct DataLayer: Sendable {
    /// Most bytes of one app's layer as JSON text, approximately. Small, because a changed layer is stored
    /// whole with each commit.
    static let limit = 16 << 10

    /// Members, without duplicate names and sorted by their bytes; so are the members of the objects in them.
    private(set) var members: [JSONValue.Member] = []
    /// Number of the last push into this layer, counted over all layers. The layer with the least number
    /// changed longest ago.
    fileprivate var lastPush = 0
    /// Bytes as JSON text, approximately.
    private var size = 0
    /// What the layer says about consent; nil if nothing. Kept ready, because every event asks for it.
    private(set) var consent: ConsentStatement?

    /// An empty layer.
    init() {}

    /// A layer of members that a layer had; nil if they are too large.
    private init?(members: [JSONValue.Member], lastPush: Int) {
        self.lastPush = lastPush
        for member in members {
            size += DataLayer.merge(member, into: &self.members)
            guard size <= DataLayer.limit else { return nil }
        }
        readConsent()
    }

    /// The layer as an object.
    var json: JSONValue { .object(members) }

    /// Whether merging these members would change nothing, as far as that is quickly seen. Most events repeat
    /// values, and then need no copy and no write.
    func holds(_ new: [JSONValue.Member]) -> Bool {
        new.allSatisfy { member in
            switch member.value {
            case .object, .array: false
            default: DataLayer.find(member.key, in: members).value == member.value
            }
        }
    }

    /// Merges members. Returns false, without a change, if the layer would become too large.
    mutating func push(_ new: [JSONValue.Member]) -> Bool {
        var layer = self
        for member in new {
            // A value that is too large by itself is not merged at all.
            guard DataLayer.weight(member.value) <= DataLayer.limit else { return false }
            if member.key == "consent" {
                layer.pushConsent(member.value)
            } else {
                layer.size += DataLayer.merge(member, into: &layer.members)
            }
            guard layer.size <= DataLayer.limit else { return false }
        }
        if new.contains(where: { $0.key == "consent" }) {
            layer.readConsent()
        }
        self = layer
        return true
    }

    /// Pushes what is said about consent: an object changes the purposes that it names; any other value, or
    /// an object that answers for all others, replaces whatever was said.
    private mutating func pushConsent(_ new: JSONValue) {
        var value = new
        if let old = DataLayer.find("consent", in: members).value,
            let purposes = new.members, !purposes.contains(where: \.key.isEmpty)
        {
            // With the old answer for all other purposes: without it `false` would be forgotten here.
            let said = DataLayer.merged(nil, .object(ConsentStatement.byPurpose(old)))
            value = DataLayer.merged(said, new)
        }
        size += DataLayer.merge(.init("consent", value), into: &members, replaces: true)
    }

    /// The value at a path; nil if there is no value.
    func value(at names: [String]) -> JSONValue? {
        names.reduce(json) { (value: JSONValue?, name) in
            switch value {
            case .object(let members)?: DataLayer.find(name, in: members).value
            case .array(let elements)?:
                Int(name).flatMap { elements.indices.contains($0) ? elements[$0] : nil }
            default: nil
            }
        }
    }

    /// Takes what the members say about consent.
    private mutating func readConsent() {
        let said = members.filter { ConsentStatement.isMember($0.key) }
        consent = said.isEmpty ? nil : ConsentStatement(layer: said)
    }

    /// The layer of members that an earlier process stored.
    init(restoring members: [JSONValue.Member]) {
        let members = ConsentStatement.settled(members)
        self = DataLayer(members: members, lastPush: 0) ?? .ofConsent(in: members, lastPush: 0)
    }

    /// A layer that says only what members say about consent; it refuses everything if that is larger than
    /// `most`.
    private static func ofConsent(
        in members: [JSONValue.Member], lastPush: Int, atMost most: Int = limit
    ) -> DataLayer {
        let said = members.filter { ConsentStatement.isMember($0.key) }
        if let layer = DataLayer(members: said, lastPush: lastPush), layer.size <= most { return layer }
        return DataLayer(members: [ConsentStatement.refusal], lastPush: lastPush) ?? DataLayer()
    }

    /// Whether it says something about consent, and nothing else.
    var saysConsentOnly: Bool {
        consent != nil && members.allSatisfy { ConsentStatement.isMember($0.key) }
    }

    /// Only what it says about consent, in few bytes; if that is not possible, it refuses everything.
    var consentAlone: DataLayer { .ofConsent(in: members, lastPush: lastPush, atMost: 512) }

    /// Removes all but consent; if the text is found there, too, only a refusal of everything can stay.
    mutating func erase(_ isFound: ([UInt8]) -> Bool) {
        let kept = ConsentStatement.kept(of: members, erasing: isFound)
        self = DataLayer(members: kept, lastPush: lastPush) ?? DataLayer()
    }

    /// Refuses every purpose, and says nothing else.
    mutating func refuseAll() {
        self = DataLayer(members: [ConsentStatement.refusal], lastPush: lastPush) ?? DataLayer()
    }

    /// Removes what tags hide; returns whether anything was removed. If an answer about consent is hidden, a
    /// refusal of everything takes the place of refusals.
    mutating func hide(_ hidden: HiddenMembers) -> Bool {
        var clean = json
        for path in hidden.layerPaths {
            clean = path.isAtEnd(path.start) ? .object([]) : DataLayer.without(path, path.start, clean)
        }
        for scrubber in hidden.scrubbers { clean = scrubber.clean(clean) }
        guard clean != json else { return false }
        let left = ConsentStatement.afterRemoval(from: members, leaving: clean.members ?? [])
        // The replacement of a match may be longer than the match; beyond the bound nothing else is kept.
        let layer = DataLayer(members: left, lastPush: lastPush) ?? .ofConsent(in: left, lastPush: lastPush)
        guard layer.members != members else { return false }
        self = layer
        return true
    }

    /// A value without what a path leads to, also in each element of lists.
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

    /// Index of a member, or where it belongs, and its value if it exists.
    private static func find(_ name: String, in members: [JSONValue.Member]) -> (
        index: Int, value: JSONValue?
    ) {
        var low = 0
        var high = members.count
        while low < high {
            let middle = (low + high) / 2
            if members[middle].key.utf8.lexicographicallyPrecedes(name.utf8) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        let isThere = low < members.count && members[low].key.utf8.elementsEqual(name.utf8)
        return (low, isThere ? members[low].value : nil)
    }

    /// Merges a member into members; returns by how many bytes they have grown.
    private static func merge(
        _ member: JSONValue.Member, into members: inout [JSONValue.Member], replaces: Bool = false
    ) -> Int {
        let (index, old) = find(member.key, in: members)
        let value = merged(replaces ? nil : old, member.value)
        members.replaceSubrange(index..<index + (old == nil ? 0 : 1), with: [.init(member.key, value)])
        return weight(value) - (old.map { weight($0) } ?? -member.key.utf8.count - 4)
    }

    /// The result of merging a value into another one.
    private static func merged(_ old: JSONValue?, _ new: JSONValue) -> JSONValue {
        switch (old, new) {
        case (_, .object(let new)):
            // Without an old object the last of equal names counts.
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

    /// Bytes of a value as JSON text, approximately.
    private static func weight(_ value: JSONValue) -> Int {
        switch value {
        case .string(let text): text.utf8.count + 2
        case .object(let members): members.reduce(2) { $0 + $1.key.utf8.count + 4 + weight($1.value) }
        case .array(let elements): elements.reduce(2) { $0 + 1 + weight($1) }
        case .null, .bool, .integer, .double: 8
        }
    }
}

/// The data layers of all apps: bounded in number, and stored with the events that changed them.
struct DataLayers {
    /// Most layers. Names of apps come from users of the spool, so their number must be bounded.
    static let limit = 512
    /// Most layers beside them that say only something about consent. Without them a refusal would be
    /// forgotten with the layer that is given up.
    static let asideLimit = 1024

    /// Layers by app.
    private(set) var layers: [String: DataLayer] = [:]
    /// Apps whose layers are kept for their consent only.
    private var aside: Set<String> = []
    /// Shares of these among the holders of apps.
    private var asideHoldings = Holdings()
    /// Shares of the layers among the holders of apps.
    private var holdings = Holdings()
    /// Number of pushes into all layers so far.
    private var pushes = 0
    /// Apps whose layers have changed since they were last stored.
    private var changed: Set<String> = []
    /// Number of pushes that would have exceeded a bound and changed nothing, and of layers that were given
    /// up.
    private(set) var refused = 0

    /// Removes from an app's layer what is hidden.
    mutating func hide(_ hidden: HiddenMembers, of app: String) {
        if layers[app]?.hide(hidden) == true {
            changed.insert(app)
        }
    }

    /// Pushes members into an app's layer.
    ///
    /// - Parameter hidden: what must not get into the layer.
    mutating func push(_ members: [JSONValue.Member], of app: String, hiding hidden: HiddenMembers? = nil) {
        let members = ConsentStatement.pushed(members)
        guard !mergeMembers(members, of: app, hidden) else { return }
        refused += 1
        // Consent may have been withdrawn: without room for that, nothing is consented to.
        let consent = members.filter { ConsentStatement.isMember($0.key) }
        guard !consent.isEmpty, !mergeMembers(consent, of: app, hidden) else { return }
        var layer = layers[app] ?? DataLayer()
        layer.refuseAll()
        store(layer, of: app)
    }

    /// Stores a layer that says only something about consent; without room it is kept aside, if possible.
    private mutating func store(_ layer: DataLayer, of app: String) {
        var layer = layer
        pushes += 1
        layer.lastPush = pushes
        guard layers[app] != nil || makeRoom(for: app) else {
            _ = keepAside(layer, of: app)
            return
        }
        layers[app] = layer
        changed.insert(app)
    }

    /// Pushes members; returns false if a bound refuses them.
    private mutating func mergeMembers(
        _ members: [JSONValue.Member], of app: String, _ hidden: HiddenMembers?
    )
        -> Bool
    {
        var members = members
        if let hidden, !hidden.isEmpty {
            var pushed = DataLayer()
            // Members that do not fit an empty layer do not fit this one either.
            guard pushed.push(members) else { return false }
            if pushed.hide(hidden) {
                members = pushed.members
            }
        }
        var layer = layers[app] ?? DataLayer()
        // Most events repeat what is known: no copy, and no write with the next commit.
        if layer.holds(members) { return true }
        guard layer.push(members) else { return false }
        pushes += 1
        layer.lastPush = pushes
        guard makeRoom(for: app) else {
            return members.allSatisfy { ConsentStatement.isMember($0.key) } && keepAside(layer, of: app)
        }
        layers[app] = layer
        changed.insert(app)
        return true
    }

    /// Makes room for an app's layer; returns false if it gets no room. If there are too many layers, the
    /// holder with the most gives up one: first those that say nothing about consent, of these the one that
    /// changed longest ago.
    private mutating func makeRoom(for app: String) -> Bool {
        guard layers[app] == nil || aside.contains(app) else { return true }
        let room = holdings.reserve(for: Holdings.holder(of: app), of: DataLayers.limit)
        guard room != .none else { return false }
        if case .givenUp(let giver) = room, let old = oldest(of: giver, isAside: false) {
            if let layer = layers[old], layer.consent == nil || !keepAside(layer, of: old) {
                layers[old] = nil
            }
            changed.insert(old)
            refused += 1
        }
        if aside.remove(app) != nil {
            asideHoldings.release(Holdings.holder(of: app))
        }
        return true
    }

    /// The app whose layer a holder gives up first.
    private func oldest(of holder: String, isAside: Bool) -> String? {
        layers.filter { Holdings.holder(of: $0.key) == holder && aside.contains($0.key) == isAside }
            .min {
                ($0.value.consent == nil ? 0 : 1, $0.value.lastPush)
                    < ($1.value.consent == nil ? 0 : 1, $1.value.lastPush)
            }?.key
    }

    /// Keeps what a layer says about consent beside the layers that have room; returns false if there is no
    /// room for that either.
    private mutating func keepAside(_ layer: DataLayer, of app: String) -> Bool {
        if !aside.contains(app) {
            let room = asideHoldings.reserve(for: Holdings.holder(of: app), of: DataLayers.asideLimit)
            guard room != .none else { return false }
            if case .givenUp(let giver) = room, let old = oldest(of: giver, isAside: true) {
                layers[old] = nil
                aside.remove(old)
                changed.insert(old)
                refused += 1
            }
            aside.insert(app)
        }
        layers[app] = layer.consentAlone
        changed.insert(app)
        return true
    }

    /// Removes layers whose JSON text is found, for the removal of a person's data. What they say about
    /// consent stays.
    mutating func forget(_ isFound: ([UInt8]) -> Bool) {
        for (app, layer) in layers where isFound(Array(layer.json.description.utf8)) {
            changed.insert(app)
            var left = layer
            left.erase(isFound)
            layers[app] = left.members.isEmpty ? nil : left
            guard left.members.isEmpty else { continue }
            if aside.remove(app) == nil {
                holdings.release(Holdings.holder(of: app))
            } else {
                asideHoldings.release(Holdings.holder(of: app))
            }
        }
    }

    /// The layers that have changed since the last call, by name, for `Commit.memory`; nil for a layer that
    /// was discarded.
    mutating func takeMemory() -> [String: [UInt8]?] {
        guard !changed.isEmpty else { return [:] }
        var memory: [String: [UInt8]?] = [:]
        for app in changed {
            memory.updateValue(layers[app].map { Array($0.json.description.utf8) }, forKey: "layer/\(app)")
        }
        changed = []
        return memory
    }

    /// Restores layers that an earlier process stored; what cannot be read is left out.
    mutating func restore(_ memory: [String: [UInt8]]) {
        let stored = memory.compactMap { key, bytes -> (app: String, layer: DataLayer)? in
            guard key.hasPrefix("layer/"), case .object(let members)? = try? JSONValue(parsing: bytes) else {
                return nil
            }
            return (String(key.dropFirst(6)), DataLayer(restoring: members))
        }
        // Those that were kept aside come last: they need no room among the others.
        for isAside in [false, true] {
            for (app, layer) in stored where layer.saysConsentOnly == isAside {
                if makeRoom(for: app) {
                    layers[app] = layer
                } else if layer.consent != nil {
                    _ = keepAside(layer, of: app)
                }
            }
        }
    }
}
