internal import Glibc

/// Finds which of the known names a text is: one look into a table, one comparison.
///
/// The table has no collisions: its factor is searched when it is made.
final class NameTable: Sendable {
    /// The bytes of a name as two numbers, which together with its length tell names of up to 16 bytes apart;
    /// of a longer name they are the first and the last eight bytes.
    struct Key: Equatable {
        let first: UInt64
        let last: UInt64
        let count: Int

        @inline(__always)
        init(_ start: UnsafePointer<UInt8>, _ count: Int) {
            let p = UnsafeRawPointer(start)
            self.count = count
            if count >= 8 {
                first = p.loadUnaligned(as: UInt64.self)
                last = p.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
            } else if count >= 4 {
                first = UInt64(p.loadUnaligned(as: UInt32.self))
                last = UInt64(p.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
            } else {
                var word: UInt64 = 0
                var index = 0
                while index < count {
                    word = word &<< 8 | UInt64(start[index])
                    index &+= 1
                }
                first = word
                last = 0
            }
        }

        /// Mixes the numbers. Equal keys have equal hashes; names of more than 16 bytes may share a key.
        @inline(__always)
        func hash(_ factor: UInt64) -> UInt64 {
            let mixed = (first ^ (last &<< 29 | last &>> 35) ^ UInt64(truncatingIfNeeded: count)) &* factor
            return (mixed ^ mixed &>> 32) &* factor
        }
    }

    /// All known names.
    static let known = NameTable()

    private static let size = 1024
    /// What a free slot holds.
    private static let free = UInt8.max

    /// Factor of the hashes.
    let factor: UInt64
    /// Numbers of the names by the upper bits of their hashes.
    private let slots: [UInt8]
    /// The keys of the names, by their numbers.
    private let keys: [Key]
    /// The names by their numbers, because making one of a number is a call.
    private let names = EventName.allCases

    private init() {
        let keys = EventName.allCases.map { Key($0.text.utf8Start, $0.text.utf8CodeUnitCount) }
        var factor: UInt64 = 0x9E37_79B9_7F4A_7C15
        var slots: [UInt8]
        repeat {
            factor &+= 2
            slots = [UInt8](repeating: NameTable.free, count: NameTable.size)
            for (number, key) in keys.enumerated() {
                slots[NameTable.slot(key.hash(factor))] = UInt8(truncatingIfNeeded: number)
            }
        } while slots.count(where: { $0 != NameTable.free }) < keys.count
        self.keys = keys
        self.factor = factor
        self.slots = slots
    }

    @inline(__always)
    private static func slot(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash &>> 54) }

    /// The known name with these bytes; nil for other names.
    @inline(__always)
    func name(_ start: UnsafePointer<UInt8>, _ key: Key, _ hash: UInt64) -> EventName? {
        let number = slots[NameTable.slot(hash)]
        guard number != NameTable.free, keys[Int(number)] == key else { return nil }
        let name = names[Int(number)]
        return key.count <= 16 || memcmp(start, name.text.utf8Start, key.count) == 0 ? name : nil
    }
}
