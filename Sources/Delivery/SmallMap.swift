/// A few values by their keys, in the keys' order.
///
/// A dictionary moves a value out of its table and in again to change it, and hands out copies of those that are looked
/// at. Destinations and attempts are large, and looked at dozens of times a batch: here they are in an array, and are looked
/// at and changed in place. To find one takes a look at each key, which for a dozen is the quickest way.
struct SmallMap<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    /// All keys, ascending.
    private(set) var keys: [Key] = []
    /// Their values, in the same order.
    private(set) var values: [Value] = []

    var count: Int { keys.count }

    var isEmpty: Bool { keys.isEmpty }

    /// A copy of the value; set to nil, it is removed.
    subscript(key: Key) -> Value? {
        get { index(of: key).map { values[$0] } }
        set {
            guard let newValue else {
                removeValue(forKey: key)
                return
            }
            if let index = index(of: key) {
                values[index] = newValue
            } else {
                let index = keys.firstIndex { $0 > key } ?? keys.endIndex
                keys.insert(key, at: index)
                values.insert(newValue, at: index)
            }
        }
    }

    /// Removes a value and returns it; nil when there was none.
    @discardableResult
    mutating func removeValue(forKey key: Key) -> Value? {
        guard let index = index(of: key) else { return nil }
        keys.remove(at: index)
        return values.remove(at: index)
    }

    func contains(_ key: Key) -> Bool { index(of: key) != nil }

    // An array's own subscript may copy what it hands out, a buffer's never does.

    /// Changes a value in place; does nothing when there is none.
    @inline(__always)
    mutating func update(_ key: Key, _ change: (inout Value) -> Void) {
        if let index = index(of: key) { change(&values[index]) }
    }

    /// Changes all values in place.
    @inline(__always)
    mutating func updateAll(_ change: (Key, inout Value) -> Void) {
        for index in keys.indices { change(keys[index], &values[index]) }
    }

    /// Looks at all values in turn.
    @inline(__always)
    func forEach(_ look: (Key, Value) -> Void) {
        values.withUnsafeBufferPointer { values in
            for index in values.indices { look(keys[index], values[index]) }
        }
    }

    /// What a value says, without a copy of it; nil when there is none.
    @inline(__always)
    func look<Result>(_ key: Key, _ say: (Value) -> Result?) -> Result? {
        guard let index = index(of: key) else { return nil }
        return values.withUnsafeBufferPointer { say($0[index]) }
    }

    /// How many values are so.
    @inline(__always)
    func count(where isSo: (Value) -> Bool) -> Int {
        values.withUnsafeBufferPointer { values in
            var count = 0
            for index in values.indices where isSo(values[index]) { count += 1 }
            return count
        }
    }

    /// The first key whose value is so.
    @inline(__always)
    func firstKey(where isSo: (Value) -> Bool) -> Key? {
        values.withUnsafeBufferPointer { values in
            for index in values.indices where isSo(values[index]) { return keys[index] }
            return nil
        }
    }

    /// Whether any value is so.
    @inline(__always)
    func contains(where isSo: (Value) -> Bool) -> Bool { firstKey(where: isSo) != nil }

    func keys(where isSo: (Value) -> Bool) -> [Key] {
        var found: [Key] = []
        values.withUnsafeBufferPointer { values in
            for index in values.indices where isSo(values[index]) { found.append(keys[index]) }
        }
        return found
    }

    @inline(__always)
    private func index(of key: Key) -> Int? {
        for index in keys.indices where keys[index] == key { return index }
        return nil
    }
}
