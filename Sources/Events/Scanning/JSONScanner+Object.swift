internal import CScan
internal import Glibc

// The object itself: its members, and those of its properties.
extension JSONScanner {
    /// Reads the object; returns where it ends, nil (and the failure is noted) where it is none.
    ///
    /// Here and below `p` never has its address taken by a function that is not inlined: so it lives in a register, and each
    /// step costs the processor a few cycles less than a store and a load.
    @inline(__always)
    mutating func object(_ start: Pointer) -> Pointer? {
        var p = start
        var c = space(&p)
        guard c == .openBrace else { return notAnObject(p) }
        open = p - base
        p += 1
        c = space(&p)
        if c == .closeBrace {
            close = p - base
            return p + 1
        }
        var present: UInt64 = 0
        var place = places.members
        let lastPlace = place + (NamePlaces.members - 1)
        while true {
            guard c == .quote else { return failure(.expectedName, p) }
            let key = p
            let slot: Int
            if key < runEnd, cscan_is(key + 1, &place.pointee.name) {
                slot = place.pointee.slot
                p += Int(place.pointee.name.length) &+ 2
            } else {
                guard let end = name(key, place) else { return nil }
                slot = found
                p = end
            }
            if place < lastPlace { place += 1 }
            guard colon(&p) else { return nil }
            c = space(&p)
            let value = p
            var isEscaped = false
            if c == .quote {
                p += 1
                guard string(&p, &isEscaped) else { return nil }
            } else if c == .openBrace, slot == MemberName.properties.rawValue {
                guard let end = properties(p, places.row(of: nameStart(present))) else { return nil }
                p = end
            } else {
                guard let end = other(p, c, depth: 2) else { return nil }
                p = end
            }
            if slot >= 0 {
                let bit = UInt64(1) &<< UInt64(truncatingIfNeeded: slot)
                if present & bit != 0 { replace(slot) }
                present |= bit
                members[slot] = Member(key: key - base, value: value - base, end: p - base, isEscaped: isEscaped)
            }
            c = space(&p)
            p += 1
            if c == .comma {
                c = space(&p)
            } else if c == .closeBrace {
                close = (p - base) &- 1
                self.present = present
                return p
            } else {
                return failure(.expectedCommaOrEnd, p - 1)
            }
        }
    }

    /// Reads the name of a member that is not the one kept for its place, and keeps it; says in `found` which it is.
    @inline(never)
    private mutating func name(_ key: Pointer, _ place: UnsafeMutablePointer<NamePlaces.Member>) -> Pointer? {
        var p = key + 1
        var isEscaped = false
        guard string(&p, &isEscaped) else { return nil }
        let length = (p - key) &- 2
        found = recognise(key + 1, length, isEscaped)
        if !isEscaped, key < runEnd {
            cscan_keep(&place.pointee.name, key + 1, UInt32(clamping: length))
            place.pointee.slot = found
        }
        return p
    }

    /// How the event's name begins, if it has been read.
    @inline(__always)
    private mutating func nameStart(_ present: UInt64) -> UInt64 {
        let value = base + members[MemberName.name.rawValue].value
        guard present & MemberName.name.bit != 0, value <= wordEnd else { return 0 }
        return KnownNames.word(value)
    }

    @inline(never)
    private mutating func replace(_ slot: Int) {
        // Of a member that is only looked at the last one counts, and all of them stay.
        guard slot < MemberName.hostName.rawValue || slot == MemberName.address.rawValue else { return }
        replaced.append(members[slot])
    }

    /// Reads the properties, whose opening bracket is at `start`; returns where they end, nil where something is wrong.
    @inline(never)
    private mutating func properties(_ start: Pointer, _ row: UnsafeMutablePointer<NamePlaces.Property>) -> Pointer? {
        var p = start + 1
        var c = space(&p)
        if c == .closeBrace { return p + 1 }
        var count = 0
        var seen: UInt64 = 0
        while true {
            guard c == .quote else { return failure(.expectedName, p) }
            let key = p + 1
            let place = row + min(count, JSONScanner.comparedProperties - 1)
            if key <= runEnd, count < JSONScanner.comparedProperties, cscan_is(key, &place.pointee.name) {
                let length = Int(place.pointee.name.length)
                p = key + length + 1
                if length > keyThreshold { hasLongText = true }
            } else {
                guard let end = propertyName(key, place, isCompared: count < JSONScanner.comparedProperties) else {
                    return nil
                }
                p = end
            }
            // Names with equal bits need not be equal. A place beyond the last one that is compared does no harm: then they
            // may repeat anyway.
            let bit = place.pointee.bit
            if seen & bit != 0, !mayRepeat, isKnown(row, count) { mayRepeat = true }
            seen |= bit
            count &+= 1
            guard colon(&p) else { return nil }
            c = space(&p)
            if c == .quote {
                let value = p
                var isEscaped = false
                p += 1
                guard string(&p, &isEscaped) else { return nil }
                if (p - value) &- 2 > valueThreshold { hasLongText = true }
            } else {
                guard let end = other(p, c, depth: 3) else { return nil }
                p = end
            }
            c = space(&p)
            p += 1
            if c == .comma {
                c = space(&p)
            } else if c == .closeBrace {
                propertyCount = count
                return p
            } else {
                return failure(.expectedCommaOrEnd, p - 1)
            }
        }
    }

    /// Steps over a colon and the white space before it.
    @inline(__always)
    private mutating func colon(_ p: inout Pointer) -> Bool {
        guard space(&p) == .colon else { return fail(.expectedColon, p) }
        p += 1
        return true
    }

    /// Reads the name of a property that is not the one kept for its place, and keeps it.
    @inline(never)
    private mutating func propertyName(
        _ key: Pointer, _ place: UnsafeMutablePointer<NamePlaces.Property>, isCompared: Bool
    ) -> Pointer? {
        var p = key
        var isEscaped = false
        guard string(&p, &isEscaped) else { return nil }
        let length = (p - key) &- 1
        if length > keyThreshold { hasLongText = true }
        if isEscaped || !isCompared {
            mayRepeat = true
            return p
        }
        let word = word(key, length)
        let mixed = (word ^ UInt64(truncatingIfNeeded: length)) &* 0x9E37_79B9_7F4A_7C15
        place.pointee.word = word
        place.pointee.bit = UInt64(1) &<< (mixed &>> 58)
        place.pointee.start = key - base
        if key <= runEnd {
            cscan_keep(&place.pointee.name, key, UInt32(clamping: length))
        } else {
            place.pointee.name = .nothing
            place.pointee.name.length = UInt32(clamping: length)
        }
        return p
    }

    /// Whether one of the properties before has the name of that at `count`. All of them are in the row: those that were
    /// found again, and those that were read and kept.
    @inline(never)
    private mutating func isKnown(_ row: UnsafeMutablePointer<NamePlaces.Property>, _ count: Int) -> Bool {
        let name = row + count
        let length = Int(name.pointee.name.length)
        for other in row..<name where other.pointee.word == name.pointee.word {
            guard other.pointee.name.length == name.pointee.name.length else { continue }
            if length <= 8 || memcmp(text(of: other), text(of: name), length) == 0 { return true }
        }
        return false
    }

    /// The text of a property's name: the one kept, or, where it was too long or stood too near the end, that of this line.
    private mutating func text(of place: UnsafeMutablePointer<NamePlaces.Property>) -> UnsafeRawPointer {
        place.pointee.name.mask == CSCAN_NOTHING
            ? UnsafeRawPointer(base + place.pointee.start) : UnsafeRawPointer(place)
    }
}
