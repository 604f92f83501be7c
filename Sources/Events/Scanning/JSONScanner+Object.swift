internal import CScan
internal import Glibc
internal import TextFormats

// The object itself: its members, and those of its properties.
extension JSONScanner {
    /// Reads the object; returns the address after it, or nil, with the failure noted, if it cannot be read.
    ///
    /// Here and below the address of `p` is never passed to a function that is not inlined. So `p` stays in a
    /// register, and each step saves the processor a store and a load.
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
            // The usual case: the name that this place had in earlier lines.
            if key < runEnd, cscan_is(key + 1, &place.pointee.name) {
                slot = place.pointee.slot
                p += Int(place.pointee.name.length) &+ 2
            } else {
                guard let end = name(key, place, lastPlace) else { return nil }
                slot = found.slot
                place += found.passedPlaces
                p = end
            }
            if place < lastPlace {
                place += 1
            }
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
            note(
                Member(key: key - base, value: value - base, end: p - base, isEscaped: isEscaped), slot,
                &present)
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

    /// Takes an object followed by a line feed as read, without scanning it: `RecordWriter` has made it, and
    /// knows its members. Their values are texts without escapes.
    ///
    /// - Parameter padding: number of bytes behind the line feed that may be loaded, too.
    mutating func accept(
        _ base: Pointer, _ count: Int, _ padding: Int, _ written: UnsafeBufferPointer<WrittenMember>
    ) {
        begin(base, count + padding, breaksAreSpace: false)
        open = 0
        close = count - 2
        var present: UInt64 = 0
        var place = places.members
        let lastPlace = place + (NamePlaces.members - 1)
        for member in written {
            let key = base + member.key
            let slot: Int
            if cscan_is(key + 1, &place.pointee.name) {
                slot = place.pointee.slot
            } else {
                _ = name(key, place, lastPlace)
                slot = found.slot
                place += found.passedPlaces
            }
            if place < lastPlace {
                place += 1
            }
            note(Member(key: member.key, value: member.value, end: member.end), slot, &present)
        }
        self.present = present
        assert(base[open] == .openBrace && base[close] == .closeBrace)
    }

    /// Notes a member that is looked for; the slot is -1 for any other.
    @inline(__always)
    private mutating func note(_ member: Member, _ slot: Int, _ present: inout UInt64) {
        // One unsigned comparison for both bounds: a member that is not looked for has the slot -1.
        if UInt(bitPattern: slot) < UInt(bitPattern: JSONScanner.firstLate) {
            let bit = UInt64(1) &<< UInt64(truncatingIfNeeded: slot)
            if present & bit != 0 {
                replace(slot)
            }
            present |= bit
            members[slot] = member
        } else if slot >= 0 {
            noteLate(slot, member, &present)
        }
    }

    /// Notes a member whose slot shares its bit with others; the last one of a name counts.
    @inline(never)
    private mutating func noteLate(_ slot: Int, _ member: Member, _ present: inout UInt64) {
        let bit = JSONScanner.bit(of: slot)
        if present & bit == 0 {
            late.removeAll(keepingCapacity: true)
        }
        late.append(slot)
        present |= bit
        members[slot] = member
    }

    /// Reads the name of a member that does not have the name kept for its place, and keeps it for the place.
    /// Sets `found`; returns the address after the closing quote.
    ///
    /// If a line lacks a member that others have, its next name is found at the next place, and the names
    /// behind it do not move.
    @inline(never)
    private mutating func name(
        _ key: Pointer, _ place: UnsafeMutablePointer<NamePlaces.Member>,
        _ lastPlace: UnsafeMutablePointer<NamePlaces.Member>
    ) -> Pointer? {
        if key < runEnd, place < lastPlace, cscan_is(key + 1, &place[1].name) {
            found = (place[1].slot, 1)
            return key + Int(place[1].name.length) + 2
        }
        var p = key + 1
        var isEscaped = false
        guard string(&p, &isEscaped) else { return nil }
        let length = (p - key) &- 2
        found = (recognise(key + 1, length, isEscaped), 0)
        if !isEscaped, key < runEnd {
            cscan_keep(&place.pointee.name, key + 1, UInt32(clamping: length))
            place.pointee.slot = found.slot
        }
        return p
    }

    /// First eight bytes of the event's name; 0 if it has not been read yet. It only chooses a row of kept
    /// names.
    @inline(__always)
    private mutating func nameStart(_ present: UInt64) -> UInt64 {
        let value = base + members[MemberName.name.rawValue].value
        guard present & MemberName.name.bit != 0, value <= wordEnd else { return 0 }
        return KnownNames.word(value)
    }

    /// Notes that a later member replaces the one in a slot.
    @inline(never)
    private mutating func replace(_ slot: Int) {
        // Members that are only looked at, such as the time of a record, all stay; the last one counts.
        guard slot < MemberName.hostName.rawValue || slot == MemberName.address.rawValue else { return }
        replaced.append(members[slot])
    }

    /// Reads the properties, whose opening brace is at `start`; returns the address after them, or nil if
    /// they cannot be read. Counts them, and notes long texts and names that may repeat.
    @inline(never)
    private mutating func properties(_ start: Pointer, _ row: UnsafeMutablePointer<NamePlaces.Property>)
        -> Pointer?
    {
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
                if length > keyThreshold {
                    hasLongText = true
                }
            } else {
                guard let end = propertyName(key, place, isCompared: count < JSONScanner.comparedProperties)
                else {
                    return nil
                }
                p = end
            }
            // Names with equal bits need not be equal, so `isKnown` compares them. Beyond the last place that
            // is compared the bit is of another name, which is harmless: `mayRepeat` is set by then.
            let bit = place.pointee.bit
            if seen & bit != 0, !mayRepeat, isKnown(row, count) {
                mayRepeat = true
            }
            seen |= bit
            count &+= 1
            guard colon(&p) else { return nil }
            c = space(&p)
            if c == .quote {
                let value = p
                var isEscaped = false
                p += 1
                guard string(&p, &isEscaped) else { return nil }
                if (p - value) &- 2 > valueThreshold {
                    hasLongText = true
                }
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

    /// Steps over the colon after a name, and white space before it.
    @inline(__always)
    private mutating func colon(_ p: inout Pointer) -> Bool {
        guard space(&p) == .colon else { return fail(.expectedColon, p) }
        p += 1
        return true
    }

    /// Reads the name of a property that does not have the name kept for its place, and keeps it for the
    /// place. Returns the address after the closing quote.
    @inline(never)
    private mutating func propertyName(
        _ key: Pointer, _ place: UnsafeMutablePointer<NamePlaces.Property>, isCompared: Bool
    ) -> Pointer? {
        var p = key
        var isEscaped = false
        guard string(&p, &isEscaped) else { return nil }
        let length = (p - key) &- 1
        if length > keyThreshold {
            hasLongText = true
        }
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

    /// Whether an earlier property has the name of the property number `count`. The row has the names of all
    /// of them: those that were found again and those that were read and kept.
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

    /// The bytes of a property's name: the stored copy; or the bytes of this line, if the name is too long
    /// for a copy or too near the end of the block.
    private mutating func text(of place: UnsafeMutablePointer<NamePlaces.Property>) -> UnsafeRawPointer {
        place.pointee.name.mask == CSCAN_NOTHING
            ? UnsafeRawPointer(base + place.pointee.start) : UnsafeRawPointer(place)
    }
}
