internal import CKafka
internal import EventLoops
internal import Glibc
internal import Model

struct KafkaRecord {
    /// Where it goes; nil: to the topic of the settings.
    var topic: String?
    /// What partitions are chosen by; nil: any.
    var key: [UInt8]?
    var value: ArraySlice<UInt8>
    var eventID: String
}

/// An access token for SASL's OAUTHBEARER.
struct KafkaToken {
    /// Tells it from those before and after.
    let number: Int
    let text: Secret
    /// By the wall clock; nil: it does not say.
    let expires: Timestamp?
    let client: String

    /// Gives it to a producer just made; throws code `library` when it is over, or no token as the library knows them.
    fileprivate func use(in handle: OpaquePointer) throws(OutputError) {
        var words = [CChar](repeating: 0, count: 512)
        let end = (expires ?? Timestamp(milliseconds: .max / 2)).milliseconds
        guard !ckafka_use_token(handle, text.revealed, end, client, &words, words.count) else { return }
        throw OutputError(.library, "librdkafka refuses the access token: \(KafkaLibrary.text(words))")
    }
}

/// A producer of librdkafka's, its threads and its connections, from its making to its end.
///
/// Lives on its client's loop, and decides nothing. While it exists the library wakes the process several times a second.
final class KafkaProducer {
    enum Report {
        /// What happened to a record; 0: it is stored.
        case record(mark: UInt, code: Int32)
        /// Something that is about no record.
        case error(code: Int32, words: String, isFatal: Bool)
        /// Its access token has a fifth of its life left.
        case tokenWanted
    }

    let id: UInt64
    let generation: Int
    let openedAt: BootInstant
    /// The access token that its connections show; nil without one. It is the same for the producer's life.
    let token: KafkaToken?
    /// The calls whose records are in it.
    var tickets: Set<UInt64> = []
    /// Whether nothing new is given to it: it is closed when nobody uses it.
    var isLeaving = false
    /// What went wrong last, for calls that time out.
    var lastError: (code: Int32, words: String)?
    var searchTimer: EventLoop.TimerID?
    /// Ends the wait for another batch.
    var idleTimer: EventLoop.TimerID?

    private let loop: EventLoop
    private var handle: OpaquePointer?
    private var isWatched = false

    /// Makes one, which connects on its own threads; throws code `invalidSetting` with the library's words.
    init(
        _ id: UInt64, _ properties: KafkaProperties, generation: Int, _ token: KafkaToken?, on loop: EventLoop,
        at now: BootInstant
    ) throws(OutputError) {
        let handle = try properties.open()
        if let token {
            do throws(OutputError) { try token.use(in: handle) } catch {
                ckafka_close(handle)
                throw error
            }
        }
        (self.handle, self.token, self.id, self.generation, self.loop) = (handle, token, id, generation, loop)
        openedAt = now
    }

    deinit {
        guard let handle else { return }
        guard isWatched else {
            ckafka_close(handle)
            return
        }
        // Its descriptor must not be closed under its watch, and only the loop may end that.
        nonisolated(unsafe) let ended = handle
        loop.post { [loop] in
            loop.forget(ckafka_descriptor(ended))
            ckafka_close(ended)
        }
    }

    var isOpen: Bool { handle != nil }

    /// Ends it, and whatever it has not sent.
    func close() {
        guard let handle else { return }
        if isWatched { loop.forget(ckafka_descriptor(handle)) }
        for timer in [searchTimer, idleTimer] { timer.map { loop.cancel($0) } }
        (searchTimer, idleTimer) = (nil, nil)
        ckafka_close(handle)
        self.handle = nil
    }

    /// Calls `handler` when there are reports; returns the failure when the kernel has no memory for it.
    func watch(_ handler: @escaping () -> Void) -> Failure? {
        guard let handle, !isWatched else { return nil }
        do throws(SystemError) {
            try loop.watch(ckafka_descriptor(handle), for: .readable) { _ in handler() }
            isWatched = true
            return nil
        } catch {
            return Failure(kind: .local, message: "the producer cannot be watched: \(error.description)")
        }
    }

    /// Hands over a record; `mark` comes back with its report. Returns an error code, or 0: a report will come.
    func produce(_ record: KafkaRecord, headers: [(name: String, value: String)], mark: UInt) -> Int32 {
        guard let handle else { return KafkaCode.destroyed }
        for (name, value) in headers + [("event_id", record.eventID)] {
            var value = value
            guard value.withUTF8({ ckafka_header(handle, name, $0.baseAddress, $0.count) }) else {
                return KafkaCode.noMemory
            }
        }
        return record.value.withUnsafeBytes { value in
            guard let key = record.key else {
                return ckafka_produce(handle, record.topic, nil, 0, value.baseAddress, value.count, mark)
            }
            return key.withUnsafeBytes { key in
                ckafka_produce(handle, record.topic, key.baseAddress, key.count, value.baseAddress, value.count, mark)
            }
        }
    }

    /// All that has been reported since the last time.
    func reports() -> [Report] {
        guard let handle else { return [] }
        ckafka_clear(handle)
        var reports: [Report] = []
        var next = ckafka_report()
        while ckafka_next(handle, &next) {
            guard !next.is_record, !next.is_token_wanted else {
                reports.append(next.is_record ? .record(mark: next.mark, code: next.code) : .tokenWanted)
                continue
            }
            let words = next.words.map { String(cString: $0) } ?? ""
            reports.append(.error(code: next.code, words: words, isFatal: next.is_fatal))
        }
        return reports
    }

    /// Asks for the topic's metadata. Blocks, for so long at most.
    ///
    /// - Returns: an error code; 0: the topic is there, or events name theirs and a broker answers.
    func look(for wait: Duration) -> Int32 {
        guard let handle else { return KafkaCode.destroyed }
        return ckafka_look(handle, Int32(clamping: Int64(wait / .milliseconds(1))))
    }
}
