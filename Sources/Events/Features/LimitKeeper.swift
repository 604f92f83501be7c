internal import EventLoops
internal import Model

/// A limit that an event passes and that does not let it through.
struct Excess {
    let kind: LimitKind
    let limit: Limit

    /// Whether the event is refused; otherwise it goes to the quarantine.
    var isRefused: Bool { limit.consequence == .refuse }

    /// The limit and its value, for a person.
    var problem: Problem {
        let unit = kind == .eventNames || kind == .properties ? "" : " UTF-16 code units"
        return Problem(
            reason: isRefused ? .refused : .limit, limit: kind,
            detail: "beyond limits.\(kind.rawValue) = \(limit.value)\(unit)")
    }
}

/// The limits of an event: names a day, properties, lengths of names and values (App Center's limits, with a
/// consequence that the settings choose).
///
/// The scan alone shows for most events that they keep all limits: it counts properties and compares lengths
/// in bytes, which are never less than those in UTF-16 code units. Only an event that may pass a limit is
/// walked a second time.
struct LimitKeeper: EventFeature {
    /// Limits of the app; those that cut texts allow them while patterns of tags search texts.
    private var limits = EventLimits()
    /// Event names that the app has used today; owned by the app's state.
    private var names: UnsafeMutablePointer<DistinctNames>?
    /// The app, for the log.
    private var app = ""
    /// Time of the block whose first cut was noted in `EventCounts.lastCut`; later cuts of the block are only
    /// counted.
    private var cutNotedAt: Timestamp?
    /// Time of observation of the block.
    private var now = Timestamp(nanoseconds: 0)

    /// Whether names of properties may go to the log: not while tags hide texts.
    private var mayLog = true

    /// Takes over the limits of an app, and sets the lengths from which on the scanner reports a long text.
    mutating func begin(_ start: SourceStart, _ scanner: inout JSONScanner, _ added: inout SourceAdditions) {
        let state = start.state
        limits = start.isSearched ? state.settings.limits.withWholeTexts : state.settings.limits
        names = state.names
        app = state.name
        now = start.now
        mayLog = !start.hidesTexts
        scanner.keyThreshold = limits.propertyKeyLength.value > 0 ? limits.propertyKeyLength.value : .max
        scanner.valueThreshold =
            limits.propertyValueLength.value > 0 ? limits.propertyValueLength.value : .max
    }

    /// Applies the limits of an event's properties, then that of the day's names: an event that is refused
    /// for its properties uses up no name.
    @inline(__always)
    mutating func check(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Excess? {
        guard !line.isRecord else { return nil }
        if mayChange(scanner) || output.draft.losesAddressProperty,
            let excess = fitProperties(&scanner, &output.draft, &counts)
        {
            return excess
        }
        return admit(line.name, line.type, &counts)
    }

    /// Whether the properties may pass a limit, or two of them may have the same name.
    @inline(__always)
    private func mayChange(_ scanner: borrowing JSONScanner) -> Bool {
        let most = limits.properties.value
        return (most > 0 && scanner.propertyCount > most) || scanner.hasLongText || scanner.mayRepeat
    }

    // MARK: Names

    /// Most names need no closer look: in bytes they are within the limit, which counts UTF-16 code units.
    @inline(__always)
    mutating func fit(
        name: UnsafeBufferPointer<UInt8>, of member: Member, _ draft: inout LineDraft,
        _ counts: inout EventCounts
    ) -> FittedName {
        if limits.nameLength.value == 0 || name.count <= limits.nameLength.value { return .kept(name.count) }
        return fitLong(name, member, &draft, &counts)
    }

    @inline(never)
    private mutating func fitLong(
        _ name: UnsafeBufferPointer<UInt8>, _ member: Member, _ draft: inout LineDraft,
        _ counts: inout EventCounts
    ) -> FittedName {
        let limit = limits.nameLength
        guard let length = JSONText.cut(name, toUnits: limit.value) else { return .kept(name.count) }
        if let excess = LimitKeeper.pass(.nameLength, limit, &counts) { return .beyond(excess) }
        guard limit.consequence == .cut else { return .kept(name.count) }
        noteCut(.nameLength, nil, &counts)
        draft.cut(member.value + 1 + length..<member.end - 1)
        return .kept(length)
    }

    /// Admits an event's name to those of the day; returns the limit if they are used up.
    @inline(__always)
    private mutating func admit(
        _ name: UnsafeBufferPointer<UInt8>, _ type: EventType, _ counts: inout EventCounts
    ) -> Excess? {
        guard limits.eventNames.value > 0, let names else { return nil }
        return names.pointee.admit(name, limit: limits.eventNames.value) ? nil : tooMany(type, &counts)
    }

    /// What happens to an event with a new name when the day's names are used up. Mutating, although nothing
    /// changes: otherwise the caller copies all limits for each event, in case this is called.
    @inline(never)
    private mutating func tooMany(_ type: EventType, _ counts: inout EventCounts) -> Excess? {
        // A session's start is the agent's own name: it must not be lost because the app has used up its
        // names.
        if type == .startSession { return nil }
        var limit = limits.eventNames
        // A name that is one too many cannot be cut to fit.
        if limit.consequence == .cut {
            limit.consequence = .refuse
        }
        return LimitKeeper.pass(.eventNames, limit, &counts)
    }

    // MARK: Consequences

    /// Counts that an event is beyond a limit; nil if the event passes nevertheless. If the consequence is
    /// `cut`, nothing is counted: the caller cuts, and counts each cut by `noteCut`.
    private static func pass(_ kind: LimitKind, _ limit: Limit, _ counts: inout EventCounts) -> Excess? {
        if limit.consequence == .cut { return nil }
        counts[limit.consequence, kind] += 1
        return limit.consequence == .allow ? nil : Excess(kind: kind, limit: limit)
    }

    /// Bytes of property names that may go to the log.
    private static let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-".utf8)

    /// Counts a cut, and notes what was cut once a block, for the log.
    ///
    /// - Parameter property: the property's name; nil if the event's name was cut.
    private mutating func noteCut(
        _ kind: LimitKind, _ property: UnsafeBufferPointer<UInt8>?, _ counts: inout EventCounts
    ) {
        counts[.cut, kind] += 1
        guard cutNotedAt != now else { return }
        cutNotedAt = now
        var member = "name"
        if let property {
            // A property's name may be content: an app may use the names of its users as keys. So a name goes
            // to the log only if it looks like an identifier.
            let isPlain = mayLog && property.allSatisfy { LimitKeeper.plain.contains($0) }
            member =
                "properties."
                + (isPlain ? String(decoding: property.prefix(64), as: UTF8.self) : "(a property)")
        }
        counts.lastCut = LimitCut(app: app, member: member, limit: kind)
    }

    // MARK: Properties

    /// What the limits make of an event's properties.
    private enum Fitted {
        case unchanged
        /// The object with the properties, to be written instead.
        case changed([UInt8])
        case beyond(Excess)
    }

    /// A property that is kept.
    private struct Property {
        /// Text of its name, as far as the limit leaves it.
        var key: Range<Int>
        /// The property's value, quotes included.
        var value: Range<Int>
        /// Number of bytes of a string value that are kept; nil for all of it.
        var keptValue: Int?
    }

    /// Applies the limits of properties, and takes the address out of them.
    @inline(never)
    private mutating func fitProperties(
        _ scanner: inout JSONScanner, _ draft: inout LineDraft, _ counts: inout EventCounts
    ) -> Excess? {
        switch fit(&scanner, removesAddress: draft.losesAddressProperty, &counts) {
        case .unchanged: return nil
        case .changed(let object):
            let member = scanner.member(.properties)
            draft.replace(member.value..<member.end, with: object)
            return nil
        case .beyond(let excess): return excess
        }
    }

    /// Walks over the properties and applies their limits exactly: merges equal names, leaves out what is too
    /// many, cuts what is too long, removes the address.
    private mutating func fit(
        _ scanner: inout JSONScanner, removesAddress: Bool, _ counts: inout EventCounts
    ) -> Fitted {
        let member = scanner.member(.properties)
        let base = scanner.base
        guard base[member.value] == .openBrace else { return .unchanged }
        func text(_ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
            UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
        }
        var kept: [Property] = []
        var indices: [[UInt8]: Int] = [:]
        var outside: Set<[UInt8]> = []
        var hasChanged = false
        var isCounted: Set<LimitKind> = []
        let most = limits.properties.value

        var walk = RawWalk(base, from: member.value, to: member.end)
        while let property = walk.next() {
            let key = property.name
            if removesAddress, CountryFinder.isAddress(key, scanner) {
                hasChanged = true
                continue
            }
            var shortKey = key
            if let length = LimitKeeper.cutLength(text(key), limits.propertyKeyLength) {
                if let excess = pass(.propertyKeyLength, limits.propertyKeyLength, &isCounted, &counts) {
                    return .beyond(excess)
                }
                if limits.propertyKeyLength.consequence == .cut {
                    noteCut(.propertyKeyLength, text(key), &counts)
                    shortKey = key.lowerBound..<key.lowerBound + length
                    hasChanged = true
                }
            }
            let name = JSONString.decoded(text(shortKey))
            if let index = indices[name] {
                counts[.mergedProperty] += 1
                kept[index].value = property.value
                hasChanged = true
                continue
            }
            if most > 0, kept.count >= most, limits.properties.consequence != .allow {
                if let excess = pass(.properties, limits.properties, &isCounted, &counts) {
                    return .beyond(excess)
                }
                hasChanged = true
                // A name that is left out counts once, however often it is repeated. Beyond 1,024 names the
                // count is too low, and memory is bounded.
                if outside.count < 1024, outside.insert(name).inserted {
                    noteCut(.properties, text(shortKey), &counts)
                }
                continue
            }
            indices[name] = kept.count
            kept.append(Property(key: shortKey, value: property.value))
        }
        // Only `allow` keeps more than the limit: this counts it.
        if most > 0, kept.count > most {
            _ = LimitKeeper.pass(.properties, limits.properties, &counts)
        }
        for index in kept.indices where base[kept[index].value.lowerBound] == .quote {
            let value = kept[index].value
            let inner = text(value.lowerBound + 1..<value.upperBound - 1)
            guard let length = LimitKeeper.cutLength(inner, limits.propertyValueLength) else { continue }
            if let excess = pass(.propertyValueLength, limits.propertyValueLength, &isCounted, &counts) {
                return .beyond(excess)
            }
            guard limits.propertyValueLength.consequence == .cut else { continue }
            noteCut(.propertyValueLength, text(kept[index].key), &counts)
            kept[index].keptValue = length
            hasChanged = true
        }
        return hasChanged ? .changed(LimitKeeper.rendered(kept, base)) : .unchanged
    }

    /// Number of bytes that a limit leaves of a text; nil for all of them.
    private static func cutLength(_ text: UnsafeBufferPointer<UInt8>, _ limit: Limit) -> Int? {
        limit.value > 0 ? JSONText.cut(text, toUnits: limit.value) : nil
    }

    /// As the static `pass`, but `allow` is counted once for each event, not for each property.
    private func pass(
        _ kind: LimitKind, _ limit: Limit, _ isCounted: inout Set<LimitKind>, _ counts: inout EventCounts
    ) -> Excess? {
        if limit.consequence == .allow, !isCounted.insert(kind).inserted { return nil }
        return LimitKeeper.pass(kind, limit, &counts)
    }

    /// The properties as an object.
    private static func rendered(_ properties: [Property], _ base: UnsafePointer<UInt8>) -> [UInt8] {
        func text(_ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
            UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
        }
        var result: [UInt8] = [.openBrace]
        for property in properties {
            if result.count > 1 {
                result.append(.comma)
            }
            result.append(.quote)
            result += text(property.key)
            result += [.quote, .colon]
            if let length = property.keptValue {
                result += text(property.value.lowerBound..<property.value.lowerBound + 1 + length)
                result.append(.quote)
            } else {
                result += text(property.value)
            }
        }
        result.append(.closeBrace)
        return result
    }
}
