internal import Events

/// Changes members of an event in its text, and leaves all other bytes as they are.
///
/// A change is one walk over the line and one copy of it, however many members it changes; successive values
/// of `set` are one change. The new length is known before the copy. The editor works on a line that the
/// events' pass accepted, and leaves one that it would accept.
struct EventEditor: ~Copyable {
    /// The line without the values that wait, with its line feed.
    private var current = LineBuffer(capacity: 1024)
    /// Buffer for the next copy; the two are swapped after each change.
    private var next = LineBuffer(capacity: 1024)
    /// Values of `set` that wait to be written together.
    private var wanted = WantedValues()
    /// Longest line that is allowed, in bytes.
    private var most = Int.max
    /// Whether the line would have become too long. It stays as it was before that change.
    private(set) var isOver = false
    /// Bytes that were copied so far; a measure of the work.
    private(set) var copied = 0

    /// Begins with a line.
    ///
    /// - Parameter most: longest line that is allowed, in bytes.
    mutating func begin(_ bytes: UnsafeRawBufferPointer, most: Int) {
        current.removeAll(keepingCapacity: 1 << 20)
        current.append(bytes)
        wanted.removeAll()
        self.most = most
        isOver = false
    }

    /// The line as it is now, with its line feed; valid until the next change.
    mutating func line() -> UnsafeRawBufferPointer {
        setWanted()
        return current.bytes
    }

    /// Whether all changes were made, or can be made, within the length.
    mutating func fits() -> Bool {
        if current.count + wanted.size > most {
            setWanted()
        }
        return !isOver
    }

    /// Gives a member a value. Objects on its path are made, and other values at their names are replaced.
    mutating func set(_ names: [[UInt8]], to value: [UInt8]) {
        if wanted.add(names, value) { return }
        setWanted()
        _ = wanted.add(names, value)
    }

    /// Changes what a path leads to. `takesName` says whether the event's name may be changed too.
    mutating func change(_ path: PathSteps, _ change: PathFinder.Change, takesName: Bool = true) {
        setWanted()
        splice(PathFinder(base, to: current.count, path, change, takesName: takesName, most: most).edits)
    }

    /// Renames a member where it is. Other members with the new name are removed.
    mutating func rename(_ names: [[UInt8]], to name: String) {
        guard names.last != name.bytes else { return }
        change(PathSteps(names), .rename(to: name.bytes))
    }

    // A line buffer always has storage, also when it is empty.
    private var base: UnsafePointer<UInt8> {
        current.bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
    }

    /// Writes the values that wait.
    private mutating func setWanted() {
        guard !wanted.isEmpty else { return }
        splice(wanted.edits(in: base, to: current.count, most: most))
        wanted.removeAll()
    }

    /// Replaces some ranges in one copy: a list may have 100,000 values.
    private mutating func splice(_ edits: Edits) {
        guard !edits.isOver, current.count + edits.growth <= most else {
            isOver = true
            return
        }
        guard !edits.replacements.isEmpty else { return }
        next.removeAll(keepingCapacity: 1 << 20)
        let all = current.bytes
        var position = 0
        for (range, bytes) in edits.replacements {
            next.append(UnsafeRawBufferPointer(rebasing: all[position..<range.lowerBound]))
            bytes.withUnsafeBytes { next.append($0) }
            position = range.upperBound
        }
        next.append(UnsafeRawBufferPointer(rebasing: all[position...]))
        swap(&current, &next)
        copied += current.count
    }
}

/// Replacements for ranges of a line, in order, not overlapping.
struct Edits {
    /// The ranges with their new bytes.
    private(set) var replacements: [(range: Range<Int>, bytes: [UInt8])] = []
    /// Number of bytes by which the line grows.
    private(set) var growth = 0
    /// Whether the line becomes too long up to the last range, so that looking for more is useless.
    private(set) var isOver = false
    /// Longest line that is allowed, in bytes.
    private let most: Int

    /// No replacements yet.
    ///
    /// - Parameter most: longest line that is allowed, in bytes.
    init(most: Int) { self.most = most }

    /// Adds a replacement after the others.
    mutating func replace(_ range: Range<Int>, with bytes: [UInt8]) {
        replacements.append((range, bytes))
        growth += bytes.count - range.count
        if range.upperBound + growth > most {
            isOver = true
        }
    }

    /// Extends a removal up to `end`.
    mutating func extend(_ index: Int, to end: Int) {
        growth -= end - replacements[index].range.upperBound
        replacements[index].range = replacements[index].range.lowerBound..<end
    }
}
