internal import CKafka
internal import EventLoops
internal import Glibc
internal import Model

/// An event as a record.
struct KafkaRecord {
    /// Topic of the record; nil for the topic of the settings.
    var topic: String?
    /// Decides the partition; nil for any partition.
    var key: [UInt8]?
    var value: ArraySlice<UInt8>
    var eventID: ArraySlice<UInt8>
    /// The event's time in milliseconds since 1970; 0 for the time at which the record is produced.
    var time: Int64 = 0
    /// Headers besides those that all records of the batch have.
    var headers: [(name: String, value: String)] = []
}

/// An access token for the SASL mechanism OAUTHBEARER (RFC 7628).
struct KafkaToken {
    /// Number of the token, to recognise whether a producer has an outdated one.
    let number: Int
    let text: Secret
    /// Expiry in the time of day; nil if the endpoint named none.
    let expires: Timestamp?
    /// The client's id, which the library wants as the token's principal.
    let client: String

    /// Gives the token to a new producer.
    ///
    /// - Throws: `OutputError` with code `library` if the token has expired or the library does not accept
    ///   its form.
    fileprivate func use(in handle: OpaquePointer) throws(OutputError) {
        var words = [CChar](repeating: 0, count: 512)
        let end = (expires ?? Timestamp(milliseconds: .max / 2)).milliseconds
        guard !ckafka_use_token(handle, text.revealed, end, client, &words, words.count) else { return }
        throw OutputError(.library, "librdkafka refuses the access token: \(KafkaLibrary.text(words))")
    }
}

/// A producer of librdkafka with its threads and connections. Belongs to its client's loop, and decides
/// nothing. While it exists, the library wakes the process several times a second.
final class KafkaProducer {
    /// Reports of the library.
    enum Report {
        /// The fate of a record, by its mark; code 0 means that it is stored.
        case record(mark: UInt, code: Int32)
        /// An error that concerns no single record.
        case error(code: Int32, words: String, isFatal: Bool)
        /// The access token has a fifth of its lifetime left.
        case tokenWanted
    }

    let id: UInt64
    /// The client's generation when the producer was made.
    let generation: Int
    /// When the producer was made; limits its age (`max_connection_age`).
    let openedAt: BootInstant
    /// The access token of its connections, for its whole life; nil for other logins.
    let token: KafkaToken?
    /// Ids of the calls whose records it has.
    var tickets: Set<UInt64> = []
    /// Whether the producer gets no more records, and is closed after its last call.
    var isLeaving = false
    /// The producer's last error; the reason for calls that time out.
    var lastError: (code: Int32, words: String)?
    /// Limits the search for a broker after all were lost.
    var searchTimer: EventLoop.TimerID?
    /// Ends the producer if no batch comes.
    var idleTimer: EventLoop.TimerID?

    private let loop: EventLoop
    /// The shim's producer; nil once closed.
    private var handle: OpaquePointer?
    /// Whether the loop watches the descriptor of its reports.
    private var isWatched = false

    /// Makes a producer, which connects on its own threads.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` and the library's text.
    init(
        _ id: UInt64, _ properties: KafkaProperties, generation: Int, _ token: KafkaToken?,
        on loop: EventLoop,
        at now: BootInstant
    ) throws(OutputError) {
        let handle = try properties.open()
        if let token {
            do throws(OutputError) { try token.use(in: handle) } catch {
                ckafka_close(handle)
                throw error
            }
        }
        self.handle = handle
        self.token = token
        self.id = id
        self.generation = generation
        self.loop = loop
        openedAt = now
    }

    deinit {
        guard let handle else { return }
        guard isWatched else {
            ckafka_close(handle)
            return
        }
        // Only the loop may end the watch, and the watch must end before the descriptor is closed: another
        // file could get its number.
        nonisolated(unsafe) let ended = handle
        loop.post { [loop] in
            loop.forget(ckafka_descriptor(ended))
            ckafka_close(ended)
        }
    }

    var isOpen: Bool { handle != nil }

    /// Ends the producer; records that it has not sent are dropped. A separate thread waits for the
    /// library's threads.
    func close() {
        guard let handle else { return }
        if isWatched {
            loop.forget(ckafka_descriptor(handle))
        }
        for timer in [searchTimer, idleTimer] { timer.map { loop.cancel($0) } }
        searchTimer = nil
        idleTimer = nil
        ckafka_close(handle)
        self.handle = nil
    }

    /// Calls `handler` when there are reports. Returns the failure if the kernel has no memory for the watch.
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

    /// Hands over a record.
    ///
    /// - Parameter mark: returned with the record's report.
    /// - Returns: an error code; 0 means that a report will come.
    func produce(_ record: KafkaRecord, headers: [(name: String, value: String)], mark: UInt) -> Int32 {
        guard let handle else { return KafkaCode.destroyed }
        for list in [headers, record.headers] {
            for (name, value) in list {
                // As bytes: a C string of the name would be an array for each record.
                var name = name
                var value = value
                let isAdded = name.withUTF8 { name in
                    value.withUTF8 { KafkaProducer.add(name, $0, to: handle) }
                }
                guard isAdded else { return KafkaCode.noMemory }
            }
        }
        let name = KafkaProducer.eventID
        let isAdded = record.eventID.withUnsafeBufferPointer { value in
            KafkaProducer.add(
                UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), value, to: handle)
        }
        guard isAdded else { return KafkaCode.noMemory }
        return record.value.withUnsafeBytes { value in
            guard let key = record.key else {
                return ckafka_produce(
                    handle, record.topic, nil, 0, value.baseAddress, value.count, record.time, mark)
            }
            return key.withUnsafeBytes { key in
                ckafka_produce(
                    handle, record.topic, key.baseAddress, key.count, value.baseAddress, value.count,
                    record.time, mark)
            }
        }
    }

    /// The header with the id by which readers recognise repeats.
    private static let eventID: StaticString = "event_id"

    /// Adds a header to the next record; false if there is no memory.
    private static func add(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, to handle: OpaquePointer
    ) -> Bool {
        ckafka_header(handle, name.baseAddress, name.count, value.baseAddress, value.count)
    }

    /// All reports since the last call.
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

    /// Asks for the topic's metadata. Blocks for at most `wait`.
    ///
    /// - Returns: an error code; 0 if the topic exists, or, if events name their topics, if a broker
    ///   answers.
    func look(for wait: Duration) -> Int32 {
        guard let handle else { return KafkaCode.destroyed }
        return ckafka_look(handle, Int32(clamping: Int64(wait / .milliseconds(1))))
    }
}
