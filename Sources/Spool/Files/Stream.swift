internal import Model

/// One whose files are judged separately: an app, or in `incoming/`, which all users share, one of them.
struct Holder: Hashable {
    /// The top directory of the spool; empty for the spool itself, and what is one with it.
    let top: [UInt8]
    /// The user; nil where a directory is an app's.
    let owner: UInt32?
}

extension Holder {
    /// - Parameter joinedTops: the top directories that count as the directory above them: rotation moves its files there.
    init(of path: some Collection<UInt8>, owner: UInt32?, joinedTops: Set<[UInt8]>) {
        let top = path.firstIndex(of: UInt8(ascii: "/")).map { Array(path[..<$0]) } ?? []
        self.init(top: joinedTops.contains(top) ? [] : top, owner: owner)
    }

    /// Who counts as one where the holder with the most gives way: beyond the first 65,536 users so many at a time, which is what a
    /// range of subordinate ids holds.
    var pooled: Holder { Holder(top: top, owner: owner.map(Holder.pool)) }

    static func pool(of owner: UInt32) -> UInt32 { owner > UInt16.max ? owner | UInt32(UInt16.max) : owner }
}

/// What a holder writes under one name before rotation changes it. Only the files and contents of its own stream are looked at when a
/// file is judged: what others have, and what begins alike under other names, is something else.
struct Stream: Hashable {
    let holder: Holder
    /// The name that rotation changes.
    let stem: FileName

    /// The streams of a content by the names of its file: the one that it was written under, and what rotation made of it.
    static func of(_ holder: Holder, _ origin: FileName, _ name: FileName) -> [Stream] {
        let (stem, other) = (origin.stem, name.stem)
        return (stem == other ? [stem] : [stem, other]).map { Stream(holder: holder, stem: $0) }
    }

    /// The streams of a content that was kept.
    static func of(_ checkpoint: Checkpoint, _ trace: FileTrace, joinedTops: Set<[UInt8]>) -> [Stream] {
        let name = checkpoint.name
        return of(
            Holder(of: checkpoint.path.utf8, owner: trace.owner, joinedTops: joinedTops), trace.origin ?? name, name)
    }

    /// The streams that a file under a name may belong to.
    static func asked(_ holder: Holder, _ name: FileName) -> [Stream] { of(holder, name, name.base) }

    /// The same for the same stream at all times, and for no other one.
    var bytes: [UInt8] { holder.top + Array("/\(holder.owner.map { "\($0)" } ?? "")/".utf8) + stem.bytes }
}

extension Checkpoint {
    var name: FileName { FileName(path).last }
}

/// Members by the hash of what they belong to, as a stream: to ask about one costs what it has, however much the spool has.
struct HashIndex<Key: Hashable, Member: Hashable> {
    private enum Members {
        case one(Member)
        case several(Set<Member>)
    }

    /// By the hash of the key: of two with one hash, whoever asks tells the members apart.
    private var members: [Int: Members] = [:]

    /// Whether there is anything of it, as far as hashes tell.
    func has(_ key: Key) -> Bool { members[key.hashValue] != nil }

    func forEach(_ key: Key, _ body: (Member) -> Void) {
        switch members[key.hashValue] {
        case nil: break
        case .one(let member): body(member)
        case .several(let several): several.forEach(body)
        }
    }

    mutating func add(_ member: Member, to key: Key) {
        switch members.removeValue(forKey: key.hashValue) {
        case nil: members[key.hashValue] = .one(member)
        case .one(let other): members[key.hashValue] = other == member ? .one(member) : .several([other, member])
        case .several(var several):
            several.insert(member)
            members[key.hashValue] = .several(several)
        }
    }

    mutating func remove(_ member: Member, from key: Key) {
        switch members.removeValue(forKey: key.hashValue) {
        case .one(let other) where other != member: members[key.hashValue] = .one(other)
        case .several(var several):
            several.remove(member)
            if !several.isEmpty { members[key.hashValue] = .several(several) }
        case nil, .one: break
        }
    }
}

/// The first bytes of a file that is judged, as much as a fingerprint covers, or all.
final class Head {
    let bytes: [UInt8]
    private var hashes: [Int: UInt64] = [:]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The fingerprint of so many bytes, or of all if there are fewer.
    func fingerprint(of length: Int) -> Fingerprint {
        let length = min(length, bytes.count)
        let hash = hashes[length] ?? bytes[..<length].withUnsafeBytes { ByteHash.of($0) }
        hashes[length] = hash
        return Fingerprint(length: length, hash: hash)
    }
}

/// Where contents are by what their streams' files begin with: one stream may have thousands, of which a file begins with one or two.
struct ContentIndex<Member: Hashable> {
    private struct Key: Hashable {
        let stream: Stream
        let fingerprint: Fingerprint
    }

    private var members = HashIndex<Key, Member>()
    private var lengths: [Int: Lengths] = [:]

    /// How many contents of a stream have a fingerprint of a length. Most streams have one length, which needs no memory of its own.
    private enum Lengths {
        case one(Int32, Int32)
        case several([Int: Int])

        var counts: [Int: Int] {
            switch self {
            case .one(let length, let count): [Int(length): Int(count)]
            case .several(let counts): counts
            }
        }

        init?(_ counts: [Int: Int]) {
            guard let (length, count) = counts.first else { return nil }
            self = counts.count == 1 ? .one(Int32(clamping: length), Int32(clamping: count)) : .several(counts)
        }
    }

    /// Whether there is anything of a stream, as far as hashes tell.
    func has(_ stream: Stream) -> Bool { lengths[stream.hashValue] != nil }

    /// Whether a file with fewer bytes may still become one that begins with a content.
    func hasLonger(than length: Int, of stream: Stream) -> Bool {
        lengths[stream.hashValue]?.counts.keys.contains { $0 > length } ?? false
    }

    /// Those that a file begins with.
    func beginning(_ head: Head, of stream: Stream, _ body: (Member) -> Void) {
        for length in lengths[stream.hashValue]?.counts.keys ?? [:].keys where length <= head.bytes.count {
            members.forEach(Key(stream: stream, fingerprint: head.fingerprint(of: length)), body)
        }
    }

    mutating func add(_ member: Member, _ fingerprint: Fingerprint, to streams: [Stream]) {
        for stream in streams {
            members.add(member, to: Key(stream: stream, fingerprint: fingerprint))
            count(fingerprint.length, of: stream, by: 1)
        }
    }

    mutating func remove(_ member: Member, _ fingerprint: Fingerprint, from streams: [Stream]) {
        for stream in streams {
            members.remove(member, from: Key(stream: stream, fingerprint: fingerprint))
            count(fingerprint.length, of: stream, by: -1)
        }
    }

    private mutating func count(_ length: Int, of stream: Stream, by number: Int) {
        var counts = lengths.removeValue(forKey: stream.hashValue)?.counts ?? [:]
        let count = counts[length, default: 0] + number
        counts[length] = count > 0 ? count : nil
        lengths[stream.hashValue] = Lengths(counts)
    }
}

/// What waits or is remembered for a holder.
protocol Held {
    var holder: Holder { get }
}

extension Array where Element: Held {
    /// Takes out what exceeds a number: whoever holds the most gives up the oldest, so that nobody crowds out another.
    mutating func makeRoom(for most: Int) -> [Element] {
        var givenUp: [Element] = []
        while count > most {
            let counts = reduce(into: [:]) { $0[$1.holder, default: 0] += 1 }
            guard let largest = counts.max(by: { $0.value < $1.value })?.key,
                let oldest = firstIndex(where: { $0.holder == largest })
            else { break }
            givenUp.append(remove(at: oldest))
        }
        return givenUp
    }
}
