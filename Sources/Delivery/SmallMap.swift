/// A few values in an array, sorted by their keys; for destinations and attempts.
///
/// A dictionary moves a value out of its table and back in order to change it, and returns copies of values
/// that are only read. Destinations and attempts are large values that are read dozens of times for each
/// batch; here they are read and changed in place. A key is found by comparing all keys, which is fastest for
/// about a dozen of them.
struct SmallMap<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    /// All keys, ascending.
    private(set) var keys: [Key] = []
    /// The values, in the order of their keys.
    private(set) var values: [Value] = []

    var count: Int { keys.count }

    var isEmpty: Bool { keys.isEmpty }

    /// A copy of the value; setting nil removes it.
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

    /// Removes a value and returns it; nil if the key is unknown.
    @discardableResult
    mutating func removeValue(forKey key: Key) -> Value? {
        guard let index = index(of: key) else { return nil }
        keys.remove(at: index)
        return values.remove(at: index)
    }

    func contains(_ key: Key) -> Bool { index(of: key) != nil }

    // The methods below that look at values use buffers: the subscript of an array may copy the element that
    // it returns, that of a buffer never does.

    /// Changes a value in place; does nothing if the key is unknown.
    @inline(__always)
    mutating func update(_ key: Key, _ change: (inout Value) -> Void) {
        if let index = index(of: key) {
            change(&values[index])
        }
    }

    /// Changes all values in place.
    @inline(__always)
    mutating func updateAll(_ change: (Key, inout Value) -> Void) {
        for index in keys.indices { change(keys[index], &values[index]) }
    }

    /// Calls the closure for each value, in the order of the keys.
    @inline(__always)
    func forEach(_ look: (Key, Value) -> Void) {
        values.withUnsafeBufferPointer { values in
            for index in values.indices { look(keys[index], values[index]) }
        }
    }

    /// A property of a value, without copying the value; nil if the key is unknown.
    @inline(__always)
    func look<Result>(_ key: Key, _ say: (Value) -> Result?) -> Result? {
        guard let index = index(of: key) else { return nil }
        return values.withUnsafeBufferPointer { say($0[index]) }
    }

    /// Number of values that meet a condition.
    @inline(__always)
    func count(where isSo: (Value) -> Bool) -> Int {
        values.withUnsafeBufferPointer { values in
            var count = 0
            for index in values.indices where isSo(values[index]) { count += 1 }
            return count
        }
    }

    /// First key whose value meets a condition.
    @inline(__always)
    func firstKey(where isSo: (Value) -> Bool) -> Key? {
        values.withUnsafeBufferPointer { values in
            for index in values.indices where isSo(values[index]) { return keys[index] }
            return nil
        }
    }

    /// Whether any value meets a condition.
    @inline(__always)
    func contains(where isSo: (Value) -> Bool) -> Bool { firstKey(where: isSo) != nil }

    /// All keys whose values meet a condition, ascending.
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
