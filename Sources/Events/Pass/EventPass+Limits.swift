internal import Model

/// The limits of ac19. The usual event is known to keep them after the scan; what may pass one comes here.
extension EventPass {
    /// Whether the event may go on: limits that cut have cut.
    @inline(__always)
    mutating func keepsLimits(_ name: UnsafeBufferPointer<UInt8>, _ type: EventType) -> Bool {
        let most = limits.properties.value
        if (most > 0 && scanner.propertyCount > most) || scanner.hasLongText || scanner.mayRepeat
            || (options.removesAddress && hasAddressProperty)
        {
            guard exactProperties() else { return false }
        }
        guard limits.eventNames.value > 0, let names else { return true }
        return names.pointee.admit(name, limit: limits.eventNames.value) || nameTooMany(type)
    }

    @inline(never)
    private mutating func nameTooMany(_ type: EventType) -> Bool {
        // A session's start is our own word: it must not be lost to the names that an app makes up.
        if type == .startSession { return true }
        var limit = limits.eventNames
        if limit.consequence == .cut { limit.consequence = .refuse }
        return passes(.eventNames, limit)
    }

    /// What happens to an event beyond a limit: true if it goes on (cut by the caller, or as it is).
    mutating func passes(_ kind: LimitKind, _ limit: Limit) -> Bool {
        if limit.consequence == .cut { return true }
        counts[limit.consequence, kind] += 1
        if limit.consequence == .allow { return true }
        failure = limit.consequence == .refuse ? .refused : .quarantined
        let unit = kind == .eventNames || kind == .properties ? "" : " UTF-16 code units"
        problem = Problem(
            reason: failure == .refused ? .refused : .limit, limit: kind,
            detail: "beyond limits.\(kind.rawValue) = \(limit.value)\(unit)")
        return false
    }

    private struct Property {
        /// The text of its name, as far as it is kept.
        var key: Range<Int>
        var value: Range<Int>
        /// How many bytes of the text of a value are kept; nil for all of it.
        var keptValue: Int?
    }

    /// Looks at each property: equal names become one, what is too long or too many is cut; writes the object again if
    /// anything of it has changed.
    @inline(never)
    private mutating func exactProperties() -> Bool {
        let member = scanner.member(.properties)
        guard base[member.value] == .openBrace else { return true }
        var kept: [Property] = []
        var places: [[UInt8]: Int] = [:]
        var outside: Set<[UInt8]> = []
        var hasChanged = false
        var isCounted: Set<LimitKind> = []
        let most = limits.properties.value

        var walk = RawWalk(base, from: member.value, to: member.end)
        while let property = walk.next() {
            let key = property.name
            if options.removesAddress, isAddress(key) {
                hasChanged = true
                continue
            }
            var shortKey = key
            if let length = cutLength(key, limits.propertyKeyLength) {
                guard allows(.propertyKeyLength, limits.propertyKeyLength, &isCounted) else { return false }
                if limits.propertyKeyLength.consequence == .cut {
                    noteCut(.propertyKeyLength, key)
                    shortKey = key.lowerBound..<key.lowerBound + length
                    hasChanged = true
                }
            }
            let name = JSONString.decoded(text(shortKey))
            if let place = places[name] {
                counts[.mergedProperty] += 1
                kept[place].value = property.value
                hasChanged = true
                continue
            }
            if most > 0, kept.count >= most, limits.properties.consequence != .allow {
                guard allows(.properties, limits.properties, &isCounted) else { return false }
                hasChanged = true
                // Which names were left out is remembered only as far as the figure needs it.
                if outside.count < 1024, outside.insert(name).inserted {
                    noteCut(.properties, shortKey)
                }
                continue
            }
            places[name] = kept.count
            kept.append(Property(key: shortKey, value: property.value))
        }
        if most > 0, kept.count > most { _ = passes(.properties, limits.properties) }
        for index in kept.indices where base[kept[index].value.lowerBound] == .quote {
            let value = kept[index].value
            guard let length = cutLength(value.lowerBound + 1..<value.upperBound - 1, limits.propertyValueLength) else {
                continue
            }
            guard allows(.propertyValueLength, limits.propertyValueLength, &isCounted) else { return false }
            guard limits.propertyValueLength.consequence == .cut else { continue }
            noteCut(.propertyValueLength, kept[index].key)
            kept[index].keptValue = length
            hasChanged = true
        }
        if hasChanged { replace(member.value..<member.end, with: rendered(kept)) }
        return true
    }

    private static let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-".utf8)

    /// Counts a cut; what was cut is noted once a block.
    ///
    /// - Parameter key: the property's name; of no account for the event's.
    mutating func noteCut(_ kind: LimitKind, _ key: Range<Int>) {
        counts[.cut, kind] += 1
        guard cutNotedAt != now, let state else { return }
        cutNotedAt = now
        // A property's name may be content: that of a user in a map of users.
        let isPlain = withheld == .none && text(key).allSatisfy { EventPass.plain.contains($0) }
        let name = isPlain ? String(decoding: text(key).prefix(64), as: UTF8.self) : "(a property)"
        counts.lastCut = LimitCut(
            app: state.name, member: kind == .nameLength ? "name" : "properties.\(name)", limit: kind)
    }

    private mutating func text(_ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    /// How many bytes of a text a limit leaves; nil for all of them.
    private mutating func cutLength(_ range: Range<Int>, _ limit: Limit) -> Int? {
        limit.value > 0 ? JSONText.cut(text(range), toUnits: limit.value) : nil
    }

    /// As `passes`, but `allow` is counted once an event.
    private mutating func allows(_ kind: LimitKind, _ limit: Limit, _ isCounted: inout Set<LimitKind>) -> Bool {
        if limit.consequence == .allow, !isCounted.insert(kind).inserted { return true }
        return passes(kind, limit)
    }

    private mutating func rendered(_ properties: [Property]) -> [UInt8] {
        var result: [UInt8] = [.openBrace]
        for property in properties {
            if result.count > 1 { result.append(.comma) }
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
