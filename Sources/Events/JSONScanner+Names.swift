internal import Glibc

/// Which of the members that the agent reads a name belongs to.
extension JSONScanner {
    /// The place of the member of that name; -1 for any other name.
    @inline(__always)
    func recognise(_ key: Pointer, _ length: Int, _ isEscaped: Bool) -> Int {
        if isEscaped { return recogniseEscaped(key, length) }
        if !addressName.isEmpty, length == addressName.count, isAddress(key, length) {
            return MemberName.address.rawValue
        }
        guard length <= 11, length >= 2 else { return -1 }
        let word = word(key, length)
        switch length {
        case 2: return word == Words.id ? MemberName.id.rawValue : -1
        case 3:
            if word == Words.app { return MemberName.app.rawValue }
            return word == Words.pid ? MemberName.pid.rawValue : -1
        case 4:
            if word == Words.name { return MemberName.name.rawValue }
            return word == Words.type ? MemberName.type.rawValue : -1
        case 6: return word == Words.device ? MemberName.device.rawValue : -1
        case 7:
            if word == Words.country { return MemberName.country.rawValue }
            return word == Words.process ? MemberName.process.rawValue : -1
        case 8: return word == Words.priority ? MemberName.priority.rawValue : -1
        case 9:
            return word == Words.timestam && key[8] == UInt8(ascii: "p") ? MemberName.timestamp.rawValue : -1
        case 10:
            if word == Words.properti, key[8] == UInt8(ascii: "e"), key[9] == UInt8(ascii: "s") {
                return MemberName.properties.rawValue
            }
            return word == Words.session && key[8] == UInt8(ascii: "i") && key[9] == UInt8(ascii: "d")
                ? MemberName.sessionID.rawValue : -1
        case 11:
            return word == Words.observed && key[8] == UInt8(ascii: "_") && key[9] == UInt8(ascii: "a")
                && key[10] == UInt8(ascii: "t") ? MemberName.observedAt.rawValue : -1
        default: return -1
        }
    }

    @inline(never)
    private func isAddress(_ key: Pointer, _ length: Int) -> Bool {
        addressName.elementsEqual(UnsafeBufferPointer(start: key, count: length))
    }

    /// A name spelled with escapes is the same name; rare enough to be decoded at leisure.
    @inline(never)
    private func recogniseEscaped(_ key: Pointer, _ length: Int) -> Int {
        guard length <= 6 * 64 else { return -1 }
        let name = JSONText.decoded(UnsafeBufferPointer(start: key, count: length))
        if !addressName.isEmpty, name == addressName { return MemberName.address.rawValue }
        guard !name.isEmpty else { return -1 }
        return MemberName.allCases.first { $0.spelling == name }?.rawValue ?? -1
    }

    /// Up to eight bytes as a little-endian number, the rest zero.
    @inline(__always)
    func word(_ p: Pointer, _ length: Int) -> UInt64 {
        if p <= wordEnd {
            let loaded = UnsafeRawPointer(p).loadUnaligned(as: UInt64.self).littleEndian
            return length >= 8 ? loaded : loaded & ((1 << (8 * UInt64(truncatingIfNeeded: length))) &- 1)
        }
        var word: UInt64 = 0
        for index in 0..<min(length, 8) { word |= UInt64(p[index]) << (8 * UInt64(index)) }
        return word
    }
}

/// Names as little-endian numbers of up to eight bytes; literals, because a static property costs a look at each use.
private enum Words {
    @inline(__always) static var id: UInt64 { 0x6469 }  // "id"
    @inline(__always) static var app: UInt64 { 0x70_7061 }  // "app"
    @inline(__always) static var pid: UInt64 { 0x64_6970 }  // "pid"
    @inline(__always) static var name: UInt64 { 0x656D_616E }  // "name"
    @inline(__always) static var type: UInt64 { 0x6570_7974 }  // "type"
    @inline(__always) static var device: UInt64 { 0x6563_6976_6564 }  // "device"
    @inline(__always) static var country: UInt64 { 0x79_7274_6E75_6F63 }  // "country"
    @inline(__always) static var process: UInt64 { 0x73_7365_636F_7270 }  // "process"
    @inline(__always) static var priority: UInt64 { 0x7974_6972_6F69_7270 }  // "priority"
    @inline(__always) static var timestam: UInt64 { 0x6D61_7473_656D_6974 }  // "timestam"
    @inline(__always) static var properti: UInt64 { 0x6974_7265_706F_7270 }  // "properti"
    @inline(__always) static var session: UInt64 { 0x5F6E_6F69_7373_6573 }  // "session_"
    @inline(__always) static var observed: UInt64 { 0x6465_7672_6573_626F }  // "observed"
}
