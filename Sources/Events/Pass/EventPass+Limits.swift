internal import Model

/// The limits of an event: names a day, properties, lengths of names and values (App Center's limits, with a
/// consequence that the settings choose).
///
/// The scan alone shows for most events that they keep all limits: it counts properties and compares lengths
/// in bytes, which are never less than those in UTF-16 code units. Only an event that may pass a limit is
/// walked a second time.
extension EventPass {
    /// Whether the event passes; texts and properties that are too long or too many are cut by then. Returns
    /// false with `problem` and `failure` set.
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

    /// What happens to an event with a new name when the day's names are used up.
    @inline(never)
    private mutating func nameTooMany(_ type: EventType) -> Bool {
        // A session's start is the agent's own name: it must not be lost because the app has used up its
        // names.
        if type == .startSession { return true }
        var limit = limits.eventNames
        // A name that is one too many cannot be cut to fit.
        if limit.consequence == .cut {
            limit.consequence = .refuse
        }
        return passes(.eventNames, limit)
    }

    /// Counts that an event passes a limit, and says whether it passes. If the consequence is `cut`, nothing
    /// is counted: the caller cuts, and counts each cut by `noteCut`.
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

    /// A property that is kept.
    private struct Property {
        /// Text of its name, as far as the limit leaves it.
        var key: Range<Int>
        /// Its value, quotes included.
        var value: Range<Int>
        /// Number of bytes of a string value that are kept; nil for all of it.
        var keptValue: Int?
    }

    /// Walks over the properties and applies their limits exactly: merges equal names, leaves out what is too
    /// many, cuts what is too long, removes the address. If anything has changed, the whole object is written
    /// again.
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
                // A name that is left out counts once, however often it is repeated. Beyond 1,024 names the
                // count is too low, and memory is bounded.
                if outside.count < 1024, outside.insert(name).inserted {
                    noteCut(.properties, shortKey)
                }
                continue
            }
            places[name] = kept.count
            kept.append(Property(key: shortKey, value: property.value))
        }
        // Only `allow` keeps more than the limit: this counts it.
        if most > 0, kept.count > most {
            _ = passes(.properties, limits.properties)
        }
        for index in kept.indices where base[kept[index].value.lowerBound] == .quote {
            let value = kept[index].value
            guard
                let length = cutLength(
                    value.lowerBound + 1..<value.upperBound - 1, limits.propertyValueLength)
            else {
                continue
            }
            guard allows(.propertyValueLength, limits.propertyValueLength, &isCounted) else { return false }
            guard limits.propertyValueLength.consequence == .cut else { continue }
            noteCut(.propertyValueLength, kept[index].key)
            kept[index].keptValue = length
            hasChanged = true
        }
        if hasChanged {
            replace(member.value..<member.end, with: rendered(kept))
        }
        return true
    }

    /// Bytes of property names that may go to the log.
    private static let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-".utf8)

    /// Counts a cut, and notes what was cut once a block, for the log.
    ///
    /// - Parameter key: the property's name; unused if the event's name was cut.
    mutating func noteCut(_ kind: LimitKind, _ key: Range<Int>) {
        counts[.cut, kind] += 1
        guard cutNotedAt != now, let state else { return }
        cutNotedAt = now
        // A property's name may be content: an app may use the names of its users as keys. So a name goes to
        // the log only if it looks like an identifier, and no tag hides texts.
        let isPlain = withheld == .none && text(key).allSatisfy { EventPass.plain.contains($0) }
        let name = isPlain ? String(decoding: text(key).prefix(64), as: UTF8.self) : "(a property)"
        counts.lastCut = LimitCut(
            app: state.name, member: kind == .nameLength ? "name" : "properties.\(name)", limit: kind)
    }

    /// Bytes of the line at these offsets.
    private mutating func text(_ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    /// Number of bytes that a limit leaves of a text; nil for all of them.
    private mutating func cutLength(_ range: Range<Int>, _ limit: Limit) -> Int? {
        limit.value > 0 ? JSONText.cut(text(range), toUnits: limit.value) : nil
    }

    /// As `passes`, but `allow` is counted once for each event, not for each property.
    private mutating func allows(_ kind: LimitKind, _ limit: Limit, _ isCounted: inout Set<LimitKind>) -> Bool
    {
        if limit.consequence == .allow, !isCounted.insert(kind).inserted { return true }
        return passes(kind, limit)
    }

    /// The properties as an object.
    private mutating func rendered(_ properties: [Property]) -> [UInt8] {
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
