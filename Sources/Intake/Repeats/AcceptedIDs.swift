internal import EventLoops
internal import Events

/// Ids that one intake has accepted, and the window that it shares with the others.
///
/// An id becomes durable in the transaction that stores its event. So after a crash, a line that is read
/// again counts as a repeat exactly if its event is in the queue.
final class AcceptedIDs {
    private let window: RepeatWindow
    /// The block that this intake fills.
    private var open: RepeatBlock?
    /// Blocks with ids that no commit has taken up yet.
    private var changed: [RepeatBlock] = []
    /// Hash of the event that was asked about last; nil for an event without an id of its own.
    private var asked: UInt64?
    /// Whether an earlier commit of this intake has stored the key. Those of other intakes do not count,
    /// because they may become durable later.
    private var hasStoredKey = false

    init(_ window: RepeatWindow) { self.window = window }

    func configure(_ settings: RepeatSettings) { window.configure(settings) }

    func restore(_ memory: [String: [UInt8]]) { window.restore(memory) }

    /// Prepares for a block of lines, and returns nil if repeats are not searched for. Forgets ids that are
    /// too old, if the clock can be trusted.
    func ready(at now: Timestamp, isSynchronised: Bool) -> AcceptedIDs? {
        guard window.isOn else { return nil }
        if isSynchronised {
            window.expire(at: now)
        }
        return self
    }

    /// Whether an event with this id was accepted before; false for an event without an id.
    func isRepeat(_ id: UnsafeBufferPointer<UInt8>?, of app: String) -> Bool {
        asked = id.map { window.hash(of: $0, app: app) }
        return asked.map { window.contains($0) } ?? false
    }

    /// Remembers the event that was asked about last, which was accepted. Not done by `isRepeat`: an event
    /// that must be offered again would be its own repeat.
    func insert(at now: Timestamp) {
        guard let asked else { return }
        open = window.insert(asked, at: now, in: open)
        if let open, changed.last !== open {
            changed.append(open)
        }
        self.asked = nil
    }

    /// What the next commit has to store.
    func takeMemory() -> [String: [UInt8]?] {
        var memory: [String: [UInt8]?] = [:]
        let stored = changed.filter { !$0.isForgotten }
        window.takeMemory(into: &memory, storesKey: !stored.isEmpty && !hasStoredKey)
        hasStoredKey = hasStoredKey || !stored.isEmpty
        for block in stored {
            block.isStored = true
            memory.updateValue(block.encoded, forKey: block.name)
        }
        changed = []
        return memory
    }
}
