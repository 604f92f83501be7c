internal import Model

/// The party to which files belong: an app, or in a directory that users share, such as `incoming/`, one
/// user. Files are compared only within a holder, and bounds are shared between holders, so that one of them
/// cannot affect the files of another.
struct Holder: Hashable {
    /// The top directory of the spool; empty for the spool itself and for directories that count as part of
    /// it (`joinedTops`).
    let top: [UInt8]
    /// The user; nil if the directory belongs to an app.
    let owner: UInt32?
}

extension Holder {
    /// - Parameter joinedTops: top directories that count as part of the root, because rotation moves files
    ///   of the root there (`olddir`).
    init(of path: some Collection<UInt8>, owner: UInt32?, joinedTops: Set<[UInt8]>) {
        let top = path.firstIndex(of: UInt8(ascii: "/")).map { Array(path[..<$0]) } ?? []
        self.init(top: joinedTops.contains(top) ? [] : top, owner: owner)
    }

    /// The holder that counts for bounds: ids above 65,535 are pooled in blocks of 65,536, the size of a
    /// range of subordinate ids (subuid(5)). Otherwise one user could act as 65,536 holders.
    var pooled: Holder { Holder(top: top, owner: owner.map(Holder.pool)) }

    /// The highest id of the block to which an id belongs; ids up to 65,535 stand for themselves.
    static func pool(of owner: UInt32) -> UInt32 { owner > UInt16.max ? owner | UInt32(UInt16.max) : owner }
}

/// The lines that a holder writes under one name before rotation changes the name. A new file is compared
/// only with the files and contents of its own stream: content of other holders or names is different even if
/// it begins alike.
struct Stream: Hashable {
    let holder: Holder
    /// The name without rotation suffixes.
    let stem: FileName

    /// The streams of a content by the names of its file: the original name, and the name after rotation.
    static func of(_ holder: Holder, _ origin: FileName, _ name: FileName) -> [Stream] {
        let stem = origin.stem
        let other = name.stem
        return (stem == other ? [stem] : [stem, other]).map { Stream(holder: holder, stem: $0) }
    }

    /// The streams of a stored content.
    static func of(_ checkpoint: Checkpoint, _ trace: FileTrace, joinedTops: Set<[UInt8]>) -> [Stream] {
        let name = checkpoint.name
        return of(
            Holder(of: checkpoint.path.utf8, owner: trace.owner, joinedTops: joinedTops),
            trace.origin ?? name, name)
    }

    /// The streams to which a file with a name may belong.
    static func asked(_ holder: Holder, _ name: FileName) -> [Stream] { of(holder, name, name.base) }

    /// A unique encoding of the stream that does not change across restarts.
    var bytes: [UInt8] { holder.top + Array("/\(holder.owner.map { "\($0)" } ?? "")/".utf8) + stem.bytes }
}

extension Checkpoint {
    var name: FileName { FileName(path).last }
}

/// Members by the hash of their key, for example of a stream. A lookup costs only as much as the key has
/// members, however many files the spool has. The key is not stored, which saves memory.
struct HashIndex<Key: Hashable, Member: Hashable> {
    /// Most keys have one member, which needs no set.
    private enum Members {
        case one(Member)
        case several(Set<Member>)
    }

    /// Members by hash. Two keys with one hash share an entry; the caller must check which members it wants.
    private var members: [Int: Members] = [:]

    var isEmpty: Bool { members.isEmpty }

    /// Count of members over all keys.
    var count: Int {
        members.values.reduce(0) { sum, members in
            switch members {
            case .one: sum + 1
            case .several(let several): sum + several.count
            }
        }
    }

    /// Whether the key has members; may be true by a collision of hashes.
    func has(_ key: Key) -> Bool { members[key.hashValue] != nil }

    /// Calls `body` with the members of a key, and by a collision of hashes with those of another one.
    func forEach(_ key: Key, _ body: (Member) -> Void) {
        switch members[key.hashValue] {
        case nil: break
        case .one(let member): body(member)
        case .several(let several): several.forEach(body)
        }
    }

    /// Number of keys for which there is memory.
    var capacity: Int { members.capacity }

    /// Gives memory back that a table of more keys has left.
    mutating func release() {
        members = Dictionary(uniqueKeysWithValues: members.map { ($0.key, $0.value) })
    }

    mutating func add(_ member: Member, to key: Key) {
        switch members.removeValue(forKey: key.hashValue) {
        case nil: members[key.hashValue] = .one(member)
        case .one(let other):
            members[key.hashValue] = other == member ? .one(member) : .several([other, member])
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
            if !several.isEmpty {
                members[key.hashValue] = .several(several)
            }
        case nil, .one: break
        }
    }
}

/// The first bytes of a file that is compared, at most as many as a fingerprint covers. Caches the
/// fingerprints of its prefixes.
final class Head {
    let bytes: [UInt8]
    private var hashes: [Int: UInt64] = [:]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The fingerprint of the first `length` bytes, or of all if there are fewer.
    func fingerprint(of length: Int) -> Fingerprint {
        let length = min(length, bytes.count)
        let hash = hashes[length] ?? bytes[..<length].withUnsafeBytes { ByteHash.of($0) }
        hashes[length] = hash
        return Fingerprint(length: length, hash: hash)
    }
}

/// Contents by stream and fingerprint. A stream may have thousands of contents, and a new file begins like
/// one or two of them; comparing it with all took three quarters of the reader's time under a hostile user.
struct ContentIndex<Member: Hashable> {
    private struct Key: Hashable {
        let stream: Stream
        let fingerprint: Fingerprint
    }

    private var members = HashIndex<Key, Member>()
    private var lengths: [Int: Lengths] = [:]

    /// Count of contents of a stream by the length of their fingerprints: a new file's first bytes are hashed
    /// once for each length. Most streams have one length, which needs no allocation.
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
            self =
                counts.count == 1 ? .one(Int32(clamping: length), Int32(clamping: count)) : .several(counts)
        }
    }

    /// Count of contents, once for each of their streams.
    var count: Int { members.count }

    /// Number of entries for which the larger table has memory.
    var capacity: Int { max(members.capacity, lengths.capacity) }

    /// Gives memory back that tables of more contents have left.
    mutating func release() {
        members.release()
        lengths = Dictionary(uniqueKeysWithValues: lengths.map { ($0.key, $0.value) })
    }

    /// Whether a stream has contents; may be true by a collision of hashes.
    func has(_ stream: Stream) -> Bool { lengths[stream.hashValue] != nil }

    /// Whether a content has a longer fingerprint, with which a file of `length` bytes may begin once it has
    /// grown.
    func hasLonger(than length: Int, of stream: Stream) -> Bool {
        lengths[stream.hashValue]?.counts.keys.contains { $0 > length } ?? false
    }

    /// Calls `body` with each known content that equals the beginning of a file.
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

/// An entry that counts for a holder.
protocol Held {
    var holder: Holder { get }
}

extension Array where Element: Held {
    /// Removes entries beyond a number, and returns them: the holder with the most gives up its oldest, so
    /// that no holder displaces the entries of another.
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
