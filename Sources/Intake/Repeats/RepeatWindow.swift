internal import EventLoops
internal import Model

/// The settings `[dedup]` as the intake uses them.
package struct RepeatSettings: Sendable, Equatable {
    /// Time for which the id of an event is remembered; zero: repeats are not looked for.
    package var window: Duration
    /// Most ids that are remembered.
    package var most: Int

    package init(window: Duration = .zero, most: Int = 0) {
        self.window = window
        self.most = most
    }
}

/// Contents of the window, for status and metrics.
package struct RepeatFigures: Sendable, Equatable {
    /// Whether repeats are looked for.
    package var isOn = false
    /// Number of ids that are remembered.
    package var ids = 0
    /// Number of ids since the start that were forgotten before their time, because there were too many.
    package var forgottenEarly = 0
}

/// Ids of the events that were accepted within a time, so that an event counts once, however often its app
/// writes it.
///
/// An id is remembered as a hash of 64 bits of its app and itself, under a secret key of this queue. With a
/// million ids, one new event in 18 million million is mistaken for a repeat. All intakes share the window,
/// but each stores what it has accepted with its own commits (`AcceptedIDs`). Otherwise a commit of one
/// intake could make ids durable whose events another intake has not stored yet, and after a crash these
/// events would be discarded as repeats.
///
/// Hashes are kept in blocks, in order of arrival. A block is a row of the queue's memory, and is forgotten
/// as a whole.
///
/// Unchecked, because it belongs to the reader's loop, like everything that uses it.
package final class RepeatWindow: @unchecked Sendable {
    private var settings = RepeatSettings()
    /// Source of the key.
    private let random: () -> UInt64
    /// Where the window's figures are published.
    private let figures: IntakeFigures?
    /// Key of the hashes; nil before the first id.
    private var key: (UInt64, UInt64)?
    /// Blocks, oldest first.
    private var blocks: [RepeatBlock] = []
    /// Hashes of all blocks.
    private var known: Set<UInt64> = []
    /// Keys of rows that the next commit deletes.
    private var removed: [String] = []
    /// Number of the next block.
    private var nextNumber = 1
    private var forgottenEarly = 0

    /// Prefix of the rows' keys in the queue's memory.
    static let prefix = "dedup/"
    private static let keyName = "dedup/key"
    /// Least number of blocks in a full window. An id is remembered longer than the window by up to the
    /// length of a block.
    private static let blocksInWindow = 16

    package init(
        figures: IntakeFigures? = nil, random: @escaping () -> UInt64 = { RepeatWindow.kernelRandom() }
    ) {
        self.figures = figures
        self.random = random
    }

    private static func kernelRandom() -> UInt64 {
        let random = KernelRandom()
        return random.next()
    }

    /// Whether repeats are looked for.
    var isOn: Bool { settings.window > .zero }

    /// Takes over settings; a window that is turned off forgets everything.
    func configure(_ settings: RepeatSettings) {
        self.settings = settings
        if isOn {
            trim()
        } else {
            // The key stays: a commit that deletes it could come after one that stores a new key.
            for block in blocks { forget(block) }
        }
    }

    /// Hash under which an event's id is remembered.
    func hash(of id: UnsafeBufferPointer<UInt8>, app: String) -> UInt64 {
        let key = self.key ?? (random(), random())
        self.key = key
        return SipHash(key: key).hash(app.utf8, id)
    }

    /// Whether an event with this hash was accepted within the window.
    func contains(_ hash: UInt64) -> Bool { known.contains(hash) }

    /// Remembers an accepted event in the block that its intake fills. Returns the block, which is a new one
    /// if the old one is full, too old or forgotten.
    func insert(_ hash: UInt64, at now: Timestamp, in block: RepeatBlock?) -> RepeatBlock? {
        guard isOn, known.insert(hash).inserted else { return block }
        var open = block
        if let known = open, known.isForgotten || known.isFull || now - known.begin >= blockLength {
            open = nil
        }
        let target = open ?? RepeatBlock(number: nextNumber, begin: now)
        if open == nil {
            nextNumber += 1
            blocks.append(target)
        }
        target.add(hash, at: now)
        trim()
        return target
    }

    /// Time after which an intake begins another block.
    private var blockLength: Duration { settings.window / RepeatWindow.blocksInWindow }

    /// Forgets blocks whose newest id is older than the window.
    func expire(at now: Timestamp) {
        while let first = blocks.first, now - first.end > settings.window { forget(first) }
    }

    /// Forgets the oldest blocks while there are too many ids.
    private func trim() {
        while known.count > settings.most, blocks.count > 1, let first = blocks.first {
            forgottenEarly += first.hashes.count
            forget(first)
        }
    }

    /// Forgets a block; if it was stored, the next commit deletes its row.
    private func forget(_ block: RepeatBlock) {
        for hash in block.hashes { known.remove(hash) }
        if block.isStored {
            removed.append(block.name)
        }
        block.isForgotten = true
        blocks.removeAll { $0 === block }
    }

    /// Adds what a commit has to change: the rows to delete, and the key if the commit stores hashes.
    func takeMemory(into memory: inout [String: [UInt8]?], storesKey: Bool) {
        for name in removed { memory.updateValue(nil, forKey: name) }
        removed = []
        assertWhole()
        if storesKey, let key {
            memory.updateValue(RepeatBlock.bytes(of: [key.0, key.1]), forKey: RepeatWindow.keyName)
        }
        if isOn || !memory.isEmpty {
            publish()
        }
    }

    /// Figures of the window now.
    var counts: RepeatFigures { RepeatFigures(isOn: isOn, ids: known.count, forgottenEarly: forgottenEarly) }

    private func publish() {
        let counts = counts
        figures?.update { $0.repeats = counts }
    }

    /// Takes over what an earlier process stored; rows that cannot be read are deleted.
    func restore(_ memory: [String: [UInt8]]) {
        for (name, bytes) in memory where name.hasPrefix(RepeatWindow.prefix) {
            if name == RepeatWindow.keyName {
                let numbers = RepeatBlock.numbers(in: bytes[...])
                if numbers.count == 2 {
                    key = (numbers[0], numbers[1])
                }
            } else if let number = Int(name.dropFirst(RepeatWindow.prefix.utf8.count)), number > 0,
                number < .max,
                let block = RepeatBlock(number: number, bytes)
            {
                nextNumber = max(nextNumber, number + 1)
                blocks.append(block)
            } else {
                removed.append(name)
            }
        }
        blocks.sort { $0.number < $1.number }
        if key == nil {
            // Hashes under an unknown key are useless.
            for block in blocks { forget(block) }
        }
        for block in blocks { known.formUnion(block.hashes) }
        configure(settings)
        assertWhole()
        publish()
    }

    /// Checks before a commit and after a restore that each known id is in a block and that no number of a
    /// block will be given again. Otherwise an id would never be forgotten, or a row would replace another.
    private func assertWhole() {
        assert(blocks.allSatisfy { !$0.isForgotten && $0.number < nextNumber }, "a block is forgotten or new")
        assert(known.count <= blocks.reduce(0) { $0 + $1.hashes.count }, "a known id is in no block")
    }
}

/// Hashes of ids that arrived one after the other: a row of the queue's memory, which each commit writes
/// again while it grows.
final class RepeatBlock {
    let number: Int
    /// Time at which the block was begun, and time of its newest id.
    let begin: Timestamp
    private(set) var end: Timestamp
    private(set) var hashes: [UInt64] = []
    /// Whether a commit has taken the block up: then its row has to be deleted.
    var isStored = false
    /// Whether the window has forgotten the block: then it is neither filled nor stored.
    var isForgotten = false

    /// Most hashes of a block: a row on one of the queue's smallest pages holds them.
    static let mostHashes = 480
    /// First byte of a row.
    private static let version: UInt8 = 1

    init(number: Int, begin: Timestamp) {
        self.number = number
        self.begin = begin
        end = begin
    }

    /// Key of the row.
    var name: String { "\(RepeatWindow.prefix)\(number)" }

    var isFull: Bool { hashes.count >= RepeatBlock.mostHashes }

    func add(_ hash: UInt64, at now: Timestamp) {
        hashes.append(hash)
        end = max(end, now)
    }

    /// The row as it is stored: version, two times, hashes; numbers are little-endian.
    var encoded: [UInt8] {
        let times = [begin, end].map { UInt64(bitPattern: $0.nanoseconds) }
        return [RepeatBlock.version] + RepeatBlock.bytes(of: times + hashes)
    }

    /// A row that an earlier process stored; nil if the bytes are not a row.
    init?(number: Int, _ bytes: [UInt8]) {
        guard bytes.first == RepeatBlock.version, bytes.count % 8 == 1 else { return nil }
        let numbers = RepeatBlock.numbers(in: bytes.dropFirst())
        guard numbers.count > 2, numbers.count <= RepeatBlock.mostHashes + 2 else { return nil }
        self.number = number
        begin = Timestamp(nanoseconds: Int64(bitPattern: numbers[0]))
        end = Timestamp(nanoseconds: Int64(bitPattern: numbers[1]))
        hashes = Array(numbers.dropFirst(2))
        isStored = true
    }

    static func bytes(of numbers: [UInt64]) -> [UInt8] {
        numbers.flatMap { number in withUnsafeBytes(of: number.littleEndian) { Array($0) } }
    }

    static func numbers(in bytes: ArraySlice<UInt8>) -> [UInt64] {
        bytes.withUnsafeBytes { raw in
            (0..<raw.count / 8).map {
                UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self))
            }
        }
    }
}
