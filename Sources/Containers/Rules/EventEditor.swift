internal import Events

/// Changes members of an event in its text, and leaves all the rest byte for byte as it was.
///
/// Each change is one walk over the line and one copy of it, however many places it concerns; values that are set one after
/// the other are one change. How long the line becomes is known before it is copied. It works on a line that the events'
/// pass has accepted and leaves one that it would accept.
struct EventEditor: ~Copyable {
    /// The line as it is without the values that are waiting, its line feed included.
    private var current = LineBuffer(capacity: 1024)
    private var next = LineBuffer(capacity: 1024)
    private var wanted = WantedValues()
    private var most = Int.max
    /// Whether the line would have become longer than it may: it is as it was then.
    private(set) var isOver = false
    /// How many bytes it has copied so far: what its work is told by.
    private(set) var copied = 0

    /// - Parameter most: how long it may become, in bytes.
    mutating func begin(_ bytes: UnsafeRawBufferPointer, most: Int) {
        current.removeAll(keepingCapacity: 1 << 20)
        current.append(bytes)
        wanted.removeAll()
        self.most = most
        isOver = false
    }

    /// The line as it is now, its line feed included; valid until the next change.
    mutating func line() -> UnsafeRawBufferPointer {
        setWanted()
        return current.bytes
    }

    /// Whether all that was asked for has been done, or can be.
    mutating func fits() -> Bool {
        if current.count + wanted.size > most { setWanted() }
        return !isOver
    }

    /// Gives a member a value; objects on the way are made, and what stands in their way goes.
    mutating func set(_ names: [[UInt8]], to value: [UInt8]) {
        if wanted.add(names, value) { return }
        setWanted()
        _ = wanted.add(names, value)
    }

    /// Changes what a path leads to; `takesName` says whether that may be the event's name.
    mutating func change(_ path: PathSteps, _ change: PathFinder.Change, takesName: Bool = true) {
        setWanted()
        splice(PathFinder(base, to: current.count, path, change, takesName: takesName, most: most).edits)
    }

    /// Gives a member another name in its place, wherever the names lead; members that had it go.
    mutating func rename(_ names: [[UInt8]], to name: String) {
        guard names.last != name.bytes else { return }
        change(PathSteps(names), .rename(to: name.bytes))
    }

    // A buffer of lines always has storage.
    private var base: UnsafePointer<UInt8> {
        current.bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
    }

    private mutating func setWanted() {
        guard !wanted.isEmpty else { return }
        splice(wanted.edits(in: base, to: current.count, most: most))
        wanted.removeAll()
    }

    /// Writes other bytes in some places, in one copy: what a list holds may be 100,000 values.
    private mutating func splice(_ edits: Edits) {
        guard !edits.isOver, current.count + edits.growth <= most else {
            isOver = true
            return
        }
        guard !edits.places.isEmpty else { return }
        next.removeAll(keepingCapacity: 1 << 20)
        let all = current.bytes
        var position = 0
        for (place, bytes) in edits.places {
            next.append(UnsafeRawBufferPointer(rebasing: all[position..<place.lowerBound]))
            bytes.withUnsafeBytes { next.append($0) }
            position = place.upperBound
        }
        next.append(UnsafeRawBufferPointer(rebasing: all[position...]))
        swap(&current, &next)
        copied += current.count
    }
}

/// Other bytes for some places of a line, in their order; none within another.
struct Edits {
    private(set) var places: [(range: Range<Int>, bytes: [UInt8])] = []
    /// By how much they make the line longer, in bytes.
    private(set) var growth = 0
    /// Whether the line becomes longer than it may up to the last place: there is no use in looking for more.
    private(set) var isOver = false
    private let most: Int

    /// - Parameter most: how long the line may become, in bytes.
    init(most: Int) { self.most = most }

    mutating func replace(_ range: Range<Int>, with bytes: [UInt8]) {
        places.append((range, bytes))
        growth += bytes.count - range.count
        if range.upperBound + growth > most { isOver = true }
    }

    /// Takes out more, up to `end`, from a place that is taken out.
    mutating func extend(_ place: Int, to end: Int) {
        growth -= end - places[place].range.upperBound
        places[place].range = places[place].range.lowerBound..<end
    }
}
