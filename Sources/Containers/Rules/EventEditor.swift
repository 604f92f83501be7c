internal import Events
internal import Model

/// Changes members of an event in its text, and leaves all the rest byte for byte as it was.
///
/// Each change is one copy of the line with other bytes in one place. It works on a line that the events' pass has accepted
/// and leaves one that it would accept.
struct EventEditor: ~Copyable {
    /// The line as it is now, its line feed included.
    private(set) var line = LineBuffer(capacity: 1024)
    private var next = LineBuffer(capacity: 1024)

    /// Begins with a line.
    mutating func begin(_ bytes: UnsafeRawBufferPointer) {
        line.removeAll(keepingCapacity: 1 << 20)
        line.append(bytes)
    }

    // A buffer of lines always has storage.
    var base: UnsafePointer<UInt8> {
        line.bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
    }

    // MARK: Changes

    /// Gives a member a value; objects on the way are made, and what stands in their way goes.
    mutating func set(_ names: [[UInt8]], to value: [UInt8]) {
        var object = 0
        for (level, name) in names.enumerated() {
            let isLast = level == names.count - 1
            removeMembers(name, in: object, keepsLast: true)
            guard let found = RawJSON.find(name, in: base, from: object, to: line.count) else {
                return insert(EventEditor.member(names[level...], value), in: object)
            }
            if isLast { return replace(found.value, with: value) }
            if base[found.value.lowerBound] != UInt8(ascii: "{") {
                return replace(found.value, with: EventEditor.object(names[(level + 1)...], value))
            }
            object = found.value.lowerBound
        }
    }

    /// Changes what a path leads to.
    ///
    /// - Parameter takesName: whether the event's name may be what it leads to.
    mutating func change(_ names: [[UInt8]], _ change: PathFinder.Change, takesName: Bool = true) {
        splice(PathFinder(base, to: line.count, names, change, takesName: takesName).places)
    }

    /// Gives a member another name in its place, wherever the names lead; members that had it go.
    mutating func rename(_ names: [[UInt8]], to name: String) {
        let other = Array(name.utf8)
        guard let last = names.last, last != other else { return }
        for object in objects(below: names.dropLast()).reversed() {
            guard RawJSON.find(last, in: base, from: object, to: line.count) != nil else { continue }
            removeMembers(other, in: object, keepsLast: false)
            removeMembers(last, in: object, keepsLast: true)
            guard let member = RawJSON.find(last, in: base, from: object, to: line.count) else { continue }
            replace(
                member.name.lowerBound - 1..<member.name.upperBound + 1, with: JSONValue.string(name).description.utf8)
        }
    }

    // MARK: Places

    /// Where the objects begin that these names lead to, in their order: of equal names each counts, and so does each
    /// element of a list.
    private func objects(below names: some Collection<[UInt8]>) -> [Int] {
        var found = [0]
        for name in names {
            var next: [Int] = []
            for object in found { addObjects(name, in: object, to: &next) }
            found = next
        }
        return found
    }

    private func addObjects(_ name: [UInt8], in object: Int, to found: inout [Int]) {
        var walk = RawWalk(base, from: object, to: line.count)
        while let member = walk.next() {
            if RawJSON.hasName(member, name, in: base) { addObjects(at: member.value, to: &found) }
        }
    }

    /// The value itself where it is an object, those in it where it is a list.
    private func addObjects(at value: Range<Int>, to found: inout [Int]) {
        guard !value.isEmpty else { return }
        if base[value.lowerBound] == UInt8(ascii: "{") { found.append(value.lowerBound) }
        guard base[value.lowerBound] == UInt8(ascii: "[") else { return }
        // Objects of lists in lists, too: nesting is bounded by the events' pass.
        for element in RawWalk.elements(base, value) { addObjects(at: element, to: &found) }
    }

    // MARK: Splices

    private mutating func replace(_ range: Range<Int>, with bytes: some Collection<UInt8>) {
        splice([(range, Array(bytes))])
    }

    /// Writes other bytes in some places, in one copy: what a list holds may be 100,000 values.
    ///
    /// - Parameter places: in their order; none within another.
    private mutating func splice(_ places: [(range: Range<Int>, bytes: [UInt8])]) {
        guard !places.isEmpty else { return }
        next.removeAll(keepingCapacity: 1 << 20)
        let all = line.bytes
        var position = 0
        for (place, bytes) in places {
            next.append(UnsafeRawBufferPointer(rebasing: all[position..<place.lowerBound]))
            bytes.withUnsafeBytes { next.append($0) }
            position = place.upperBound
        }
        next.append(UnsafeRawBufferPointer(rebasing: all[position...]))
        swap(&line, &next)
    }

    /// Takes the members of a name out of the object that begins at `object`, with their commas.
    private mutating func removeMembers(_ name: [UInt8], in object: Int, keepsLast: Bool) {
        let places = PathFinder(base, to: line.count, [name], .cut, from: object, isEvent: false).places
        splice(keepsLast ? places.dropLast() : places)
    }

    /// Adds a member at the end of the object that begins at `object`.
    private mutating func insert(_ member: [UInt8], in object: Int) {
        var close = RawWalk.valueEnd(base, object, line.count) - 1
        let end = close
        while close > object + 1, base[close - 1] <= 0x20 { close -= 1 }
        let isEmpty = close == object + 1
        replace(close..<end, with: (isEmpty ? [] : [UInt8(ascii: ",")]) + member)
    }

    /// `"a":{"b":value}` for the names a and b.
    private static func member(_ names: ArraySlice<[UInt8]>, _ value: [UInt8]) -> [UInt8] {
        guard let first = names.first else { return value }
        let rest = names.dropFirst()
        return quoted(first) + [UInt8(ascii: ":")] + (rest.isEmpty ? value : object(rest, value))
    }

    private static func object(_ names: ArraySlice<[UInt8]>, _ value: [UInt8]) -> [UInt8] {
        [UInt8(ascii: "{")] + member(names, value) + [UInt8(ascii: "}")]
    }

    private static func quoted(_ name: [UInt8]) -> [UInt8] {
        Array(JSONValue.string(String(decoding: name, as: UTF8.self)).description.utf8)
    }
}
